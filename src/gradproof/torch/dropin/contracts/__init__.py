"""Properties of torch's autograd that torch's checker promises, beside the derivatives themselves: one file each."""
