"""What sweeps promise, shown at full length: `python -m bench.sweep [part ...]`."""
