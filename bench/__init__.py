"""Measures what the README claims: error bars, planted mistakes, times. `python -m bench --help`."""
