"""Properties that a derivative must have, checked without any step: one file each."""
