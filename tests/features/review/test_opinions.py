"""Second opinions: who is asked what, what becomes of each, and where it is kept."""

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
from agent_support import Agent
from conftest import Repo
from each_case import each_case

from gitgates.features.review import cli_opinions as opinions

pytestmark = pytest.mark.slow
HOOK = f"{sys.executable} -m gitgates agent-hook claude"
GITGATES = f"{sys.executable} -m gitgates"
CONFIG = """
[gates.check]
command = 'echo ran >> "$OUT/gates"; exit 1'
[hooks.Stop]
gates = ["check", "review"]
[review]
opinion_timeout = {timeout}
second_opinions = {commands}
"""


def ready(repo: Repo, *commands: str, timeout: float = 60) -> Agent:
    """Return a session that has changed something, in a repository that asks these."""
    # JSON and TOML write such texts alike.
    repo.config(CONFIG.format(commands=json.dumps(commands), timeout=timeout))
    repo.commit_all("first")
    agent = Agent(repo)
    agent.start()
    agent.prompt("make it add")
    agent.edit("sums.py", "def add(a, b):\n    return a - b\n")
    return agent


def asked(repo: Repo, *args: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return repo.gitgates("review", "diff", "--opinions", *args, env=env)


def answers(repo: Repo) -> list[str]:
    """Return what is stored of each answer, in the order in which they came."""
    return [one["data"]["text"] for one in messages(repo)]


def messages(repo: Repo) -> list[dict[str, Any]]:
    lines = (repo.path / ".git/gitgates/messages.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_each_is_told_the_request_and_the_change(repo: Repo, out: Path) -> None:
    ready(repo, 'cat > "$OUT/stdin"', 'cat "$GITGATES_REVIEW_FILE" > "$OUT/file"; echo COMPLETE')
    assert asked(repo).returncode == 0
    question = (out / "stdin").read_text()
    assert (out / "file").read_text() == question
    assert question.startswith("You are asked for a second opinion")
    asked_for = "word for word\n\n1.\n    make it add\n\n# The change\n\ndiff --git "
    assert asked_for in question
    assert question.endswith("+def add(a, b):\n+    return a - b\n")


def test_opinions_are_shown_kept_and_pointed_to(repo: Repo) -> None:
    # The first one waits until what the second one has said is kept.
    wait = "until grep -qs ISSUES .git/gitgates/messages.jsonl; do :; done"
    ready(
        repo,
        f"eval '{wait}'; echo fine; echo '**COMPLETE**'",
        "/bin/echo it subtracts; echo ISSUES",
    )
    done = asked(repo)
    messages_there = messages(repo)
    ids = [one["id"] for one in messages_there]
    assert (
        done.stdout.decode()
        == f"""\
== echo: ISSUES (message {ids[0]}) ==
it subtracts
ISSUES

== eval: COMPLETE (message {ids[1]}) ==
fine
**COMPLETE**

"""
    )
    assert done.returncode == 0
    assert done.stderr.decode() == (
        "gitgates: asking eval, echo, for at most 60 s\n"
        "  Each answer is stored as it arrives; to show them: gitgates journal read "
        "review/s1/opinions\n"
    )
    first, second = messages_there
    assert (first["topic"], first["session"]) == ("review/s1/opinions", "s1")
    assert first["text"] == "== echo: ISSUES ==\nit subtracts\nISSUES\n"
    assert [one["data"]["decision"] for one in (first, second)] == ["ISSUES", "COMPLETE"]


def test_what_fails_is_no_opinion(repo: Repo) -> None:
    ready(repo, "echo no quota; false", "nonesuch -p", "true", "kill -9 $$", "echo fine")
    done = asked(repo)
    headings = [line for line in done.stdout.decode().splitlines() if line.startswith("==")]
    assert sorted(heading.partition(" (message")[0] for heading in headings) == [
        "== echo 1: no opinion, it failed: exit status 1",
        "== echo 2",
        "== kill: no opinion, it was killed",
        "== nonesuch: no opinion, it could not be started: command not found: nonesuch",
        "== true: no opinion, it printed nothing",
    ]
    assert done.returncode == 0


def test_one_that_takes_too_long_is_ended_with_all_it_has_started(repo: Repo, out: Path) -> None:
    ready(repo, 'sleep 600 & echo $! > "$OUT/pid"; wait', timeout=1)
    done = asked(repo)
    assert done.returncode == 1, "nobody has answered"
    (message,) = messages(repo)
    kept = f"(message {message['id']})"
    expected = f"== sleep: no opinion, it took too long: limit 1 s {kept} ==\n"
    assert done.stdout.decode().rstrip() == expected.rstrip()
    pid = (out / "pid").read_text().strip()
    # A zombie that nobody has waited for yet has ended, too.
    state = repo.ask("ps", "-o", "stat=", "-p", pid).stdout.strip()
    assert not state or state.startswith(b"Z")


@pytest.mark.usefixtures("out")
def test_they_run_side_by_side(repo: Repo) -> None:
    # Each waits until the other one is there: one after the other, none would answer.
    meet = 'touch "$OUT/{0}"; until [ -e "$OUT/{1}" ]; do :; done; echo met'
    ready(repo, meet.format("a", "b"), meet.format("b", "a"), timeout=30)
    asked(repo)
    assert answers(repo) == ["met", "met"]


def test_none_is_configured(repo: Repo) -> None:
    ready(repo)
    done = asked(repo)
    assert done.stdout.startswith(b"no second opinions are configured\n")
    assert (done.returncode, done.stderr) == (0, b"")


def test_nothing_has_changed(repo: Repo) -> None:
    ready(repo, "echo asked")
    (repo.path / "sums.py").unlink()
    assert asked(repo).stdout == b"no significant changes\n"


def test_hooks_that_another_agent_sets_off_are_silent(repo: Repo, out: Path) -> None:
    """The gate of Stop blocks, and counts: neither it nor the journal may hear of that agent."""
    payload = {"session_id": "other", "cwd": str(repo.path), "stop_hook_active": False}
    events = [{**payload, "hook_event_name": name} for name in ("SessionStart", "Stop")]
    for number, event in enumerate(events):
        (out / f"event{number}").write_text(json.dumps(event))
    fire = "; ".join(f'{HOOK} < "$OUT/event{number}"' for number in range(len(events)))
    ready(repo, f"{fire}; echo COMPLETE")
    asked(repo)
    assert answers(repo) == ["COMPLETE"]
    assert not (out / "gates").exists()
    journals = repo.path / ".git/gitgates/sessions"
    assert "other" not in " ".join(path.name for path in journals.iterdir())


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    "verb",
    [
        "done",
        "done --decision COMPLETE --summary fine",
        "skip --reason fine --session s1",
    ],
)
def test_an_opinion_is_no_person_and_no_reviewer(repo: Repo, verb: str) -> None:
    """What speaks for the agent is taken from its environment; that makes no person of it."""
    agent = ready(repo, f'{GITGATES} review {verb} 2>&1; echo "exit $?"')
    agent.prompt("#review it")
    before = agent.facts()
    asked(repo)
    assert answers(repo)[0] == (
        "gitgates: this is a second opinion, which may only read\n"
        "  Print your own opinion of the change to standard output.\nexit 64"
    )
    assert agent.facts() == before


def test_an_opinion_is_one_in_other_worktrees_too(repo: Repo, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    skip = f"{GITGATES} review skip --reason fine --session s1"
    agent = ready(repo, f'cd {linked} && {skip} 2>&1; echo "exit $?"')
    repo.git("worktree", "add", "-q", str(linked))
    asked(repo)
    assert answers(repo)[0].endswith("\nexit 64")
    assert "marker" not in [fact["what"] for fact in agent.facts()]


def test_an_opinion_may_read(repo: Repo) -> None:
    ready(repo, f"{GITGATES} review diff")
    asked(repo)
    assert "make it add" in answers(repo)[0]


@pytest.mark.samples(1)
@pytest.mark.parametrize("verb", ["skip --reason fine", "done"])
def test_a_gate_is_no_person(repo: Repo, verb: str, out: Path) -> None:
    agent = ready(repo)
    config = (repo.path / "pyproject.toml").read_text()
    gate = f'{GITGATES} review {verb} > "$OUT/said" 2>&1'
    repo.write("pyproject.toml", config.replace('echo ran >> "$OUT/gates"; exit 1', gate))
    repo.gitgates("run", "Stop")
    assert b"noted that this change" in (out / "said").read_bytes()
    assert "by_person" not in agent.facts()[-1]
    agent.prompt("#review it")
    repo.gitgates("run", "Stop")
    assert (b"must be run by a person" in (out / "said").read_bytes()) is verb.startswith("skip")


@pytest.mark.samples(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_what_has_come_is_not_lost_where_we_are_ended(
    repo: Repo, number: signal.Signals, out: Path
) -> None:
    ready(repo, "echo early; echo COMPLETE", 'sleep 600 & echo $! > "$OUT/pid"; wait')
    ask = [sys.executable, "-m", "gitgates", "review", "diff", "--opinions"]
    with subprocess.Popen(ask, cwd=repo.path, stdout=-1, stderr=-1) as asking:
        log = repo.path / ".git/gitgates/messages.jsonl"
        for path in (log, out / "pid"):
            while not (path.exists() and path.read_bytes().endswith(b"\n")):
                assert asking.poll() is None
                time.sleep(0.002)
        asking.send_signal(number)
        told, trouble = asking.communicate()
    (message,) = messages(repo)
    assert message["text"] == "== echo: COMPLETE ==\nearly\nCOMPLETE\n"
    assert asking.returncode == 130
    assert told.decode() == f"== echo: COMPLETE (message {message['id']}) ==\nearly\nCOMPLETE\n\n"
    assert f"interrupted by signal {int(number)} while `sleep` ran" in trouble.decode()


@pytest.mark.usefixtures("out")
def test_another_agent_hears_nothing_of_the_session(repo: Repo) -> None:
    ready(repo, 'echo "$CLAUDECODE,$CLAUDE_CODE_SESSION_ID,$KEPT"')
    asked(repo, CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="s1", KEPT="k")
    assert answers(repo) == [",,k"]


def test_what_they_say_cannot_command_a_terminal(repo: Repo) -> None:
    ready(repo, r"printf '\033]0;title\007\033[2Jfine\nCOMPLETE\n'")
    told = asked(repo).stdout
    assert told.startswith(b"== printf: COMPLETE (message ")
    assert told.endswith(b") ==\nfine\nCOMPLETE\n\n")


def test_opinions_are_not_lost_where_they_cannot_be_kept(repo: Repo) -> None:
    ready(repo, "echo fine")
    (repo.path / ".git/gitgates/messages.jsonl").mkdir()
    done = asked(repo)
    assert (done.returncode, done.stdout) == (73, b"== echo ==\nfine\n\n")


def test_nothing_is_left_running_or_lying_about(repo: Repo) -> None:
    ready(repo, "echo fine")
    asked(repo)
    left = [path.name for path in (repo.path / ".git/gitgates").rglob("stdin")]
    assert left == []


@each_case(
    ("commands", "names"),
    [
        (("codex exec -", "gemini -p x"), ("codex", "gemini")),
        (("claude -p a", "/opt/claude -p b"), ("claude 1", "claude 2")),
        (("A=1 codex", "cat; x", "'my tool' -x"), ("codex", "opinion 2", "opinion 3")),
        (("it's broken", ""), ("opinion 1", "opinion 2")),
        (("x" * 999, "$X"), ("opinion 1", "opinion 2")),
    ],
)
def test_names(commands: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert opinions.names_of(commands) == names


def test_a_large_change_is_cut_and_that_is_said() -> None:
    diff = "".join(f"diff --git a/f{n} b/f{n}\n" + f"+{'x' * 99}\n" * 1000 for n in range(5))
    question = opinions.prompt("# The change\n\n", diff.encode()).decode()
    note, _, shown = question.partition("# The change\n\n")[2].partition("\n\n")
    assert note == (
        "(Truncated: these are the first 262057 bytes of 505105. Not shown at all; read them in "
        "place: f3, f4.)"
    )
    assert diff.startswith(shown)
    assert shown.endswith("x\n")


@pytest.mark.usefixtures("out")
def test_they_wait_for_no_other_run(repo: Repo) -> None:
    """A gate holds the lock of the worktree until an opinion has been given."""
    ready(repo, 'echo > "$OUT/told"; echo fine')
    config = (repo.path / "pyproject.toml").read_text()
    waits = 'echo > "$OUT/held"; until [ -e "$OUT/told" ]; do :; done'
    repo.write("pyproject.toml", config.replace('echo ran >> "$OUT/gates"; exit 1', waits))
    run = [sys.executable, "-m", "gitgates", "run", "Stop"]
    with subprocess.Popen(run, cwd=repo.path, stdout=subprocess.DEVNULL) as other:
        held = Path(os.environ["OUT"]) / "held"
        while not held.exists():
            assert other.poll() is None
            time.sleep(0.002)
        assert asked(repo).stdout.endswith(b" ==\nfine\n\n")
        assert other.wait() == 0
