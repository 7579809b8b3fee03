"""What our hooks do in the real clients of other agents: the table of abilities, and no harm."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import abilities
import others
import pytest
from abilities import ABILITIES
from claude import Run, Turn
from host_scene import HostScene, need
from others import agent, edit, report, shell, write
from scene import CHECK, STOP, gitgates_abs
from test_review import ASKS, DONE, LINES, REVIEW
from test_review_strict import COMPLETE

BEFORE = '[hooks.PreToolUse]\nenabled_tools = ["Edit", "Write"]\ngates = ["check"]\n'
AFTER = """
[gates.look]
command = ["echo", "LOOKED-AT"]
pass_files = true
on_pass = "BLOCK"
[hooks.PostToolUse]
enabled_tools = ["Edit", "Write"]
gates = ["look"]
"""
STRICT = '[review]\nmode = "require"\n' + REVIEW
MEND = "mv bad.txt good.txt"


def said(**seen: bool) -> str:
    """Return what was seen, in the words of the table."""
    return ", ".join(word.replace("_", " ") for word, is_so in seen.items() if is_so)


def told(run: Run, request: int) -> str:
    """Return what a request told the model; nothing where there was none."""
    return run.told(request) if request < run.turns else ""


def named(text: str) -> bool:
    """Return whether somebody was told which gate failed, and what it printed."""
    return "check" in text and "BAD-IS-THERE" in text


def deny(host: str, folder: Path) -> str:
    scene = HostScene(folder, host, config=CHECK + BEFORE)
    scene.repo.write("bad.txt", "was here before")
    run = scene.session(write(host, scene.at("a.txt"), "x\n"), "end")
    return said(denied=not scene.at("a.txt").exists(), agent_told=named(told(run, 1)))


def feed(host: str, folder: Path) -> str:
    scene = HostScene(folder, host, config=AFTER)
    file = scene.at("a.txt")
    run = scene.session(write(host, file, "one\n"), edit(host, file, "one", "two"), "end")
    assert file.read_text() == "two\n"
    return said(agent_told="LOOKED-AT a.txt" in told(run, 2))


def block(host: str, folder: Path) -> str:
    scene = HostScene(folder, host)
    bad, mend = write(host, scene.at("bad.txt"), "x\n"), shell(host, MEND)
    run = scene.session(bad, "first", mend, "second")
    return said(blocked=named(told(run, 2)), then_allowed=(run.turns, scene.ran()) == (4, 2))


def retries(host: str, folder: Path) -> str:
    scene = HostScene(folder, host, config=CHECK + STOP + "max_retries = 2\n")
    again: list[Turn] = [
        turn for number in range(3) for turn in (shell(host, f"echo {number} >> b.txt"), "no")
    ]
    run = scene.session(write(host, scene.at("bad.txt"), "x\n"), "no", *again)
    blocked = [named(told(run, turn)) for turn in range(1, run.turns)]
    return said(blocked=blocked.count(True) == 2, then_allowed=run.turns == 6)


def review(host: str, folder: Path) -> str:
    scene = HostScene(folder, host, config=REVIEW)
    work = write(host, scene.at("a.py"), LINES)
    run = scene.session(work, "finished", shell(host, DONE), "end")
    return said(blocked=ASKS in told(run, 2), then_allowed=run.turns == 4)


def strict(host: str, folder: Path) -> str:
    scene = HostScene(folder, host, config=STRICT)
    start = agent(host, "WORD", "reviewer")
    turns: list[Turn] = [write(host, scene.at("a.py"), LINES), "finished", *start, "end"]
    # Twice: where none hears of its token in the beginning, it is sent back with one.
    reviewer: list[Turn] = [shell(host, COMPLETE), report(host, "REPORT")] * 2
    run = scene.session(*turns, agents={"WORD": reviewer})
    blocked = "has not decided on this change yet" in told(run, 2)
    allowed = blocked and run.turns == 3 + len(start)
    reminder = ASKS in told(run, 2)
    return said(reminder_instead=reminder, blocked=blocked, then_allowed=allowed)


def subagent(host: str, folder: Path) -> str:
    scene = HostScene(folder, host, config=CHECK + '[hooks.SubagentStop]\ngates = ["check"]\n')
    bad, mend = write(host, scene.at("bad.txt"), "x\n"), shell(host, MEND)
    worker: list[Turn] = [bad, report(host, "FIRST"), mend, report(host, "SECOND")]
    run = scene.session(*agent(host, "WORD"), "end", agents={"WORD": worker})
    reports = run.told_ever()
    assert "FIRST" in reports or "SECOND" in reports
    return said(blocked=named(run.told_ever("agent WORD")), then_allowed="SECOND" in reports)


SCENARIOS: dict[str, Callable[[str, Path], str]] = {
    abilities.DENY: deny,
    abilities.FEED: feed,
    abilities.BLOCK: block,
    abilities.RETRIES: retries,
    abilities.REVIEW: review,
    abilities.STRICT: strict,
    abilities.SUBAGENT: subagent,
}
each_host = pytest.mark.parametrize("host", others.HOSTS)


def test_the_table_has_a_row_for_each_agent_and_a_cell_for_each_ability() -> None:
    assert {host: set(row) for host, row in ABILITIES.items()} == {
        host: set(SCENARIOS) for host in others.HOSTS
    }


@each_host
@pytest.mark.parametrize("ability", SCENARIOS, ids=lambda name: SCENARIOS[name].__name__)
def test_an_ability(host: str, ability: str, tmp_path: Path) -> None:
    need(host)
    expected, _, why = ABILITIES[host][ability].partition(": ")
    if expected == "not tested":
        pytest.skip(f"{host}: {why}")
    seen = SCENARIOS[ability](host, tmp_path)
    assert seen == ("" if expected == "not possible" else expected)


@each_host
def test_without_a_configuration_nobody_hears_of_us(host: str, tmp_path: Path) -> None:
    need(host)
    scene = HostScene(tmp_path, host)
    scene.at("pyproject.toml").unlink()
    scene.commit()
    run = scene.session(write(host, scene.at("bad.txt"), "x\n"), "end")
    assert (run.end["exit_status"], run.turns, scene.ran()) == (0, 2, 0)
    assert "gitgates" not in run.told_ever().replace(str(tmp_path), "")
    journals = scene.at(".git/gitgates/sessions").glob("*.jsonl")
    facts = [line for journal in journals for line in journal.read_text().splitlines()]
    assert {json.loads(fact)["what"] for fact in facts} <= {"note"}


@each_host
def test_without_our_program_the_agent_goes_on(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(host)
    scene = HostScene(tmp_path, host, config=CHECK + BEFORE + STOP)
    folders = os.environ["PATH"].split(os.pathsep)
    others_only = [folder for folder in folders if not Path(folder, "gitgates").exists()]
    for file in scene.client.home.glob(".*/config.*"):  # a person's settings have its whole path
        file.write_text(file.read_text().replace(gitgates_abs(), "/gone/gitgates"))
    monkeypatch.setenv("PATH", os.pathsep.join(others_only))
    run = scene.session(write(host, scene.at("bad.txt"), "x\n"), "end")
    assert scene.at("bad.txt").exists()
    assert (run.end["exit_status"], run.turns) == (0, 2)


def test_copilot_reads_the_settings_of_claude_too_and_each_gate_runs_once(tmp_path: Path) -> None:
    need("copilot")
    scene = HostScene(tmp_path, "copilot", "claude")
    mend = shell("copilot", MEND)
    run = scene.session(write("copilot", scene.at("bad.txt"), "x\n"), "first", mend, "second")
    assert told(run, 2).count("BAD-IS-THERE") == 1
    assert (run.turns, scene.ran()) == (4, 2)


def test_codex_copilot_gemini_qwen_and_droid_in_one_repository(tmp_path: Path) -> None:
    for host in others.USUAL:
        need(host)
    scene = HostScene(tmp_path, *others.USUAL)
    for number, host in enumerate(others.USUAL, 1):
        mend = shell(host, f"rm bad.txt; touch {host}")
        run = scene.session(
            *(write(host, scene.at("bad.txt"), "x\n"), "first", mend, "second"), host=host
        )
        assert named(told(run, 2)), host
        assert (run.turns, scene.ran()) == (4, 2 * number), host
        assert scene.at(host).exists()
