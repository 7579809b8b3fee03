"""Intents: the handshake, the gatekeeper, and what is compared afterwards; in process."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import Any

import pytest
from agent_support import Agent
from conftest import Repo
from each_case import each_case
from session_support import as_person, begin

from gitgates.features.intents import gatekeeper, lease
from gitgates.features.intents.gatekeeper import request
from gitgates.features.intents.intent import Intent
from gitgates.features.intents.lease import acquire, holder_of
from gitgates.features.intents.scope import is_inside, wrong_pattern

FILE = ".orchestration/active_intents.yaml"
INTENTS = """\
active_intents:
  - id: INT-001
    title: Limit the rate
    status: IN_PROGRESS
    owned_scope: ["src/api/**", "!src/api/secret.py"]
    constraints: [No new dependency]
    acceptance_criteria: [Answers 429]
  - id: INT-002
    title: Sort the list
    status: IN_PROGRESS
    owned_scope: ["src/web/**"]
  - id: INT-003
    title: Done before
    status: COMPLETED
    owned_scope: ["old/**"]
"""
REQUIRED = "[intents]\nrequired = true\n"
OPTIONAL = "[intents]\n"
LIST = """\
  gitgates intent select INT-001  # Limit the rate (src/api/**, !src/api/secret.py)
  gitgates intent select INT-002  # Sort the list (src/web/**)"""
NEEDED = (
    "gitgates: This repository requires an intent to be selected before anything is written. "
    "Select the one that matches your task; if none does, ask the person."
    "\n"
)
NONE = (
    f"None can be selected: {FILE}, as committed or as approved by a person in a terminal with "
    "`gitgates approve rules`, has no intent{}."
)


def start(repo: Repo, config: str = REQUIRED, **files: str) -> Agent:
    """Begin a session where there are intents. `files`: name → content."""
    return begin(repo, config, files={FILE: INTENTS, **files})


def approve_rules(repo: Repo) -> None:
    """Have a person let the rules count that the files have now."""
    assert "now apply as they are" in as_person(repo, "approve", "rules")


def denied(answer: dict[str, Any]) -> str:
    own = answer.get("hookSpecificOutput", {})
    return own["permissionDecisionReason"] if own.get("permissionDecision") == "deny" else ""


def test_of_many_intents_the_first_are_listed(repo: Repo) -> None:
    entry = '  - id: INT-{}\n    title: T\n    status: IN_PROGRESS\n    owned_scope: ["a/**"]\n'
    repo.write(FILE, "active_intents:\n" + "".join(map(entry.format, range(100, 115))))
    refusal = denied(begin(repo, REQUIRED).pre())
    assert refusal.count("gitgates intent select INT-") == 12
    assert "  and 3 more: gitgates intent list" in refusal


def bash(agent: Agent, command: str, event: str = "PreToolUse", **fields: Any) -> dict[str, Any]:
    send = agent.pre if event == "PreToolUse" else agent.post
    return send("Bash", "", tool_input={"command": command}, **fields)


def run(agent: Agent, command: str, **fields: Any) -> tuple[int, str, str]:
    """Run a command of ours as the client does: as it was rewritten."""
    answer = bash(agent, command, **fields)
    assert not denied(answer), denied(answer)
    rewritten = answer["hookSpecificOutput"]["updatedInput"]["command"]
    assert "--caller=" in rewritten
    done = agent.repo.gitgates(*rewritten.split()[1:])
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def select(agent: Agent, name: str = "INT-001", **fields: Any) -> str:
    status, out, err = run(agent, f"gitgates intent select {name}", **fields)
    assert (status, err) == (0, "")
    return out


def test_without_an_intent_a_writing_tool_is_denied(repo: Repo) -> None:
    agent = start(repo)
    assert denied(agent.pre("Write", "src/api/a.py")) == NEEDED + LIST
    assert denied(agent.pre("Edit", "README")) == NEEDED + LIST
    notebook = {"notebook_path": str(repo.path / "src/api/a.ipynb")}
    assert denied(agent.pre("NotebookEdit", tool_input=notebook)) == NEEDED + LIST
    assert denied(bash(agent, "make all")) == NEEDED + LIST


def test_without_a_file_it_is_said(repo: Repo) -> None:
    agent = begin(repo, REQUIRED)
    assert denied(agent.pre("Write", "a.py")) == NEEDED + NONE.format("s, or does not exist")
    repo.write(FILE, INTENTS.replace("IN_PROGRESS", "PENDING"))
    approve_rules(repo)
    assert denied(agent.pre("Write", "a.py")) == NEEDED + NONE.format(" IN_PROGRESS")


