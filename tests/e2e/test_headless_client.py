"""`gitgates headless` with the real client, where that fails, and beside its other hooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from claude import Failure, Options, Run, Turn, bash, write
from other_apis import plain_text
from process_support import has_ended
from scene import Scene

# The folder of the repository's, from any worktree.
BESIDE = "$(git rev-parse --git-common-dir)/../.."
CONFIG = f"""
[gates.test]
command = "echo test >> {BESIDE}/ran; grep -q good a.txt"
[hooks.headless]
gates = ["test"]
[headless]
agent_args = ["--dangerously-skip-permissions"]
client_retries = 0
"""
GUARD = """
[gates.allowed]
command = "echo allowed >> ../ran; test -e allowed || { echo NOT-ALLOWED; exit 1; }"
[hooks.PreToolUse]
enabled_tools = ["Write"]
gates = ["allowed"]
[hooks.Stop]
gates = ["test"]
"""


def scene(folder: Path, config: str) -> Scene:
    found = Scene(folder, "")
    found.repo.config(config)
    found.repo.git("config", "user.name", "Test")
    found.repo.git("config", "user.email", "test@example.invalid")
    found.repo.write("a.txt", "bad\n")
    found.commit()
    return found


def put(content: str) -> Turn:
    """Return a turn that writes the file, wherever the run works."""
    return bash(f"echo {content} > a.txt")


def headless(there: Scene, *turns: Turn, args: tuple[str, ...] = ()) -> Run:
    once = {"CLAUDE_CODE_MAX_RETRIES": "0"}  # of a request: it would wait for minutes
    command = ("gitgates", "headless", "make it good", *args)
    return there.run(*turns, options=Options(command=command, env=once, limit_s=90.0))


def document(there: Scene) -> dict[str, Any]:
    """Return the result of the only run."""
    path = next((there.path / ".git/gitgates/runs").glob("*/result.json"))
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (bash("echo half > a.txt; kill -9 $PPID"), "killed by SIGKILL"),
        (Failure(500, "api_error"), "API Error: 500 scripted: api_error"),
        (Failure(401, "authentication_error"), "API Error: 401 scripted: authentication_error"),
        (Failure(429, "rate_limit_error"), "(429) · scripted: rate_limit_error"),
        (bash("echo half > a.txt"), "Reached maximum number of turns (1)"),
    ],
    ids=["crash", "server error", "not authenticated", "rate limit", "max turns"],
)
def test_a_client_that_fails_twice_ends_the_run(tmp_path: Path, turn: Turn, why: str) -> None:
    limited = CONFIG.replace('permissions"]', 'permissions", "--max-turns", "1"]')
    there = scene(tmp_path, limited)
    head = there.repo.head()
    run = headless(there, turn, turn, "never asked")
    assert run.end["exit_status"] == 1, run.said
    last = next(line for line in run.said.splitlines() if line.startswith("gitgates headless: "))
    assert last.startswith("gitgates headless: the agent's client failed twice: ")
    assert why in last
    assert (run.turns, there.ran("test")) == (2, 0)
    assert (there.repo.git("status", "--porcelain"), there.repo.head()) == ("", head)
    assert document(there)["headless"]["outcome"].startswith("the agent's client failed twice: ")
    assert all(why in turn["error"] for turn in document(there)["headless"]["turns"])


@pytest.mark.nightly
def test_a_client_that_fails_once_goes_on(tmp_path: Path) -> None:
    there = scene(tmp_path, CONFIG)
    wrong, right = put("wrong"), put("good")
    crash = bash("kill -9 $PPID")
    run = headless(there, crash, wrong, "one", Failure(500, "api_error"), right, "two")
    assert run.end["exit_status"] == 0, run.said
    assert there.ran("test") == 2
    turns = document(there)["headless"]["turns"]
    assert [(turn["attempt"], "error" in turn) for turn in turns] == [
        *((1, True), (1, False)),
        *((2, True), (2, False)),
    ]
    last = plain_text(run.asked()[4][-1]["content"])
    assert last.count("## `test` failed") == 2  # told again after the failure
    assert there.repo.git("log", "-1", "--format=%s%n%b").startswith("make it good\ntwo\n")


@pytest.mark.nightly
def test_a_busy_service_is_waited_for(tmp_path: Path) -> None:
    there = scene(tmp_path, CONFIG.replace("client_retries = 0", "retry_wait = 0.01"))
    right = put("good")
    busy = (Failure(429, "rate_limit_error"), Failure(529, "overloaded_error"))
    run = headless(there, *busy, bash("cat a.txt"), Failure(500, "api_error"), right, "done")
    assert run.end["exit_status"] == 0, run.said
    assert run.said.count("this may be temporary: the turn is repeated in") == 3
    assert there.ran("test") == 1


@pytest.mark.nightly
def test_a_client_without_permission_is_told_of(tmp_path: Path) -> None:
    there = scene(tmp_path, CONFIG.partition("[headless]")[0])
    tries = (bash("cat a.txt > b.txt"), write(there.at("a.txt"), "good\n"), "I may not.") * 2
    run = headless(there, *tries, args=("--in-place",))
    assert run.end["exit_status"] == 1, run.said
    assert (
        "the agent changed nothing in two turns: it had no permission for Bash, Write; "
        "the key `agent_args` can grant it"
    ) in run.said
    assert there.ran("test") == 0


def test_guards_before_tools_stay_and_the_stop_hook_leaves_the_gates_to_the_run(
    tmp_path: Path,
) -> None:
    there = scene(tmp_path, CONFIG + GUARD)
    there.install()
    there.commit()
    file = there.at("a.txt")
    run = headless(
        *(there, write(file, "good\n"), bash("touch allowed"), write(file, "good\n"), "done"),
        args=("--in-place",),
    )
    assert run.end["exit_status"] == 0, run.said
    assert "NOT-ALLOWED" in run.told(1)
    assert (run.turns, there.ran("allowed"), there.ran("test")) == (4, 2, 1)
    assert there.repo.git("show", "--name-only", "--format=", "HEAD") == "a.txt\nallowed"


def test_what_runs_in_the_background_of_the_client_ends_with_the_turn(tmp_path: Path) -> None:
    there = scene(tmp_path, CONFIG)
    stays = f"B=$(cd {BESIDE}; pwd); export B; {{}} sh -c 'echo $$ > $B/{{}}; exec sleep 600'"
    own = bash(stays.format("", "own"), run_in_background=True)
    wait = "while ! [ -s $B/own ] || ! [ -s $B/apart ]; do sleep .02; done"
    apart = bash(f"{stays.format('setsid', 'apart')} >/dev/null 2>&1 & {wait}")
    turns = (own, apart, put("good"), "done")
    run = headless(there, *turns, args=("--budget-minutes", "0.3"))
    assert run.end["exit_status"] == 0, run.said
    assert "it did not finish within 18 s" in run.said  # the client waits for what runs
    for name in ("own", "apart"):
        assert has_ended(int((there.path.parent / name).read_text())), name
    assert there.repo.git("show", "--name-only", "--format=", "HEAD") == "a.txt"
