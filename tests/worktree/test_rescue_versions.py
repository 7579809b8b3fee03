"""What any gitgates so far had put aside when it was killed is put back by this one.

The journals are as those versions wrote them; the files around them are of a real run.
"""

from __future__ import annotations

import ast
import os
import zlib
from pathlib import Path

import pytest
from conftest import Repo
from test_concurrent_edits import LINES, MINE, arm, armed, kill_everything, needs_proc, paused
from worktree_state import files

from gitgates.config import LOCAL_FILE

__all__ = ["armed"]  # the fixture

HEAD = "'root_abs': {root!r}, 'pid': 1, 'started': '2026-11-21 11:37:06', "
FIRST = "'made_folders': (), 'git_locks': (('{root}/.git/index.lock', 5),), 'git_pid': 1"
MARK = "({ino}, {size}, {mtime}, {mode})"
DIGEST = "'{digest}'"
SHOWN = "'{shown}', {mode}, '{digest}'"
# Each way in which a journal was ever written → the text.
JOURNALS = {
    "1": "{{'v': 1, " + HEAD + "'entries': [('a', '0', '{blob}', " + MARK + ")], " + FIRST + "}}",
    "1, token": "{{'v': 1, "
    + (HEAD + "'entries': [('a', '0', '{blob}', " + MARK + ")], " + FIRST + ", 'token': '1.2'}}"),
    "1, digest": "{{'v': 1, "
    + (HEAD + "'entries': [('a', '0', '{blob}', " + MARK + ", " + DIGEST + ")], ")
    + (FIRST + ", 'token': '1.2'}}{crc}"),
    "2, locks": "{{'v': 2, "
    + (HEAD + "'entries': [('a', '0', '{blob}', " + SHOWN + ")], " + FIRST + "}}{crc}"),
    "2": "{{'v': 2, "
    + (HEAD + "'entries': [('a', '0', '{blob}', " + SHOWN + ")], 'made_folders': (), ")
    + "'git_locks': {{}}, 'git_pid': 1, 'token': '1.2'}}{crc}",
}


def crash(repo: Repo, tmp: Path) -> Path:
    """Have a run die that has put `a` aside; return its journal."""
    arm(repo)
    kill_everything(paused(repo, "hidden 1", tmp / "p"), repo)
    return repo.path / ".git/gitgates/rescue/journal"


def written(repo: Repo, journal: Path, form: str) -> bytes:
    """Return the journal in another form."""
    text = journal.read_bytes().partition(b"\ncrc32 ")[0]
    ((_path, _saved, blob, shown, mode, digest),) = ast.literal_eval(text.decode())["entries"]
    now = (repo.path / "a").lstat()
    values = {"blob": blob, "shown": shown, "mode": mode, "digest": digest, "root": str(repo.path)}
    marks = {"ino": now.st_ino, "size": now.st_size, "mtime": now.st_mtime_ns}
    made = form.removesuffix("{crc}").format(**values, **marks).encode()
    if form.endswith("{crc}"):
        made += b"\ncrc32 %08x\n" % zlib.crc32(made)
    return made


@pytest.mark.samples(2)
@needs_proc
@pytest.mark.parametrize("form", JOURNALS)
def test_a_journal_of_each_version_is_read(armed: Repo, tmp_path: Path, form: str) -> None:
    before = files(armed)
    journal = crash(armed, tmp_path)
    assert (armed.path / "a").read_text() == LINES
    journal.write_bytes(written(armed, journal, JOURNALS[form]))
    done = armed.gitgates("recover")
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    assert b"restored 1 file: a" in done.stdout
    if "token" not in JOURNALS[form]:  # or it is named as one of long ago, and gone
        assert [*(armed.path / ".git/gitgates/restored").glob("*/killed")]
    assert files(armed) == {**before, LOCAL_FILE: files(armed)[LOCAL_FILE]}
    assert armed.gitgates("recover").stdout == b"nothing to recover\n"


@pytest.mark.samples(1)
@needs_proc
@pytest.mark.parametrize("form", ["1", "1, digest"])
def test_what_was_written_meanwhile_is_merged_all_the_same(
    armed: Repo, tmp_path: Path, form: str
) -> None:
    journal = crash(armed, tmp_path)
    journal.write_bytes(written(armed, journal, JOURNALS[form]))
    (armed.path / "a").write_text(LINES.replace("line 15", "theirs"))
    assert armed.gitgates("recover").returncode == 0
    assert (armed.path / "a").read_text() == MINE.replace("line 15", "theirs")


@needs_proc
def test_a_journal_of_a_later_version_is_named_as_such(armed: Repo, tmp_path: Path) -> None:
    journal = crash(armed, tmp_path)
    later = b"{'v': 3, 'entries': [('a', 'whatever')]}\nsha256 0123\n"
    journal.write_bytes(later)
    for verb in ("recover", "check"):
        done = armed.gitgates(verb)
        assert done.returncode == 73
        said = done.stderr.decode()
        assert "a newer gitgates wrote it (journal version 3; this one reads 1 to 2)" in said
        assert "Run `gitgates recover` of that version" in said
        assert "damaged" not in said
    assert journal.read_bytes() == later
    assert (armed.path / ".git/gitgates/rescue/saved/0").read_text() == MINE
    assert os.path.exists(journal)