def test_what_only_reads_and_our_own_verbs_pass(repo: Repo) -> None:
    agent = start(repo)
    assert agent.pre("Read", "src/api/a.py") == {}
    for command in (
        *("cat a.py | head", "git log -3", "rg x src", "cd src && ls", "test -e a"),
        *("find . -name '*.py' | sort", "ps aux | grep x", 'grep -r "A\\|B" src | head'),
    ):
        assert bash(agent, command) == {}, command
    for command in ("gitgates intent list", "gitgates review status", ".venv/bin/gitgates intent"):
        assert not denied(bash(agent, command)), command
    assert bash(agent, "gitgates explain Stop") == {}
    for command in (
        "echo x > a",
        "sed -i s/x/y/ a",
        "python -c 'pass'",
        "cat a; rm a",
        "git add .",
        "find . -name x | xargs rm",
    ):
        assert denied(bash(agent, command)) == NEEDED + LIST, command


def test_a_file_outside_of_the_repository_is_not_ours(repo: Repo) -> None:
    agent = start(repo)
    assert agent.pre("Write", "../plan.md") == {}


def test_selecting_hands_out_the_context_and_lets_write_in_scope_only(repo: Repo) -> None:
    agent = start(repo)
    assert select(agent) == (
        "INT-001 is held by session s1 now.\n"
        "<intent_context>\nINT-001: Limit the rate\nPriority: normal\n"
        "Acceptance criteria:\n- Answers 429\nConstraints:\n- No new dependency\n"
        "Owned scope (change nothing else):\n- src/api/**\n- !src/api/secret.py\n"
        "</intent_context>\n"
    )
    assert agent.pre("Write", "src/api/new/a.py") == {}
    assert bash(agent, "make all") == {}
    assert denied(agent.pre("Edit", "src/web/list.py")) == (
        "gitgates: src/web/list.py is outside the scope of INT-001: src/api/**, "
        "!src/api/secret.py\n"
        "Closest other intents:\n"
        "  INT-002: Sort the list (src/web/**)\n"
        "Switch to one if it matches your task: gitgates intent select INT-002\n"
        "If INT-001 needs this file, request it, and continue with what is in scope:\n"
        "  gitgates intent scope-expansion-request INT-001 src/web/list.py "
        '--reason "…"'
    )
    assert "src/api/secret.py is outside" in denied(agent.pre("Write", "src/api/secret.py"))


@pytest.mark.parametrize(
    ("path", "is_inside"),
    [
        ("src/api/../web/a.py", False),
        ("src/web/../api/a.py", True),
        ("inner/a.py", True),  # a link to src/api
        ("src/api/out/a.py", False),  # a link to src/web
        ("src/api/away/a.py", True),  # a link out of the repository
        ("src/API/a.py", False),
    ],
)
def test_the_scope_is_about_what_is_really_written(
    repo: Repo, path: str, *, is_inside: bool
) -> None:
    agent = start(repo)
    select(agent)
    for folder in ("src/api", "src/web", "../elsewhere"):
        (repo.path / folder).mkdir(parents=True)
    os.symlink("src/api", repo.path / "inner")
    os.symlink("../web", repo.path / "src/api/out")
    os.symlink("../../../elsewhere", repo.path / "src/api/away")
    assert (agent.pre("Write", path) == {}) is is_inside


def test_a_name_is_nothing_but_a_name(repo: Repo) -> None:
    agent = start(repo)
    select(agent)
    said = denied(agent.pre("Write", "src/web/a\nNow do X\x1b[31m"))
    assert said.startswith(
        "gitgates: src/web/a\\nNow do X\\x1b[31m is outside the scope of INT-001: "
    )
    assert "INT-001 'src/web/a?Now do X?\\[31m' --reason" in said


@each_case(
    ("path", "pattern"),
    [
        ("-a/x", "'\\-a/x'"),
        ("!a/x", "'\\!a/x'"),
        ("#a/x", "'\\#a/x'"),
        ("~a/x", "'\\~a/x'"),
        ("-a", "/-a"),
        ("a b/[c]", "'a b/\\[c]'"),
    ],
)
def test_what_is_offered_as_a_request_has_the_file_in_it(path: str, pattern: str) -> None:
    command = request("INT-001", path)
    assert command == f'  gitgates intent scope-expansion-request INT-001 {pattern} --reason "…"'
    (given,) = shlex.split(command)[4:5]
    assert wrong_pattern(given) == ""
    assert is_inside(Intent(id="A", title="", status="", owned_scope=(given,)), path)


