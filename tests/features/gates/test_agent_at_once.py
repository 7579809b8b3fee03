"""Hooks that run at once, are delivered twice, are killed, or leave something running."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claude_support import (
    answer_of,
    end,
    facts,
    fire,
    journal,
    recorded,
    start,
)
from process_support import has_ended, is_running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Repo

pytestmark = pytest.mark.slow

# Outside of the repository, so that what gates leave there is no change of it.
COUNT = "echo x >> ../ran-{0}; "
FAR_S = 45  # longer than anything here may take


def gates(repo: Repo, tool: str = "exit 1", stop: str = "exit 1") -> None:
    """Have a gate after each edit and one at the end, each counting how often it runs."""
    repo.config(
        f"[gates.after]\ncommand = '''{COUNT.format('tool')}{tool}'''\n"
        f"[gates.ending]\ncommand = '''{COUNT.format('stop')}{stop}'''\n"
        '[hooks.PostToolUse]\nenabled_tools = ["Edit"]\ngates = ["after"]\n'
        '[hooks.Stop]\ngates = ["ending"]\n'
        "[undo]\nenabled = false\n"
    )
    fire(repo, recorded(repo, "SessionStart"))
    repo.write("a.txt", "changed\n")


def edit(repo: Repo, number: int = 1) -> dict[str, Any]:
    return recorded(repo, "PostToolUse", "Edit", tool_use_id=f"t{number}")


def stop(repo: Repo, prompt: int = 1, **changes: Any) -> dict[str, Any]:
    return recorded(repo, "Stop", prompt_id=f"p{prompt}", background_tasks=[], **changes)


def runs(repo: Repo, gate: str) -> int:
    try:
        return (repo.path.parent / f"ran-{gate}").read_text().count("x")
    except FileNotFoundError:
        return 0


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so; fail the test where it never is."""
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def pid_in(path: Path) -> int:
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def has_read_output(repo: Repo) -> bool:
    """Return whether the hook has read what its gate said: then it knows all about the gate."""
    logs = (repo.path / ".git/gitgates/runs").rglob("*.log")
    return any(b"heard" in log.read_bytes() for log in logs)


