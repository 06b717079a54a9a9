"""Properties of torch's autograd that torch's checker promises, beside the derivatives themselves: one file each.

Whoever calls them holds the scope of the program, so that nothing they run leaves a trace.
"""
