"""Files of state that are no files: nothing waits for a fifo, or writes through a link."""

from __future__ import annotations

import json
import os
from pathlib import Path

import forked
import pytest
from conftest import Repo

CONFIG = """
[gates.g]
command = "true"
[hooks.manual]
gates = ["g"]
[hooks.Stop]
gates = ["g"]
"""
READS = "is not a regular file"
STOP = "agent-hook claude"
VICTIM = b"somebody's\n"


def event(repo: Repo, name: str) -> bytes:
    return json.dumps({"hook_event_name": name, "session_id": "s", "cwd": str(repo.path)}).encode()


@pytest.mark.samples(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "verb", "status", "said"),
    [
        ("sessions/s.jsonl", STOP, 0, READS),
        ("config.marshal", STOP, 0, ""),
        ("files.index", STOP, 0, ""),
        ("messages.jsonl", "journal search x", 73, READS),
        ("messages.jsonl", "journal post t -m x", 73, READS),
        ("messages.sqlite", "journal search x", 0, ""),
        ("lock", "run", 0, ""),
        ("ledger.jsonl", "run", 73, READS),
    ],
)
def test_no_file_of_state_is_waited_for_or_written_through(
    repo: Repo, tmp_path: Path, name: str, verb: str, status: int, said: str
) -> None:
    repo.config(CONFIG)
    repo.commit_all("base")
    if verb == STOP:
        repo.gitgates(*STOP.split(), stdin=event(repo, "SessionStart"))
    elif name == "messages.sqlite":
        repo.gitgates("journal", "post", "t", "-m", "x")
    repo.write("new", "x")
    victim = tmp_path / "victim"
    victim.write_bytes(VICTIM)
    place = repo.path / ".git/gitgates" / name
    place.parent.mkdir(exist_ok=True)
    env = {"GITGATES_SKIP": "g"} if name == "ledger.jsonl" else {}
    for make in (os.mkfifo, lambda path: os.symlink(victim, path)):
        place.unlink(missing_ok=True)
        make(place)
        whole, stdin = {**os.environ, **env}, event(repo, "Stop")
        done = forked.run(tuple(verb.split()), str(repo.path), whole, stdin, hosts=True)
        assert done.returncode == status, done.stderr
        assert said in (done.stdout + done.stderr).decode()
        assert b"Traceback" not in done.stderr
        assert b"took longer" not in done.stdout
        assert victim.read_bytes() == VICTIM


@pytest.mark.samples(1)
@pytest.mark.parametrize("verb", ["doctor", "install-hooks --via pre-commit"])
def test_settings_that_have_no_end_are_not_read(repo: Repo, verb: str) -> None:
    repo.config('[gates.g]\ncommand = "true"\n[hooks.pre-commit]\ngates = ["g"]\n')
    for name in (".pre-commit-config.yaml", "package.json", "lefthook.yml"):
        os.symlink("/dev/zero", repo.path / name)
    # Were one read to its end, memory would be full, or the time up.
    done = repo.ask("sh", "-c", f"ulimit -v 2000000 2>/dev/null; exec python -m gitgates {verb}")
    assert done.returncode == (verb == "doctor"), done.stderr
    assert b"pre-commit" in done.stdout
    assert b"Traceback" not in done.stderr
