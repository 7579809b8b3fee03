"""`gitgates headless` with the real client: the scenarios that it is there for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from claude import Options, Run, Turn, bash
from scene import Scene

CONFIG = """
[gates.test]
command = "sh test.sh"
timeout = 5
[gates.lint]
command = "! grep -n TODO *.sh"
[gates.build]
command = "sh -n code.sh"
[hooks.headless]
gates = ["test", "lint", "build"]
max_retries = 2
[hooks.Stop]
gates = ["test"]
[headless]
agent_args = ["--dangerously-skip-permissions"]
"""
TEST = '. ./code.sh; [ "$(add 1 2)" = 3 ] || { echo "FAIL: add 1 2 is $(add 1 2)"; exit 1; }\n'
GOOD = "add() { echo $(($1 + $2)); }\n"
WRONG = "add() { echo $(($1 - $2)); }\n"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    found = Scene(tmp_path, CONFIG)
    found.repo.git("config", "user.name", "Test")
    found.repo.git("config", "user.email", "test@example.invalid")
    found.repo.write("test.sh", TEST)
    found.repo.write("code.sh", "add() { :; }\n")
    found.commit()
    return found


def put(content: str) -> Turn:
    """Return a turn that writes the code, wherever the run works."""
    return bash(f"cat > code.sh <<'END'\n{content}END\n")


def headless(scene: Scene, *turns: Turn, args: tuple[str, ...] = ()) -> Run:
    command = ("gitgates", "headless", "implement add", *args)
    return scene.run(*turns, options=Options(command=command, limit_s=90.0))


def document(scene: Scene) -> dict[str, Any]:
    """Return the result of the newest run."""
    results = sorted((scene.path / ".git/gitgates/runs").glob("*/result.json"))
    found: dict[str, Any] = json.loads(results[-1].read_text())
    return found


def statuses(scene: Scene) -> list[dict[str, str]]:
    """Return of each attempt of the newest run how each gate ended."""
    attempts = document(scene)["quality_gates"]["attempts"]
    return [{one["name"]: one["status"] for one in attempt["results"]} for attempt in attempts]


def test_first_attempt_success(scene: Scene) -> None:
    head = scene.repo.head()
    run = headless(scene, put(GOOD), "I added add.")
    assert run.end["exit_status"] == 0, run.said
    assert scene.repo.git("rev-parse", "HEAD^") == head
    assert scene.repo.git("log", "-1", "--format=%B").startswith("implement add\n\nI added add.\n")
    assert scene.repo.git("status", "--porcelain") == ""
    assert run.turns == 2  # its own Stop hook has left the gates to the run


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("first", "failed", "shown"),
    [
        (WRONG, ["test"], "FAIL: add 1 2 is -1"),
        (f"# TODO\n{GOOD}", ["lint"], "1:# TODO"),
        ("add() {\n", ["test", "build"], "Syntax error"),
        (f"# TODO\n{WRONG}", ["test", "lint"], "FAIL: add 1 2 is -1"),
    ],
    ids=["a test", "lint", "build", "several at once"],
)
def test_failures_are_mended_in_the_same_conversation(
    scene: Scene, first: str, failed: list[str], shown: str
) -> None:
    run = headless(scene, put(first), "done", put(GOOD), "mended")
    assert run.end["exit_status"] == 0, run.said
    assert [name for name, end in statuses(scene)[0].items() if end == "failed"] == failed
    assert set(statuses(scene)[1].values()) == {"passed"}
    assert shown in run.told(2)
    turns = document(scene)["headless"]["turns"]
    assert [turn["tokens"] for turn in turns] == [220, 220]
    assert turns[0]["cost_usd"] == turns[1]["cost_usd"]  # the client names that of both
    assert "implement add" in str(run.asked()[2][0])  # the conversation goes on
    assert "mended" in scene.repo.git("log", "-1", "--format=%B")


@pytest.mark.nightly
def test_retries_exhausted(scene: Scene) -> None:
    scene.repo.write("mine.txt", "mine\n")
    before, head = scene.repo.git("status", "--porcelain=v2"), scene.repo.head()
    tries = [turn for n in range(3) for turn in (put(f"{WRONG}# {n}\n"), "done")]
    run = headless(scene, *tries)
    assert run.end["exit_status"] == 1, run.said
    assert "your working tree is as you left it" in run.said
    assert (scene.repo.git("status", "--porcelain=v2"), scene.repo.head()) == (before, head)
    kept = scene.repo.git("for-each-ref", "--format=%(refname)", "refs/gitgates/failed")
    assert scene.repo.git("show", f"{kept}:code.sh").endswith("# 2")


def test_timeout(scene: Scene) -> None:
    run = headless(scene, put("sleep 60\n"), "done", put(GOOD), "mended")
    assert run.end["exit_status"] == 0, run.said
    assert statuses(scene)[0]["test"] == "timed-out"
    assert "timed out" in run.told(2)


@pytest.mark.nightly
def test_what_the_agent_cannot_fix(scene: Scene) -> None:
    say = bash('echo >> code.sh; gitgates cannot-fix test --reason "needs a server"')
    run = headless(scene, put(WRONG), "done", say, "I cannot")
    assert run.end["exit_status"] == 1, run.said
    assert "the agent reported that it cannot fix the failures" in run.said
    assert scene.repo.git("status", "--porcelain") == ""


@pytest.mark.samples(1)
@pytest.mark.parametrize("where", [("--in-place",), ()], ids=["in place", "in a worktree"])
def test_a_failed_run_is_gone_on_with(scene: Scene, where: tuple[str, ...]) -> None:
    """The client finds a conversation by the folder that it was in."""
    wrong = bash(f"printf '%s' '{WRONG}' > code.sh")
    failed = headless(scene, wrong, "I tried.", args=("--max-retries", "0", *where))
    assert failed.end["exit_status"] == 1, failed.said
    seen = scene.folder / "seen"
    right = bash(f"cp code.sh {seen}; echo 'add() {{ echo $(($1 + $2)); }}' > code.sh")
    command = ("gitgates", "headless", "--resume", "latest")
    run = scene.run(right, "mended", options=Options(command=command, limit_s=90.0))
    assert run.end["exit_status"] == 0, run.said
    asked = str(run.asked()[0])
    assert "I tried." in asked  # the same conversation
    assert "It last ended as follows: the gates still failed" in asked
    assert seen.read_text() == WRONG  # its work is there
    commit = scene.repo.git("log", "--all", "-1", "--format=%H", "--grep=^mended")
    assert "$1 + $2" in scene.repo.git("show", f"{commit}:code.sh")


@pytest.mark.nightly
def test_a_queue(scene: Scene) -> None:
    tasks = scene.folder / "tasks.toml"
    tasks.write_text("".join(f'[[tasks]]\nid = "t{n}"\nprompt = "implement add"\n' for n in (1, 2)))
    right = bash("echo 'add() { echo $(($1 + $2)); }' > code.sh")
    command = ("gitgates", "headless", "--tasks", str(tasks))
    run = scene.run(right, "done", right, "done", options=Options(command=command, limit_s=120.0))
    assert run.end["exit_status"] == 0, run.said
    assert "gitgates headless: 2 of 2 tasks passed" in run.said
    for branch in ("headless/t1", "headless/t2"):
        assert "$1 + $2" in scene.repo.git("show", f"{branch}:code.sh")
    assert scene.repo.git("status", "--porcelain") == ""
    assert len(scene.repo.git("worktree", "list").splitlines()) == 1
