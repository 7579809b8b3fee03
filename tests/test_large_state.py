"""State that has grown large: what a hook and a list take of it is bounded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from agent_support import begin
from click.testing import CliRunner
from conftest import Repo

from gitgates.cli.runs import command
from gitgates.report import artifacts
from gitgates.store.messages import find, id_of

CONFIG = '[gates.g]\ncommand = "true"\n[hooks.manual]\ngates = ["g"]\n[hooks.Stop]\ngates = ["g"]\n'
MANY = 250
PER_RUN = 10
# Says how much memory a program took, in KB.
MEASURE = """\
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""


def old_runs(repo: Repo) -> Path:
    """Make many runs of a year that is over; return their folder."""
    repo.config(CONFIG)
    repo.commit_all("base")
    repo.gitgates("run")
    folder = repo.path / ".git/gitgates/runs"
    result = next(folder.glob("*/result.json")).read_bytes()
    for number in range(MANY):
        run = folder / f"20200101T000000.{number:06d}Z-1"
        run.mkdir()
        (run / "result.json").write_bytes(result)
        os.utime(run, (1e9, 1e9))
    return folder


def test_a_run_prunes_some_of_many_and_the_next_one_goes_on(repo: Repo) -> None:
    folder = old_runs(repo)
    kept = MANY + 1
    for _time in range(3):
        repo.gitgates("run")
        kept = max(kept + 1 - PER_RUN, 50)
        names = sorted(path.name for path in folder.iterdir())
        assert len(names) == kept
        left = [name for name in names if name.startswith("2020")]
        assert not left or left[-1].startswith(f"20200101T000000.{MANY - 1:06d}")  # the oldest went


@pytest.mark.parametrize("args", ["runs prune --keep 2", "gc"])
def test_by_hand_all_go_at_once(repo: Repo, args: str) -> None:
    folder = old_runs(repo)
    assert repo.gitgates(*args.split()).returncode == 0
    assert len(list(folder.iterdir())) == (2 if "2" in args else 50)


def test_a_list_reads_no_results_that_it_does_not_show(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = old_runs(repo)
    read: list[str] = []
    read_result = artifacts.read_result

    def counted(run_abs: str) -> object:
        read.append(os.path.basename(run_abs))
        return read_result(run_abs)

    monkeypatch.setattr(artifacts, "read_result", counted)
    monkeypatch.chdir(repo.path)
    done = CliRunner().invoke(command, ["list", "--limit", "3", "--format", "json"])
    listed = [one["execution_id"] for one in json.loads(done.stdout)["runs"]]
    newest = sorted((path.name for path in folder.iterdir()), reverse=True)[:3]
    assert listed == newest
    assert sorted(read, reverse=True) == newest


@pytest.mark.nightly
@pytest.mark.slow
def test_a_session_begins_without_reading_all_messages(repo: Repo) -> None:
    begin(repo, CONFIG)
    log = repo.write(".git/gitgates/messages.jsonl")
    fields = {"v": 1, "time": "2024-01-01T00:00:00.000Z", "topic": "handoff/x", "text": "x" * 1000}
    with log.open("w") as file:
        for number in range(100_000):
            file.write(json.dumps({**fields, "id": id_of(20_000_000_000 + number)}) + "\n")
    done = repo.gitgates("handoff", "-m", "The parser is done.", "--session", "s1")
    assert done.returncode == 0, done.stderr
    event = {"hook_event_name": "SessionStart", "session_id": "s2", "cwd": str(repo.path)}
    program = [sys.executable, "-c", MEASURE, sys.executable, "-m", "gitgates", "agent-hook"]
    done = subprocess.run(
        [*program, "claude"],
        cwd=repo.path,
        input=json.dumps({**event, "source": "startup"}).encode(),
        capture_output=True,
        check=True,
    )
    assert b"The parser is done." in done.stdout
    taken = int(done.stderr.split()[-1]) >> (20 if sys.platform == "darwin" else 10)
    assert taken < 64, "MB"
    common = str(repo.path / ".git/gitgates")
    for number in (0, 50_000, 99_999):  # also what is far back is found by its id
        message = find(common, id_of(20_000_000_000 + number))
        assert message
        assert message.id == id_of(20_000_000_000 + number)
    assert find(common, "zzzz") is None
