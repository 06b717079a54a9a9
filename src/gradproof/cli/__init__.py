"""The command line: `gradproof check`, `explain`, `show`, `replay`, `completion`. Loads no framework by itself."""

from gradproof.cli.main import main

__all__ = ["main"]
