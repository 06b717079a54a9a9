import torch

import gradproof


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * (grad - grad.mean(-1, keepdim=True))  # the mistake: y must weight this mean


x = torch.tensor([[0.0, 1.0, 2.0], [0.5, 0.1, -0.3]], dtype=torch.float64)
print(gradproof.check(Softmax.apply, x, seed=1))