def test_case_is_as_the_file_system_has_it(repo: Repo) -> None:
    agent = start(repo)
    select(agent)
    repo.git("config", "core.ignorecase", "true")
    assert agent.pre("Write", "SRC/API/a.py") == {}
    assert denied(agent.pre("Write", "src/api/SECRET.py"))


def test_a_worktree_has_the_same_leases_and_scopes_of_its_own(repo: Repo) -> None:
    agent = start(repo)
    repo.git("worktree", "add", "-q", "../other")
    select(agent)
    assert agent.pre("Write", "../other/src/api/a.py") == {}
    assert "src/web/a.py is outside" in denied(agent.pre("Write", "../other/src/web/a.py"))
    there = Agent(Repo(repo.path.parent / "other"), "s2")
    there.start()
    there.prompt()
    status, out, err = run(there, "gitgates intent select INT-001")
    assert (status, out) == (75, "")
    assert "gitgates: INT-001 is held by session s1 until " in err


def test_without_required_nothing_is_denied_until_one_is_selected(repo: Repo) -> None:
    agent = start(repo, OPTIONAL)
    assert agent.pre("Write", "anywhere.py") == {}
    assert bash(agent, "make all") == {}
    select(agent)
    assert "anywhere.py is outside" in denied(agent.pre("Write", "anywhere.py"))
    assert run(agent, "gitgates intent release") == (0, "released: INT-001\n", "")
    assert agent.pre("Write", "anywhere.py") == {}
    status, _out, err = run(agent, "gitgates intent release")
    assert (status, err) == (
        64,
        "gitgates: session s1 holds no intent\n  To see who holds which: gitgates intent status\n",
    )


def test_sub_agents_are_holders_of_their_own(repo: Repo) -> None:
    agent = start(repo)
    select(agent)
    one, two = {"agent_id": "a1", "agent_type": "w"}, {"agent_id": "a2", "agent_type": "w"}
    assert "held by session s1 until " in denied(agent.pre("Write", "src/api/a.py", **one))
    status, _out, err = run(agent, "gitgates intent select INT-001", **one)
    assert status == 75
    assert "Wait, or select another one:\n" in err
    assert "gitgates intent select INT-002  # Sort the list (src/web/**)\n" in err
    assert (
        "Your own session holds it. If this is your work, stop, and tell the session to run" in err
    )
    assert select(agent, "INT-002", **one).startswith(
        "INT-002 is held by sub-agent a1 of session s1 now.\n"
    )
    assert agent.pre("Write", "src/web/a.py", **one) == {}
    assert denied(agent.pre("Write", "src/web/a.py"))
    status, _out, err = run(agent, "gitgates intent select INT-002", **two)
    assert (status, "Your own session" in err) == (75, False)
    agent.sub_stop("w", "a1")
    assert select(agent, "INT-002", **two).startswith("INT-002 is held by sub-agent a2")
    done = repo.gitgates("intent", "release", "--session", "s1", "--agent", "a2")  # by a person
    assert (done.returncode, done.stdout) == (0, b"released: INT-002\n")
    assert select(agent, "INT-002", **one).startswith("INT-002 is held by sub-agent a1")


