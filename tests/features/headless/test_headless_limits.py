"""What a headless run may cost, and how it waits for a model's service."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo

from gitgates.features.headless.turn import is_temporary, wait_s

CONFIG = """\
[gates.test]
command = "grep -q good a.txt"
[hooks.headless]
gates = ["test"]
max_retries = 5
[undo]
enabled = false
[headless]
retry_wait = 0.01
"""
# Of the real one: one JSON object, with the cost of the conversation so far.
CLAUDE = """\
#!/bin/sh
n=$(($(cat {folder}/count 2>/dev/null || echo 0) + 1))
echo $n > {folder}/count
echo "$@" >> {folder}/arguments
cat > {folder}/prompt$n
error=
[ -e {folder}/turn$n ] && . {folder}/turn$n
if [ "$error" ]; then
  echo '{{"is_error":true,"session_id":"s-1","result":"'"$error"'","total_cost_usd":0.'$n'}}'
  exit 1
fi
echo '{{"session_id":"s-1","result":"turn '$n'","total_cost_usd":0.'$n'}}'
"""


class Claude:
    """A client that does what it is told, turn by turn, and tells what that cost: 10 cents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        program = folder / "claude"
        program.write_text(CLAUDE.format(folder=folder))
        program.chmod(0o755)

    def turns(self, *scripts: str) -> None:
        for number, script in enumerate(scripts, 1):
            (self.folder / f"turn{number}").write_text(script)

    @property
    def prompts(self) -> list[str]:
        return [path.read_text() for path in sorted(self.folder.glob("prompt*"))]


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Claude:
    folder = tmp_path / "client"
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return Claude(folder)


@pytest.fixture
def work(repo: Repo) -> Repo:
    repo.config(CONFIG)
    repo.write("a.txt", "bad\n")
    repo.commit_all("first")
    return repo


def document(repo: Repo) -> dict[str, Any]:
    path = max((repo.path / ".git/gitgates/runs").glob("*/result.json"))
    found: dict[str, Any] = json.loads(path.read_text())
    return found


BUSY = "error='API Error: 529 overloaded_error'"


def test_a_busy_service_is_waited_for(work: Repo, claude: Claude) -> None:
    claude.turns(BUSY, "error='429 rate limit'", "error='fetch failed'", "echo good > a.txt")
    done = work.gitgates("headless", "go")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert claude.prompts == ["go"] * 4
    assert done.stdout.count(b"this may be temporary: the turn is repeated in") == 3
    resumed = (claude.folder / "arguments").read_text().splitlines()[1]
    assert "--resume s-1" in resumed
    assert len(document(work)["quality_gates"]["attempts"]) == 1


@pytest.mark.thorough
def test_a_service_that_stays_busy_ends_the_run(work: Repo, claude: Claude) -> None:
    work.config(f"{CONFIG}client_retries = 3\n")
    work.commit_all("few")
    claude.turns(*[BUSY] * 20)
    done = work.gitgates("headless", "go")
    assert done.returncode == 1
    assert b"the agent's client failed twice: API Error: 529 overloaded_error" in done.stdout
    assert len(claude.prompts) == 1 + 3


def test_what_does_not_pass_is_not_waited_for(work: Repo, claude: Claude) -> None:
    claude.turns(*["error='401 invalid API key'"] * 9)
    done = work.gitgates("headless", "go")
    assert (done.returncode, len(claude.prompts)) == (1, 2)
    assert b"may be temporary" not in done.stdout


@pytest.mark.thorough
def test_waiting_is_part_of_the_time_of_the_run(work: Repo, claude: Claude) -> None:
    work.config(CONFIG.replace("0.01", '"1h"'))
    work.commit_all("long")
    claude.turns(BUSY, "echo good > a.txt")
    began_s = time.monotonic()
    done = work.gitgates("headless", "go", "--budget-minutes", "0.1")
    assert done.returncode == 1
    assert b"the time limit of the run was reached" in done.stdout
    assert 4 < time.monotonic() - began_s < 60
    assert len(claude.prompts) == 1


def test_waiting_is_interrupted(work: Repo, claude: Claude) -> None:
    work.config(CONFIG.replace("0.01", '"1h"'))
    work.commit_all("long")
    claude.turns(f"echo worse > a.txt; {BUSY}")
    argv = [sys.executable, "-m", "gitgates", "headless", "go"]
    run = subprocess.Popen(argv, cwd=work.path, stdout=subprocess.PIPE)
    assert run.stdout
    while b"may be temporary" not in run.stdout.readline():
        assert run.poll() is None
    run.send_signal(signal.SIGTERM)
    out, _ = run.communicate(timeout=20)
    assert run.returncode == 130
    assert b"interrupted by a signal\nyour working tree is as you left it" in out
    assert (work.path / "a.txt").read_text() == "bad\n"
    assert "\n" not in work.git("worktree", "list")


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        ("API Error: 529 {'type':'overloaded_error'}", True),
        ("API Error: Request rejected (429) · rate limit", True),
        ("502 Bad Gateway", True),
        ("exit status 1\nError: connect ECONNREFUSED 127.0.0.1:443", True),
        ("exit status 1\ngetaddrinfo EAI_AGAIN api.example.com", True),
        ("stream disconnected before completion", True),
        ("API Error: Connection error.", True),
        ("HTTP 503: no capacity", True),
        ("429 You exceeded your current quota (insufficient_quota)", False),
        ("Your credit balance is too low (429)", False),
        ("401 invalid x-api-key", False),
        ("killed by SIGKILL", False),
        ("exit status 1\n1500 files read, 4290 lines", False),
        ("", False),
    ],
)
def test_which_errors_may_pass(error: str, passes: bool) -> None:  # noqa: FBT001 - of the table
    assert is_temporary(error) == passes


def test_waits_double_up_to_five_minutes() -> None:
    assert [wait_s(n, 10.0) for n in (1, 2, 3, 6, 10_000)] == [10, 20, 40, 300, 300]


def test_no_turn_begins_beyond_the_cost(work: Repo, claude: Claude) -> None:
    work.config(f"{CONFIG}max_cost = 0.25\n")
    work.commit_all("dear")
    claude.turns(*[f"echo {n} > a.txt" for n in range(9)])
    done = work.gitgates("headless", "go")
    assert done.returncode == 1
    assert (
        b"the cost limit of the run was reached: max_cost: $0.30 used, at most $0.25" in done.stdout
    )
    assert len(claude.prompts) == 3
    assert (work.path / "a.txt").read_text() == "bad\n"


def test_what_was_good_when_the_cost_was_reached_is_committed(work: Repo, claude: Claude) -> None:
    claude.turns("echo 1 > a.txt", "echo good > a.txt")
    done = work.gitgates("headless", "go", "--max-cost", "0.15")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert work.git("show", "HEAD:a.txt") == "good"


def test_a_cost_that_nobody_tells_is_said_not_to_be_checked(work: Repo) -> None:
    command = "sh -c 'echo good > a.txt'"
    done = work.gitgates("headless", "go", "--max-cost", "1", "--agent-command", command)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert b"note: max_cost was not checked: sh does not report the cost of a turn" in done.stdout
