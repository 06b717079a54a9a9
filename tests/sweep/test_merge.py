"""Stores of several machines put into one."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_store import PLAIN, content

from gradproof.cli.main import gradproof
from gradproof.errors import UsageError
from gradproof.sweep import sweep
from gradproof.sweep.merge import merged
from gradproof.sweep.store import Store


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{number}.db" for number in (1, 2)]
    for number, path in enumerate(paths, 1):
        sweep(PLAIN, jobs=1, shard=f"{number}/2", store=path).store.close()
    return paths


def alter(path: Path, package: str) -> None:
    with sqlite3.connect(path) as database:
        versions = json.loads(database.execute("SELECT value FROM facts WHERE name = 'versions'").fetchone()[0])
        database.execute(
            "UPDATE facts SET value = ? WHERE name = 'versions'", [json.dumps(versions | {package: "1.0"})]
        )


def test_two_shards_are_the_whole(parts: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "all.db"
    done = CliRunner().invoke(gradproof, ["sweep", "merge", *map(str, [out, *parts])])
    assert (done.exit_code, done.output.replace("\n", "")) == (0, f"25 rows in {out}"), done.output
    again = sweep(PLAIN, jobs=1, store=out)
    assert (again.progress.done, again.progress.earlier) == (0, 25)
    assert content(again.store) == content(sweep(PLAIN, jobs=1).store)
    again.store.close()
    assert merged(out, parts).twice == 25
    with pytest.raises(UsageError, match="is the file to write to"):
        merged(out, [out])


def test_what_was_made_otherwise_is_not_mixed_in_and_another_kernel_is_said(parts: list[Path], tmp_path: Path) -> None:
    alter(parts[1], "platform")
    done = CliRunner().invoke(gradproof, ["sweep", "merge", *map(str, [tmp_path / "said.db", *parts])])
    assert (done.exit_code, "from several platforms: " in done.output) == (0, True)
    alter(parts[1], "numpy")
    with pytest.raises(
        UsageError, match=r"2\.db was not made as those before it, but with other versions: numpy \S+, now 1\.0; merge"
    ):
        merged(tmp_path / "all.db", parts)
    assert not list(tmp_path.glob("all.db*"))  # and no store of nothing is left


def test_a_row_that_says_nothing_takes_no_other_place(parts: list[Path], tmp_path: Path) -> None:
    sweep(PLAIN, jobs=1, store=tmp_path / "all.db").store.close()
    with sqlite3.connect(parts[0]) as database:
        database.execute("UPDATE rows SET ending = 'killed', verdict = 'error'")
    merged(tmp_path / "all.db", parts)
    with Store(tmp_path / "all.db") as whole:
        assert {row.ending.value for row in whole.rows()} == {"finished"}
