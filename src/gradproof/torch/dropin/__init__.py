"""The drop-in for torch's own checker: the same names, arguments and answers."""
