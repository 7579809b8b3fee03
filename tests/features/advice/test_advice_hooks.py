"""Advice: whom it is for, in which order, and what its hooks come to."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from agent_support import Agent
from config_support import table
from conftest import Repo
from each_case import each_case
from session_support import begin

from gitgates.config.load import load
from gitgates.core.lifecycle import AGENT_KINDS, GIT_KINDS
from gitgates.core.policy import Need, policies_at
from gitgates.core.types import Config
from gitgates.drivers.needs import git_hooks, needed_events
from gitgates.features.advice.items import (
    Advice,
    Identity,
    applicable,
    describe,
    guidance,
    hooks_at,
    identify,
    target_of,
)


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITGATES_RIG", "GITGATES_ROLE", "GITGATES_AGENT"):
        monkeypatch.delenv(name, raising=False)


# Whom it is for

WHO = Identity(rig="beads", role="polecat", agent="toast")


@each_case(
    ("target", "applies"),
    [
        ({}, True),
        ({"rig": "beads"}, True),
        ({"rig": "gastown"}, False),
        ({"role": "polecat"}, True),
        ({"role": "crew"}, False),
        ({"agent": "toast"}, True),
        ({"agent": "jam"}, False),
        ({"rig": "beads", "role": "polecat", "agent": "toast"}, True),
        # Matching any one of them would leak it to others.
        ({"rig": "gastown", "role": "polecat", "agent": "toast"}, False),
        ({"rig": "beads", "role": "crew", "agent": "toast"}, False),
        ({"rig": "beads", "role": "polecat", "agent": "jam"}, False),
    ],
)
def test_all_targets_must_match(target: dict[str, Any], *, applies: bool) -> None:
    assert bool(applicable([table(Advice, id="a", **target)], WHO)) is applies


@each_case("target", ["rig", "role", "agent"])
def test_who_has_no_name_is_no_target(target: str) -> None:
    fields: dict[str, Any] = {target: "x"}
    assert applicable([table(Advice, id="a", **fields)], Identity()) == []


def test_a_bare_agent_name_means_a_plugins_agent_too() -> None:
    advice = [table(Advice, id="a", agent="reviewer")]
    assert applicable(advice, Identity(agent="kit:reviewer")) == advice
    assert (
        applicable([table(Advice, id="a", agent="kit:reviewer")], Identity(agent="reviewer")) == []
    )


@each_case(
    ("status", "applies"),
    [("open", True), ("pinned", True), ("closed", False), ("tombstone", False)],
)
def test_closed_advice_is_for_nobody(status: str, *, applies: bool) -> None:
    assert bool(applicable([table(Advice, id="a", status=status)], Identity())) is applies


def test_order() -> None:
    def one(name: str, **more: Any) -> Advice:
        return table(Advice, id=name, **more)

    advice = [
        one("global", priority=0),
        one("later", rig="beads", priority=1, created_at="2026-02-01T00:00:00Z"),
        one("earlier", rig="beads", priority=1, created_at="2026-01-01T00:00:00Z"),
        one("also earlier", rig="beads", priority=1, created_at="2026-01-01T00:00:00Z"),
        one("urgent", rig="beads", priority=0, created_at="2026-03-01T00:00:00Z"),
        one("role", role="polecat", priority=4),
        one("role and rig", role="polecat", rig="beads", priority=3),
        one("agent", agent="toast", priority=4),
    ]
    assert [found.id for found in applicable(advice, WHO)] == [
        *("agent", "role and rig", "role", "urgent", "earlier", "also earlier", "later", "global")
    ]


def test_the_oldest_first_by_fractions_of_a_second() -> None:
    times = ("2026-01-31T12:00:00.500000Z", "2026-01-31T12:00:01Z", "2026-01-31T12:00:00Z")
    found = applicable([table(Advice, id=time, created_at=time) for time in times], WHO)
    assert [one.id for one in found] == [times[2], times[0], times[1]]


def test_hooks_are_those_with_a_command_at_the_trigger() -> None:
    advice = [
        table(Advice, id="guidance"),
        table(Advice, id="push", hook_command="true", hook_trigger="before-push"),
        table(Advice, id="commit", hook_command="true", hook_trigger="before-commit"),
    ]
    both = hooks_at(advice, WHO, ("before-commit", "before-push"))
    assert [one.id for one in both] == ["commit", "push"]
    assert [one.id for one in hooks_at(advice, WHO, ("session-end",))] == []


@each_case(
    ("env", "agent_type", "options", "found"),
    [
        ({}, "", {}, Identity()),
        ({}, "reviewer", {}, Identity(agent="reviewer")),
        ({"GITGATES_AGENT": "toast"}, "reviewer", {}, Identity(agent="toast")),
        (
            {"GITGATES_RIG": "a", "GITGATES_ROLE": "b", "GITGATES_AGENT": "c"},
            "",
            {"rig": "x"},
            Identity(rig="x", role="b", agent="c"),
        ),
    ],
)
def test_who_it_is(
    env: dict[str, str], agent_type: str, options: dict[str, str], found: Identity
) -> None:
    assert identify(env, agent_type, **options) == found


@each_case(
    ("rig", "role", "agent", "shown"),
    [
        ("", "", "", ""),
        ("beads", "", "", "beads"),
        ("beads", "polecat", "", "beads/polecat"),
        ("", "polecat", "", "*/polecat"),
        ("", "", "toast", "*/*/toast"),
    ],
)
def test_target(rig: str, role: str, agent: str, shown: str) -> None:
    assert target_of(table(Advice, rig=rig, role=role, agent=agent)) == shown


def test_description() -> None:
    hook = table(Advice, id="a", title="A", hook_command="true", hook_trigger="before-push")
    assert describe(hook) == "a · A [before-push: true] (warn)"
    assert describe(table(Advice, id="a", title="A")) == "a · A"


def test_guidance_has_a_budget() -> None:
    advice = [
        table(Advice, id=str(n), title=f"Title {n}", rig="beads" * (n == 2)) for n in range(4)
    ]
    who = Identity(rig="beads")
    assert guidance(advice, who, 22) == (
        "Advice for your work here:\n- Title 2\n- Title 0\n(and 2 more: gitgates advice list)"
    )
    assert guidance([], who, 22) == ""


def test_hooks_are_told_in_a_line_for_each_moment() -> None:
    def hook(title: str, trigger: str, how: str = "warn", rig: str = "") -> Advice:
        return table(
            Advice,
            title=title,
            hook_command="x",
            hook_trigger=trigger,
            hook_on_failure=how,
            rig=rig,
        )

    advice = [
        hook("Test", "before-commit"),
        hook("Lint", "before-commit", "block", rig="beads"),
        hook("Count", "before-commit", "ignore"),
        hook("Elsewhere", "before-push", rig="other"),
        hook("Tidy" * 100, "session-end"),
        table(Advice, title="Think"),
    ]
    assert guidance(advice, Identity(rig="beads"), 400).split("\n") == [
        "Commands that run as hooks of your work (gitgates advice hooks):",
        f"- session-end: {'Tidy' * 71}…",
        "- before-commit: Lint (blocks), Test",
        "Advice for your work here:",
        "- Think",
    ]


# What it costs where there is none

GATES = '[gates.g]\ncommand = "true"\n[hooks.Stop]\ngates = ["g"]\n'
UNGUARDED = (
    "[guard]\nenabled = false\n[undo]\nenabled = false\n"  # which refuses to go round what blocks
)
HOOK = '[[advice]]\ntitle = "A"\nhook_command = "{}"\nhook_trigger = "{}"\nhook_on_failure = "{}"\n'


NO_GUARD = "[guard]\nenabled = false\n[undo]\nenabled = false\n"


def configured(repo: Repo, text: str) -> Config:
    repo.config(text)
    config = load(str(repo.path))
    assert config is not None
    return config


def test_without_advice_it_is_asked_nowhere(repo: Repo) -> None:
    config = configured(repo, GATES)
    for kind in (*AGENT_KINDS, *GIT_KINDS):
        assert "advice" not in [row.name for row, *_rest in policies_at(config, kind)]


@pytest.mark.parametrize(
    ("trigger", "events", "hooks"),
    [
        ("session-end", {"turn-end", "session-end"}, ()),
        ("before-commit", {"before-tool"}, ("pre-commit", "pre-merge-commit")),
        ("before-push", {"before-tool"}, ("pre-push",)),
        ("before-handoff", {"before-compact"}, ()),
    ],
)
def test_events_that_a_trigger_needs(
    repo: Repo, trigger: str, events: set[str], hooks: tuple[str, ...]
) -> None:
    config = configured(repo, HOOK.format("true", trigger, "warn") + NO_GUARD)
    always = {"session-start", "prompt", "subagent-start"}
    found: dict[str, Need] = {need.kind: need for need in needed_events(config)}
    assert found.keys() == events | always
    assert all(found[kind].more_s == 45.0 for kind in events)
    assert git_hooks(config) == hooks


# Hooks of git


def git(repo: Repo, *args: str) -> tuple[int, str]:
    done = subprocess.run(["git", *args], cwd=repo.path, capture_output=True, check=False)
    return done.returncode, done.stderr.decode()


def ledger(repo: Repo) -> list[tuple[str, str, str]]:
    path = repo.path / ".git/gitgates/ledger.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    assert all(len(one["hash"]) == 64 and one["duration_s"] >= 0 for one in found)
    return [(one["id"], one["trigger"], one["status"]) for one in found]


def test_all_run_and_one_blocks(repo: Repo) -> None:
    hooks = "".join(
        HOOK.format(f"echo {how}; false", "before-commit", how).replace('"A"', f'"{how}"')
        for how in ("block", "warn", "ignore")
    )
    repo.config(f"{hooks}{HOOK.format('touch ../ran', 'before-push', 'block')}")
    repo.shim("pre-commit")
    repo.write("a.txt", "a\n")
    repo.git("add", "-A")
    status, said = git(repo, "commit", "-qm", "a")
    lines = [line for line in said.splitlines() if not line.startswith("gitgates: details")]
    assert [" ".join(line.split()[:2]) for line in lines[:4]] == [
        *("advice:block failed", "| block", "advice:warn failed", "| warn")
    ]
    assert lines.pop(4).startswith("advice:ignore  passed")
    blocked = "gitgates pre-commit: blocked by `advice:block`"
    assert (status, lines[4]) == (1, blocked)
    statuses = {"block": "failed", "warn": "failed", "ignore": "passed"}
    assert ledger(repo) == [(how, "before-commit", statuses[how]) for how in statuses]
    assert not (repo.path.parent / "ran").exists()


def test_it_runs_after_the_gates_and_only_if_they_let_it(repo: Repo) -> None:
    gates = '[gates.g]\ncommand = "test ! -e bad"\n[hooks.pre-commit]\ngates = ["g"]\n'
    repo.config(gates + HOOK.format("echo $GITGATES_ADVICE", "before-commit", "block"))
    repo.shim("pre-commit")
    repo.write("bad", "")
    repo.git("add", "-A")
    assert git(repo, "commit", "-qm", "a")[0] == 1
    assert ledger(repo) == []
    os.unlink(repo.path / "bad")
    repo.git("add", "-A")
    assert git(repo, "commit", "-qm", "a")[0] == 0
    assert ledger(repo) == [("a", "before-commit", "passed")]
    done = repo.gitgates("run", "pre-commit", "--format", "json", "--all-files")
    assert [gate["name"] for gate in json.loads(done.stdout)["results"]] == ["g", "advice:a"]


def test_it_sees_what_is_committed(repo: Repo) -> None:
    repo.config(HOOK.format("grep -q fine a.txt", "before-commit", "block"))
    repo.shim("pre-commit")
    repo.write("a.txt", "fine\n")
    repo.git("add", "-A")
    repo.write("a.txt", "broken\n")
    assert git(repo, "commit", "-qm", "a")[0] == 0
    assert (repo.path / "a.txt").read_text() == "broken\n"


@pytest.mark.parametrize("gates", ["", GATES.replace("Stop", "pre-commit")])
def test_what_is_not_part_of_the_commit_does_not_count(repo: Repo, gates: str) -> None:
    hook = HOOK.format("false", "before-commit", "block")
    repo.config(gates + hook)
    repo.shim("pre-commit")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "a", "--no-verify")
    repo.config(gates or "jobs = 1\n")  # taken away, and not staged
    assert git(repo, "commit", "-qm", "b", "--allow-empty")[0] == 1
    repo.git("commit", "-qam", "b", "--no-verify")
    if gates:  # else there is nothing that asks for the committed configuration
        repo.config(gates + hook)
        assert git(repo, "commit", "-qm", "c", "--allow-empty")[0] == 0


def test_stage_of_the_framework(repo: Repo) -> None:
    repo.config(HOOK.format("echo FRAMEWORK; false", "before-commit", "block"))
    done = repo.gitgates("pre-commit-hook", "pre-commit", "pyproject.toml")
    assert done.returncode == 1
    assert b"FRAMEWORK" in done.stdout + done.stderr
    assert ledger(repo) == [("a", "before-commit", "failed")]


def test_other_targets_and_skips(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.config(HOOK.format("false", "before-commit", "block") + 'rig = "beads"\n')
    repo.shim("pre-commit")
    repo.git("add", "-A")
    assert git(repo, "commit", "-qm", "a")[0] == 0
    monkeypatch.setenv("GITGATES_RIG", "beads")
    assert git(repo, "commit", "-qm", "a", "--allow-empty")[0] == 1
    monkeypatch.setenv("GITGATES_SKIP", "advice:a")
    assert git(repo, "commit", "-qm", "a", "--allow-empty")[0] == 0


def test_explain_shows_it_with_its_origin(repo: Repo) -> None:
    repo.config(HOOK.format("make test", "before-commit", "block"))
    done = repo.gitgates("explain", "pre-commit")
    assert (
        done.stdout.decode()
        .partition("\n\n")[2]
        .startswith(
            "1. advice:a: always runs\n"
            "   checks    advice: A\n"
            "   command   make test\n"
            "   timeout   30 s\n"
        )
    )


def test_run_by_hand_in_the_current_folder(repo: Repo) -> None:
    repo.config(HOOK.format("pwd", "before-handoff", "block"))
    (repo.path / "sub").mkdir()
    command = ("advice", "run", "--trigger", "before-handoff")
    assert repo.gitgates(*command).returncode == 0
    repo.config(HOOK.format("echo no; false", "before-handoff", "block"))
    done = repo.gitgates(*command)
    assert done.returncode == 1
    assert b"gitgates manual: blocked by `advice:a`" in done.stdout
    done = repo.gitgates("advice", "run", "--trigger", "session-end")
    said = b"gitgates: no advice runs at session-end for you\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", said)


# An agent's events


def advised(repo: Repo, trigger: str, how: str, command: str = "echo SAYS; false") -> Agent:
    ran = f"echo x >> ../ran; {command}"
    return begin(repo, f"{UNGUARDED}{HOOK.format(ran, trigger, how)}")


def for_workers(repo: Repo, how: str, command: str = "echo SAYS; false") -> Agent:
    """Begin a session where a type of sub-agents has a hook before commits."""
    hook = HOOK.format(f"echo x >> ../ran; {command}", "before-commit", how)
    return begin(repo, f'{UNGUARDED}{hook}agent = "worker"\n')


def shell(agent: Agent, command: str, **more: Any) -> dict[str, Any]:
    more = {"agent_id": "a1", "agent_type": "worker", **more}
    return agent.send("PreToolUse", tool_name="Bash", tool_input={"command": command}, **more)


def ran(repo: Repo) -> int:
    path = repo.path.parent / "ran"
    return path.read_text().count("x") if path.exists() else 0


def decision(answer: dict[str, Any]) -> str:
    return str(answer.get("hookSpecificOutput", {}).get("permissionDecision", ""))


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("git commit -m x", True),
        ("cd sub && git -C .. -c a.b=c commit -am x", True),
        ("FOO=1 /usr/bin/git commit", True),
        ("bash -c 'git commit -m x'", True),
        ("git log; git commit --no-verify", True),
        ("git commit-tree HEAD", False),
        ("echo git commit", False),
        ("git log --grep commit", False),
        ("git push", False),
        ("ls commit", False),
    ],
)
def test_commands_that_commit(repo: Repo, command: str, *, runs: bool) -> None:
    agent = for_workers(repo, "block")
    assert decision(shell(agent, command)) == ("deny" if runs else "")
    assert ran(repo) == runs


def test_another_delivery_of_the_same_call_runs_nothing(repo: Repo) -> None:
    agent = for_workers(repo, "block")
    first = shell(agent, "git commit", tool_use_id="t1")
    assert shell(agent, "git commit", tool_use_id="t1") == first
    assert ran(repo) == 1


def test_what_only_the_agents_hook_knows_to_be_for_a_sub_agent_runs_there(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = HOOK.format("echo x >> ../ran; false", "before-commit", "block")
    agent = begin(repo, f'{hook}agent = "reviewer"\n{hook}id = "for-all"\n')
    assert repo.gitgates("install-hooks").returncode == 0
    who = {"agent_id": "a1", "agent_type": "reviewer"}
    assert decision(shell(agent, "git commit", **who)) == "deny"
    assert ran(repo) == 1
    assert decision(shell(agent, "git commit", agent_id="a2", agent_type="other")) == ""
    monkeypatch.setenv("GITGATES_AGENT", "reviewer")  # which git's hook sees
    assert decision(shell(agent, "git commit", **who)) == ""
    assert ran(repo) == 1


def test_a_warning_reaches_agent_and_person(repo: Repo) -> None:
    answer = shell(for_workers(repo, "warn"), "git commit")
    assert decision(answer) == ""
    assert "SAYS" in answer["hookSpecificOutput"]["additionalContext"]
    assert "`advice:a` failed (exit status 1)" in answer["systemMessage"]


def test_it_runs_in_the_agents_folder(repo: Repo) -> None:
    agent = for_workers(repo, "warn", "pwd; false")
    (repo.path / "sub").mkdir()
    answer = shell(agent, "git commit", cwd=str(repo.path / "sub"))
    assert f"{repo.path}/sub" in answer["hookSpecificOutput"]["additionalContext"]


def test_no_word_of_the_event_is_a_word_of_the_command(repo: Repo, tmp_path: Path) -> None:
    agent = for_workers(repo, "warn", "env > ../env")
    shell(agent, "git commit -m '$(touch ../hacked)'")
    env = (repo.path.parent / "env").read_text()
    assert "GITGATES_ADVICE=a\n" in env
    assert "GITGATES_ADVICE_TRIGGER=before-commit\n" in env
    assert "hacked" not in env
    assert not list(tmp_path.rglob("hacked"))


def test_ends_of_a_session(repo: Repo) -> None:
    agent = advised(repo, "session-end", "block", "test -e good")
    assert agent.stop()["decision"] == "block"
    assert agent.stop(again=True)["decision"] == "block"
    assert ran(repo) == 2
    agent.write("good", "")
    assert agent.stop(again=True) == {}
    agent.prompt()
    assert agent.stop() == {}
    assert agent.send("SessionEnd", reason="other") == {}
    assert ran(repo) == 3
    agent.write("more", "")
    agent.prompt()
    agent.stop()
    assert ran(repo) == 4


def test_the_end_of_the_session_is_the_second_chance(repo: Repo) -> None:
    agent = advised(repo, "session-end", "warn", "true")
    agent.send("SessionEnd", reason="other")
    assert ran(repo) == 1


def test_where_gates_keep_the_agent_at_work_no_session_ends(repo: Repo) -> None:
    gates = '[gates.g]\ncommand = "test ! -e bad"\n[hooks.Stop]\ngates = ["g"]\n'
    agent = begin(repo, gates + HOOK.format("echo x >> ../ran", "session-end", "block"))
    agent.write("bad", "")
    assert agent.stop()["decision"] == "block"
    assert ran(repo) == 0
    os.unlink(repo.path / "bad")
    agent.write("good", "")
    assert agent.stop(again=True) == {}
    assert ran(repo) == 1


def test_a_dry_question_runs_nothing(repo: Repo) -> None:
    advised(repo, "session-end", "block")
    done = repo.gitgates("explain", "Stop", "--session", "s1")
    assert "1. advice:a: always runs" in done.stdout.decode()
    assert "would run advice:a" in done.stdout.decode()
    assert ran(repo) == 0
