"""Reports into files: all of it or nothing, through pipes and links, and in the encoding that they say they have."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest
import samples

from gradproof.errors import UsageError
from gradproof.render.files import Files
from gradproof.render.writing import put
from gradproof.result import Report


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.json"
    file.write_text("the one before")
    whole = Path.write_text

    def full(path: Path, text: str, *options: str) -> int:
        whole(path, text[:10], *options)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(UsageError, match=r"report\.json cannot be written: No space left on device"):
        Files(json=file).write(Report((samples.right(),)))
    assert file.read_text() == "the one before"
    assert os.listdir(tmp_path) == ["report.json"]


def test_folders_are_made_and_a_file_is_as_open_as_any_other(tmp_path: Path) -> None:
    file = tmp_path / "new" / "report.txt"
    put("±", file)
    other = tmp_path / "other"
    other.touch()
    assert (file.read_bytes(), file.stat().st_mode) == ("±".encode(), other.stat().st_mode)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to("target.json")
    files = Files(json=link)
    files.prepare()
    files.write(Report((samples.right(),)))
    assert link.is_symlink()
    assert (tmp_path / "target.json").read_text().startswith('{"format"')


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_opened_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()), daemon=True)
    reader.start()
    files = Files(json=pipe)
    files.prepare()
    files.write(Report((samples.right(),)))
    reader.join(30)
    assert heard[0].startswith('{"format"')


def test_standard_output_gets_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", terminal)
    Files(junit=Path("-")).write(Report((samples.scaled(),)))
    written = terminal.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined]
    assert "±" in written
    assert "encoding='utf-8'" in written.lower()
