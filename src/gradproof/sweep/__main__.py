"""`python -m gradproof.sweep` is `gradproof sweep`."""

import sys

from gradproof.cli.main import main

main(["sweep", *sys.argv[1:]])
