"""A report into a file: all of it, or nothing."""

from __future__ import annotations

import os
from pathlib import Path


def put(text: str, path: str | os.PathLike[str]) -> None:
    """In folders that are made where they are missing. A disk that is full, or a kill, leaves what was there before."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    # What is no plain file, or stands in a folder that takes no others, cannot be replaced.
    if is_special(file) or file.is_symlink() or file.is_mount() or not os.access(file.parent, os.W_OK):
        file.write_text(text, "utf-8")
        return
    part = file.with_name(f".gradproof-{os.getpid()}.part")
    try:
        part.write_text(text, "utf-8")
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def is_special(file: Path) -> bool:
    """A pipe, or a device."""
    return file.exists() and not file.is_file()
