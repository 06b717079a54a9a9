import torch

import gradproof


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        centred = x - x.mean(-1, keepdim=True)
        scale = (centred.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        normed = centred * scale
        ctx.save_for_backward(normed, scale, weight)
        return normed * weight + bias

    @staticmethod
    def backward(ctx, grad):
        normed, scale, weight = ctx.saved_tensors
        g = grad * weight
        dx = scale * (g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True))
        return dx, (grad * normed).mean(0), grad.sum(0)  # the mistake: mean, where it must be sum


generator = torch.Generator().manual_seed(0)
x, weight, bias = (torch.randn(shape, dtype=torch.float64, generator=generator) for shape in [(4, 6), (6,), (6,)])
print(gradproof.check(LayerNorm.apply, (x, weight, bias), seed=1))
