"""The kept state of a long journal says the same as the journal itself, or nothing."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from agent_support import COUNT, Agent
from conftest import Repo
from session_support import begin

from gitgates.core.agent_types import Payload
from gitgates.drivers import call
from gitgates.git.repo import find_repo
from gitgates.journal import folded
from gitgates.journal.entries import SESSION, RoundEntry, Session
from gitgates.journal.journal import fact_of
from gitgates.store.log import Journal, read_lines

CONFIG = f"""
[gates.check]
command = '{COUNT}; ! grep -q bad seed.py'
[hooks.Stop]
gates = ["check"]
[hooks.PostToolUse]
gates = ["check"]
"""


def fact(hook: str, prompt: int, outcome: str) -> dict[str, Any]:
    """Return a round of gates as the journal has it."""
    key = f"{hook}:{prompt}:{outcome}"
    return fact_of(RoundEntry(hook, "", str(prompt), "check", outcome=outcome, key=key))


def long_journal(path: Path) -> Journal:
    """Return a journal of 2,000 rounds, of tools and ends of 100 prompts."""
    journal, chance = Journal(str(path / "state/sessions/s.jsonl")), random.Random(1)
    facts: list[dict[str, Any]] = []
    for prompt in range(100):
        facts.append({"what": "prompt", "prompt_id": f"p{prompt}", "text": "go"})
        for _time in range(18):
            outcome = chance.choice(("passed", "passed", "blocked"))
            facts.append(fact("PostToolUse", prompt + 1, outcome))
        facts += [
            fact("Stop", prompt + 1, outcome)
            for outcome in (chance.choice(("passed", "blocked")), "passed")
        ]
    journal.append(*facts)
    return journal


def recalled(journal: Journal) -> tuple[Session, Session]:
    """Return the whole state of a journal, and that of its kept beginning."""
    whole = SESSION.new()
    SESSION.take(whole, journal.read())
    folded.remember(journal, whole)
    state = folded.recall(Journal(journal.path_abs))
    assert state
    return SESSION.freeze(whole), SESSION.freeze(state)


def test_the_state_of_a_long_journal(tmp_path: Path) -> None:
    journal = long_journal(tmp_path)
    whole, kept = recalled(journal)
    assert len(kept.rounds) < 400 < len(whole.rounds)
    assert kept.blocks() == whole.blocks() > 30
    assert kept.rounds[-200:] == whole.rounds[-200:]
    for prompt in map(str, range(1, 101)):
        assert kept.blocks(prompt) == whole.blocks(prompt)
        cycle = ("Stop", "", prompt, "check")
        assert kept.rounds_of(*cycle) == whole.rounds_of(*cycle)
    assert kept._replace(rounds=()) == whole._replace(rounds=())


def test_nothing_but_what_is_new_is_read_again(tmp_path: Path) -> None:
    journal = long_journal(tmp_path)
    recalled(journal)
    journal.append(fact("Stop", 100, "blocked"))
    again = Journal(journal.path_abs)
    folded.recall(again)
    assert [entry["outcome"] for entry in again.read_new()] == ["blocked"]


@pytest.mark.parametrize("what", ["shorter", "other", "empty", "torn", "garbage", "version"])
def test_a_state_that_is_not_of_this_journal_counts_for_nothing(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = long_journal(tmp_path)
    recalled(journal)
    log, kept = Path(journal.path_abs), Path(journal.path_abs).with_suffix(".folded")
    lines = log.read_bytes()
    match what:
        case "shorter":
            log.write_bytes(lines[: len(lines) // 2])
        case "other":
            log.write_bytes(lines.replace(b"passed", b"failed"))
        case "empty":
            kept.write_bytes(b"")
        case "torn":
            kept.write_bytes(kept.read_bytes()[:-1])
        case "garbage":
            kept.write_bytes(random.Random(1).randbytes(10_000))
        case _:
            monkeypatch.setattr(folded, "_FORMAT", ("another",))
    again = Journal(journal.path_abs)
    assert folded.recall(again) is None
    assert again.read_to == 0


def work(agent: Agent) -> list[Any]:
    """Return the answers to a session in which gates pass and fail, and nothing is new."""
    answers = []
    for turn in range(3):
        agent.prompt()
        for content in ("bad\n", f"good = {turn}\n"):
            agent.pre("Edit", "seed.py")
            agent.repo.write("seed.py", content)
            answers += [agent.post("Edit", "seed.py"), agent.send("Stop"), agent.send("Stop")]
    return answers


@pytest.mark.slow
def test_a_session_is_the_same_with_a_kept_state(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call, "_LONG", 1)
    agent = begin(repo, CONFIG)
    answers, runs = work(agent), agent.count_abs.read_bytes()
    sessions = repo.path / ".git/gitgates/sessions"
    assert (sessions / "s1.folded").exists()
    monkeypatch.setattr(call, "_LONG", 1 << 30)
    agent.count_abs.unlink()
    for path in sessions.iterdir():
        os.unlink(path)
    plain = Agent(repo, "s1")
    repo.write("seed.py", "seed = 1\n")
    plain.start()
    plain.prompt()
    assert json.dumps(work(plain)) == json.dumps(answers)
    assert plain.count_abs.read_bytes() == runs
    assert any(answers)
    assert not (sessions / "s1.folded").exists()


def test_what_was_appended_is_read_whole_where_it_is_asked_for(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call, "_LONG", 1)
    agent = begin(repo, "[guard]\nenabled = true\n")
    agent.pre("Edit", "seed.py")
    journal = Journal(f"{repo.path}/.git/gitgates/sessions/s1.jsonl")
    facts = [*Journal(journal.path_abs).read()]
    late = call.Call(Payload(session="s1"), find_repo(str(repo.path), dict(os.environ)))
    late.read()
    assert late.entries == facts
    late.record(folded_entry := RoundEntry("Stop", "", "1", "check", "passed"))
    assert late.entries == [*facts, late.entries[-1]]
    assert late.entries[-1]["outcome"] == folded_entry.outcome
    assert read_lines(journal.path_abs).count(b"\n") == len(late.entries)
