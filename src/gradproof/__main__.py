"""`python -m gradproof` is the command line."""

from gradproof.cli import main

main()
