"""A module that cannot be imported, for the catalogue of disasters."""

raise RuntimeError("this module is broken on purpose")