@pytest.mark.slow
@pytest.mark.samples(1)
@pytest.mark.parametrize("rounds", [1, 5])
def test_of_two_sessions_that_select_at_once_exactly_one_wins(repo: Repo, rounds: int) -> None:
    agents = [start(repo), Agent(repo, "s2")]
    agents[1].start()
    agents[1].prompt()
    for _round in range(rounds):
        commands = []
        for agent in agents:
            answer = bash(agent, "gitgates intent select INT-001")
            own = answer["hookSpecificOutput"]["updatedInput"]["command"].split()
            commands.append([sys.executable, "-m", "gitgates", *own[1:]])
        running = [
            subprocess.Popen(one, cwd=repo.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for one in commands
        ]
        done = [one.communicate(timeout=60) for one in running]
        assert sorted(one.returncode for one in running) == [0, 75]
        won = 0 if running[0].returncode == 0 else 1
        winner, loser = agents[won], agents[1 - won]
        assert f"INT-001 is held by session {winner.session} until" in done[1 - won][1].decode()
        assert winner.pre("Write", "src/api/a.py") == {}
        assert denied(loser.pre("Write", "src/api/a.py"))
        run(winner, "gitgates intent release")


def test_an_intent_that_is_done_meanwhile_is_refused(repo: Repo) -> None:
    agent = start(repo)
    select(agent)
    repo.write(FILE, INTENTS.replace("IN_PROGRESS", "COMPLETED", 1))
    approve_rules(repo)
    said = denied(agent.pre("Write", "src/api/a.py"))
    assert said.startswith(
        "gitgates: INT-001, which you hold, is COMPLETED; nothing may be written for it.\n"
        "  gitgates intent select INT-002"
    )
    repo.write(FILE, "active_intents: []\n")
    approve_rules(repo)
    said = denied(agent.pre("Write", "src/api/a.py"))
    assert f"INT-001, which you hold, is no longer in {FILE}; " in said
    assert NONE.format("s, or does not exist") in said


@pytest.mark.parametrize("config", [REQUIRED, OPTIONAL])
def test_whoever_has_lost_its_intent_is_told(
    repo: Repo, config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = start(repo, config)
    select(agent)
    other = Agent(repo, "s2")
    other.start()
    other.prompt()
    with monkeypatch.context() as later:
        later.setattr(lease.Lease, "is_live", False)
        acquire(
            *(f"{repo.path}/.git/gitgates", "INT-001", holder_of("s2")), ttl_s=60, git_dir_abs=""
        )
    said = denied(agent.pre("Write", "src/api/a.py"))
    assert said.startswith(
        "gitgates: INT-001, which you held, expired and was taken over by session s2.\n"
        "  gitgates intent select INT-001  # Limit the rate (src/api/**, !src/api/secret.py): "
        "held by session s2 until 20"
    )
    assert run(agent, "gitgates intent release") == (0, "released: INT-001\n", "")
    assert (denied(agent.pre("Write", "src/api/a.py")) == "") is (config == OPTIONAL)


@pytest.mark.parametrize("name", ["INT-003", "INT-004"])
def test_only_an_active_intent_can_be_selected(repo: Repo, name: str) -> None:
    status, _out, err = run(start(repo), f"gitgates intent select {name}")
    why = {"INT-003": "INT-003 is COMPLETED"}.get(name, f"{FILE}: no such intent")
    assert (status, err.splitlines()[0]) == (64, f"gitgates: {why}; it cannot be selected")
    assert "gitgates intent select INT-001  # Limit the rate" in err


@pytest.mark.parametrize("damaged", ["active_intents: 7\n", "active_intents: [\n"])
def test_a_damaged_file_denies_but_for_what_mends_it(repo: Repo, damaged: str) -> None:
    repo.write(FILE, damaged)
    agent = begin(repo, REQUIRED)
    assert "was not checked: " in denied(agent.pre("Write", "src/api/a.py"))
    answer = agent.pre("Write", FILE)  # the guard has a person asked
    assert answer["hookSpecificOutput"]["permissionDecision"] == "ask"
    assert "rule `intents_file`" in answer["hookSpecificOutput"]["permissionDecisionReason"]
    assert bash(agent, "cat pyproject.toml") == {}
    agent = begin(repo, OPTIONAL, "s2")
    answer = agent.pre("Write", "src/api/a.py")
    assert not denied(answer)
    assert "was not checked" in answer["systemMessage"]


def test_a_person_is_asked(repo: Repo) -> None:
    agent = start(repo, OPTIONAL + 'ask = ["migrations/**"]\n')
    own = agent.pre("Write", "migrations/1.sql")["hookSpecificOutput"]
    assert own["permissionDecision"] == "ask"
    assert own["permissionDecisionReason"] == (
        "gitgates: a person must permit changes to migrations/1.sql "
        "(`ask` of [tool.gitgates.intents])."
    )
    assert agent.pre("Write", "other.sql") == {}
    select(agent)
    assert "is outside" in denied(agent.pre("Write", "migrations/1.sql"))
    agent.env["CLAUDE_CODE_SESSION_ATTENDED"] = "0"
    run(agent, "gitgates intent release")
    assert "this session has no person to ask" in denied(agent.pre("Write", "migrations/1.sql"))


def test_a_bug_of_ours_denies_where_intents_are_required(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:

    agent = start(repo)
    monkeypatch.setattr(gatekeeper, "judge_write", lambda *_args, **_more: 1 / 0)
    assert "decided nothing: internal error" in denied(agent.pre("Write", "src/api/a.py"))
    repo.config(OPTIONAL)
    approve_rules(repo)
    answer = agent.pre("Write", "src/api/a.py")
    assert not denied(answer)
    assert "intents decided nothing: internal error" in answer["systemMessage"]


# What an agent is told without asking

CONTEXT = """\
<intent_context>
INT-001: Limit the rate
Priority: normal
Acceptance criteria:
- Answers 429
Constraints:
- No new dependency
Owned scope (change nothing else):
- src/api/**
- !src/api/secret.py
</intent_context>
"""


def context(answer: dict[str, Any]) -> str:
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def test_a_session_and_a_sub_agent_are_told_of_the_intents(repo: Repo) -> None:
    agent = start(repo)
    assert context(agent.start()) == NEEDED + LIST
    own = {"agent_id": "a1", "agent_type": "w"}
    assert context(agent.send("SubagentStart", **own)) == NEEDED + LIST
    repo.config(OPTIONAL)
    approve_rules(repo)
    offered = "gitgates: If your task belongs to one of these intents, select it before you "
    assert context(agent.start()) == f"{offered}write anything.\n{LIST}"
    repo.write(FILE, "active_intents: []\n")
    approve_rules(repo)
    assert agent.start() == {}


def test_after_a_compaction_it_is_told_again(repo: Repo) -> None:
    agent = start(repo)
    select(agent)
    assert agent.send("PreCompact", trigger="auto") == {}
    repo.write(FILE, INTENTS.replace("Answers 429", "Answers 503"))
    approve_rules(repo)
    told = "You hold this intent; do not change anything outside its scope."
    assert context(agent.send("SessionStart", source="compact")) == CONTEXT + told
    new = CONTEXT.replace("429", "503")
    assert context(agent.send("SessionStart", source="resume")) == new + told


def test_the_context_is_cut_to_its_budget(repo: Repo) -> None:
    many = ", ".join(f"rule number {number}" for number in range(200))
    repo.write(FILE, INTENTS.replace("No new dependency", many))
    agent = begin(repo, REQUIRED + 'context = "1 KiB"\n')
    select(agent)
    agent.send("PreCompact", trigger="auto")
    told = context(agent.send("SessionStart", source="compact"))
    assert len(told) < 1200
    assert "- Answers 429\nConstraints:\n- rule number 0\n" in told
    assert "Omitted to fit: constraints (" in told


def test_a_session_that_is_resumed_has_its_intent_if_nobody_has_taken_it(repo: Repo) -> None:
    agent = start(repo)
    select(agent)
    agent.send("SessionEnd", reason="other")
    other = Agent(repo, "s2")
    other.start()
    other.prompt()
    assert "session s1" not in denied(other.pre())
    assert context(agent.send("SessionStart", source="resume")).startswith(CONTEXT)
    assert run(other, "gitgates intent select INT-001")[0] == 75
    agent.send("SessionEnd", reason="other")
    assert select(other)
    assert context(agent.send("SessionStart", source="resume")).startswith(NEEDED)


def test_status_shows_who_holds_which(repo: Repo) -> None:
    agent = start(repo)
    select(agent)
    select(agent, "INT-002", agent_id="a1", agent_type="w")
    agent.sub_stop("w", "a1")
    lines = repo.gitgates("intent", "status").stdout.decode().splitlines()
    assert lines[0].startswith("INT-001  IN_PROGRESS  Limit the rate  held by session s1 until 20")
    assert lines[1] == "INT-002  IN_PROGRESS  Sort the list"
    done = json.loads(repo.gitgates("intent", "status", "--format", "json").stdout)
    one, two = (row["held"] for row in done["intents"])
    assert (one["session"], one["agent"], two) == ("s1", "", None)
    assert one["since"] < one["until"]


def test_the_context_has_what_was_last_done_for_the_intent(repo: Repo) -> None:
    agent = start(repo)
    select(agent)
    fields: dict[str, Any] = {"tool_use_id": "w1"}
    agent.pre("Write", "src/api/a.py", **fields)
    repo.write("src/api/a.py", "a = 1\n")
    agent.post("Write", "src/api/a.py", **fields)
    told = context(agent.send("SessionStart", source="resume"))
    assert "Recent changes:\n- 20" in told
    assert told.count("Z s1 Write: create src/api/a.py\n</intent_context>") == 1


def test_where_nothing_can_be_decided_the_refusal_names_the_way_out(repo: Repo) -> None:
    agent = start(repo)
    journals = repo.path / ".git/gitgates/sessions"
    journals.rename(journals.with_name("gone"))
    journals.write_text("no folder")  # nor can root write into it
    reason = denied(agent.pre("Write", "src/api/a.py"))
    assert "gitgates approve rules" in reason
    assert "GITGATES=0" in reason
    assert denied(bash(agent, "cat pyproject.toml")) == reason  # what a shell does, is not known
    repo.config(OPTIONAL)  # by a person: of the session, no rules are known
    answer = agent.pre("Write", "src/api/a.py")
    assert not denied(answer)
    assert "do not count" in answer["systemMessage"]
