"""A file that cannot be imported."""

raise RuntimeError("this file is broken")
