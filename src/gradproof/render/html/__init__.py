"""A report as one self-contained HTML file: `page(report)` gives its text, `write(report, path)` the file."""

from gradproof.render.html.page import page, write

__all__ = ["page", "write"]