def open_gate(repo: Repo, when: Callable[[], bool] = lambda: True) -> None:
    """Wait for a gate that reads from ../gate, and let it end as soon as something is so."""
    found: list[int] = []

    def is_read() -> bool:
        try:
            found.append(os.open(repo.path.parent / "gate", os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    until(is_read)
    try:
        until(when)
    finally:
        os.close(found[0])


@pytest.fixture
def left_over(repo: Repo) -> Iterator[Path]:
    """Return a file that takes the id of a process which is to be ended after the test."""
    path = repo.path.parent / "left-over"
    yield path
    if path.exists():
        for line in path.read_text().split():
            if is_running(int(line)):
                os.kill(int(line), signal.SIGKILL)


LEAVES = {
    "in the background": f"sleep {FAR_S} & echo $! > ../left-over; exit 1",
    "that does not want to end": f"(trap '' TERM; sleep {FAR_S}; sleep {FAR_S}) & exit 1",
    "in a session of its own": f"setsid sh -c 'echo $$ > ../left-over; sleep {FAR_S}' & exit 1",
    "of nobody": f"(setsid sh -c 'echo $$ > ../left-over; exec sleep {FAR_S}' &) ; exit 1",
}


@pytest.mark.samples(1)
@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.usefixtures("left_over")
def test_what_a_gate_leaves_running_does_not_hold_the_answer_up(repo: Repo, leaves: str) -> None:
    gates(repo, stop=LEAVES[leaves])
    began = time.monotonic()
    found = fire(repo, stop(repo))  # reads to the end of the stream, as the client does
    took_s = time.monotonic() - began
    assert found["decision"] == "block"
    assert took_s < FAR_S / 2


def all_at_once(repo: Repo, payloads: list[dict[str, Any]]) -> list[tuple[bytes, str]]:
    """Deliver all payloads without waiting for an answer; return what each said."""
    processes = [start(repo, payload) for payload in payloads]
    return [end(process) for process in processes]


@pytest.mark.thorough
def test_fifty_hooks_of_one_session(repo: Repo) -> None:
    gates(repo)
    edits = [edit(repo, number) for number in range(15)]
    stops = [stop(repo, prompt) for prompt in range(3)]
    reads = [recorded(repo, "PostToolUse", "Read", tool_use_id=f"r{n}") for n in range(14)]
    # The second delivery of a stop is known by having begun before the first one ended.
    payloads = [*stops, *stops, *edits, *reads, *edits]
    assert len(payloads) == 50
    said = all_at_once(repo, payloads)
    assert {err for _out, err in said} == {""}
    answers: dict[str, set[bytes]] = {}
    for payload, (out, _err) in zip(payloads, said, strict=True):
        answer_of(payload["hook_event_name"], out)
        what = (
            f"{payload['hook_event_name']} {payload['prompt_id']} {payload['tool_use_id']}"
            if ("tool_use_id" in payload)
            else payload["prompt_id"]
        )
        answers.setdefault(what, set()).add(out)
    assert {what: len(different) for what, different in answers.items()} == dict.fromkeys(
        answers, 1
    )
    assert (runs(repo, "tool"), runs(repo, "stop")) == (15, 3)
    found = Counter(fact["what"] for fact in journal(repo))
    once = {"snapshot": 1, "watched": 1, "rules": 1, "round": 18}
    assert found == {"event": 51, **once}
    assert Counter(fact["key"] for fact in facts(repo, "round")).most_common(1)[0][1] == 1


@pytest.mark.samples(1)
@pytest.mark.parametrize("make", [edit, stop])
def test_one_event_twice_at_once(repo: Repo, make: Callable[[Repo], dict[str, Any]]) -> None:
    gates(repo, tool="cat ../gate; exit 1", stop="cat ../gate; exit 1")
    os.mkfifo(repo.path.parent / "gate")
    processes = [start(repo, make(repo)), start(repo, make(repo))]
    open_gate(repo, lambda: len(facts(repo, "event")) == 3)
    said = [end(process) for process in processes]
    assert said[0] == said[1]
    assert b'"decision": "block"' in said[0][0]
    assert runs(repo, "tool") + runs(repo, "stop") == 1


@pytest.mark.samples(1)
@pytest.mark.parametrize("make", [edit, stop])
def test_one_event_twice_in_a_row(repo: Repo, make: Callable[[Repo], dict[str, Any]]) -> None:
    gates(repo)
    first = fire(repo, make(repo))
    assert fire(repo, make(repo)) == first
    assert runs(repo, "tool") + runs(repo, "stop") == 1


def test_a_tool_event_that_comes_again_much_later(repo: Repo) -> None:
    gates(repo)
    first = fire(repo, edit(repo))
    fire(repo, stop(repo))
    fire(repo, edit(repo, 2))
    assert fire(repo, edit(repo)) == first
    assert runs(repo, "tool") == 2


HOLDS = "echo $$ > ../left-over; echo heard; read -r line < ../gate; exit 1"  # all in one process


def test_told_to_end_a_hook_ends_its_gates(repo: Repo, left_over: Path) -> None:
    gates(repo, stop=HOLDS)
    os.mkfifo(repo.path.parent / "gate")
    process = start(repo, stop(repo))
    gate = pid_in(left_over)
    process.send_signal(signal.SIGTERM)
    out, err = end(process)
    assert "interrupted by signal 15" in answer_of("Stop", out)["systemMessage"]
    assert "interrupted by signal 15" in err
    assert has_ended(gate)
    gates(repo)
    assert fire(repo, stop(repo))["decision"] == "block"


def test_interrupted_while_it_waits_for_its_turn(repo: Repo, left_over: Path) -> None:
    gates(repo, stop=HOLDS)
    os.mkfifo(repo.path.parent / "gate")
    first = start(repo, stop(repo))
    pid_in(left_over)
    second = start(repo, stop(repo))
    until(lambda: len(facts(repo, "event")) == 3)
    second.send_signal(signal.SIGINT)
    assert end(second) == (b"", "gitgates: interrupted; no decision was made\n")
    open_gate(repo)
    assert answer_of("Stop", end(first)[0])["decision"] == "block"


def test_a_hook_is_killed_and_the_next_one_works(repo: Repo, left_over: Path) -> None:
    gates(repo, stop=HOLDS)
    os.mkfifo(repo.path.parent / "gate")
    process = start(repo, stop(repo))
    gate = pid_in(left_over)
    until(lambda: has_read_output(repo))
    process.kill()
    process.communicate()
    until(lambda: not is_running(gate))
    gates(repo)
    assert fire(repo, stop(repo))["decision"] == "block"
    assert [one["outcome"] for one in facts(repo, "round")] == ["blocked"]


def test_gates_that_do_not_want_to_end_are_ended_too(repo: Repo, left_over: Path) -> None:
    stays = f"sleep {FAR_S}; sleep {FAR_S}"
    gates(repo, stop=f"trap '' TERM; echo $$ > ../left-over; echo heard; {stays}")
    process = start(repo, stop(repo))
    gate = pid_in(left_over)
    until(lambda: has_read_output(repo))
    process.kill()
    process.communicate()
    until(lambda: not is_running(gate))


@pytest.mark.samples(1)
@pytest.mark.parametrize("make", [edit, stop])
def test_the_first_of_two_deliveries_is_killed(
    repo: Repo, left_over: Path, make: Callable[[Repo], dict[str, Any]]
) -> None:
    gates(repo, tool=HOLDS, stop=HOLDS)
    os.mkfifo(repo.path.parent / "gate")
    first = start(repo, make(repo))
    gate = pid_in(left_over)
    second = start(repo, make(repo))
    until(lambda: len(facts(repo, "event")) == 3 and has_read_output(repo))
    first.kill()
    first.communicate()
    left_over.unlink()
    again = pid_in(left_over)  # the second one has its turn
    until(lambda: not is_running(gate))  # or it would take what is for the second one
    open_gate(repo)
    out, _err = end(second)
    assert b'"decision": "block"' in out
    assert has_ended(again)
    assert runs(repo, "tool") + runs(repo, "stop") == 2


def test_an_edit_takes_no_snapshot(repo: Repo) -> None:
    gates(repo)
    folder = repo.path.parent / "bin"
    folder.mkdir()
    calls = repo.path.parent / "git-calls"
    real = repo.ask("sh", "-c", "command -v git").stdout.decode().strip()
    wrapper = folder / "git"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}"}
    fire(repo, edit(repo, 1), **env)
    fire(repo, recorded(repo, "PostToolUse", "Read"), **env)
    fire(repo, recorded(repo, "PreToolUse", "Edit"), **env)
    assert not calls.exists(), calls.read_text()
    assert runs(repo, "tool") == 1
    fire(repo, stop(repo), **env)
    assert "write-tree" in calls.read_text()
