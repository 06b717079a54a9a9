"""What torch's autograd asks of a rule beside the derivatives themselves: one file each, for the native check and for
the drop-in alike.

They judge, so they are no part of the adapter; they sit above it. Whoever calls them holds the scope of the program, so
that nothing they run leaves a trace.
"""
