"""`gitgates intent`: what is shown of intents, and how a scope is extended."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from conftest import Repo
from doctor_support import CONFIG, Said, examine, healthy
from terminal_support import on_terminal

from gitgates.drivers.shell_commands import caller_entry
from gitgates.features.trace.ledger import append, summary
from gitgates.git.repo import find_repo
from gitgates.journal.journal import fact_of
from gitgates.store.log import session_journal
from gitgates.verbs.approval import new_token

FILE = ".orchestration/active_intents.yaml"
INTENTS = """\
active_intents:
  - id: INT-001
    title: Weather API
    status: IN_PROGRESS
    owned_scope: [src/weather/**]  # not the client
    acceptance_criteria: [GET /weather answers]
    priority: high
  - id: INT-002
    title: Docs
    status: PENDING
    owned_scope:
      - docs/**
"""
APPROVE = "gitgates intent approve-scope INT-001"
RELATIVE = "a path of the working tree relative to its root, such as src/**, without `.`, `..`"


@pytest.fixture(autouse=True)
def _no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CODE_SESSION_ID", "CLAUDECODE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(name="project")
def _project(repo: Repo) -> Repo:
    repo.write("gitgates.toml", "[intents]\n")
    repo.write(FILE, INTENTS)
    repo.commit_all("intents")
    return repo


def told(repo: Repo, *args: str) -> str:
    done = repo.gitgates("intent", *args)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def data(repo: Repo, *args: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(told(repo, *args, "--format", "json"))
    assert document.pop("version") == 1
    return document


def refused(repo: Repo, *args: str, status: int = 64) -> str:
    done = repo.gitgates("intent", *args)
    assert (done.returncode, done.stdout) == (status, b"")
    return done.stderr.decode()


def token(repo: Repo) -> str:
    here = find_repo(str(repo.path), dict(os.environ))
    return new_token(here, "intent approve-scope")


def ask(repo: Repo, pattern: str, *, name: str = "INT-001") -> str:
    return told(repo, "scope-expansion-request", name, pattern, "--reason", "a\n  client")


def test_intents_are_listed(project: Repo) -> None:
    assert told(project, "list") == (
        "INT-001  IN_PROGRESS  high    Weather API\nINT-002  PENDING      normal  Docs\n"
    )
    assert data(project, "list", "--path", "docs/a.md") == {
        "file": FILE,
        "intents": [
            {
                "id": "INT-002",
                "title": "Docs",
                "status": "PENDING",
                "owned_scope": ["docs/**"],
                "constraints": [],
                "acceptance_criteria": [],
                "priority": "normal",
                "notes": "",
            }
        ],
    }
    assert told(project, "list", "--path", "src/other/a.py").startswith("INT-001")
    done = project.gitgates("intent", "list", "--path", "../a.py")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == f"gitgates: {FILE}: no matching intents\n".encode()


def test_an_intent_is_shown_with_what_was_last_done(project: Repo) -> None:
    whole = (
        "<intent_context>\nINT-001: Weather API\nPriority: high\n"
        "Acceptance criteria:\n- GET /weather answers\n"
        "Owned scope (change nothing else):\n- src/weather/**\n{}</intent_context>\n"
    )
    assert told(project, "show", "INT-001") == whole.format("")
    ledger = str(project.path / ".git")
    file = {"path": "src/weather/a.py", "operation": "create", "blocks": []}
    fields = {"session": "s1", "agent": "", "tool": "Write", "commit": "", "files": [file]}
    written = append(ledger, {**fields, "intent": "INT-001"})
    last = f"- {summary(written)}\n"
    assert "Write: create src/weather/a.py" in last
    assert told(project, "show", "INT-001") == whole.format(f"Recent changes:\n{last}")
    assert refused(project, "show", "INT-01") == (
        f"gitgates: {FILE}: no intent `INT-01`\n  Did you mean `INT-001`?\n"
    )


def test_a_file_is_validated(project: Repo) -> None:
    assert told(project, "validate") == f"{FILE}: 2 intents, 1 selectable, no problems\n"
    project.write(FILE, INTENTS.replace("PENDING", "DONE").replace("docs/**", "../docs"))
    problems = [
        f'{FILE}:10: active_intents.INT-002.status: got "DONE", expected one of PENDING, ',
        f'{FILE}:11: active_intents.INT-002.owned_scope[0]: got "../docs", expected a path of ',
    ]
    for args in (["validate"], ["list"]):
        said = refused(project, *args, status=78)
        assert all(problem in said for problem in problems)
        assert said.endswith("To check it: gitgates intent validate\n")


def test_without_settings_intents_are_not_configured(repo: Repo) -> None:
    repo.write("gitgates.toml", "jobs = 1\n")
    assert refused(repo, "list", status=78) == (
        "gitgates: intents are not configured here\n"
        "  Add the table [tool.gitgates.intents] to pyproject.toml.\n"
    )
    repo.write("gitgates.toml", "[intents]\n")
    assert told(repo, "status") == "no intent can be selected\n"
    assert told(repo, "validate") == f"{FILE}: file not found, so there are no intents\n"


def test_a_larger_scope_is_asked_for_and_approved(project: Repo) -> None:
    assert ask(project, "src/client.py") == (
        "gitgates: requested src/client.py for the scope of INT-001; to approve it, a person runs: "
        f"{APPROVE} src/client.py\n"
    )
    ask(project, "docs/**")
    assert (project.path / FILE).read_text() == INTENTS
    first, second = data(project, "status")["scope_requests"]
    assert (first["pattern"], second["pattern"]) == ("src/client.py", "docs/**")
    assert told(project, "status") == (
        "INT-001  IN_PROGRESS  Weather API\n"
        "INT-001 requests src/client.py: a client\n"
        f"  since {first['time']}; to approve it: {APPROVE} src/client.py\n"
        "INT-001 requests 'docs/**': a client\n"
        f"  since {second['time']}; to approve it: {APPROVE} 'docs/**'\n"
    )
    assert told(project, "status", "INT-002") == "INT-002  PENDING  Docs\n"
    path = project.path / FILE
    said = told(project, "approve-scope", "INT-001", "src/client.py", "--token", token(project))
    assert said == (f"gitgates: src/client.py is now in the scope of INT-001: {path}\n")
    scope = "[src/weather/**"
    assert path.read_text() == INTENTS.replace(scope, f'{scope}, "src/client.py"')
    said = told(
        project, "approve-scope", "INT-001", "docs/**", "--refuse", "--token", token(project)
    )
    assert said == "gitgates: 'docs/**' is refused for the scope of INT-001\n"
    assert data(project, "status")["scope_requests"] == []
    assert ask(project, "src/client.py") == (
        "gitgates: src/client.py is already in the scope of INT-001\n"
    )
    ask(project, "docs/**")  # again
    assert len(data(project, "status")["scope_requests"]) == 1


def test_a_request_says_whose_it_is(project: Repo) -> None:
    here = find_repo(str(project.path), dict(os.environ))
    own = caller_entry("s2", "", "", "tool")
    session_journal(here.state_abs, "s2").append(fact_of(own))
    words = ("intent", "scope-expansion-request", "INT-001", "--reason", "x")
    for args in (("a",), ("b", f"--caller={own.nonce}")):
        done = project.gitgates(*words, *args, env={"CLAUDE_CODE_SESSION_ID": "s1"})
        assert (done.returncode, done.stderr) == (0, b"")
    asked = data(project, "status")["scope_requests"]
    assert [(one["pattern"], one["session"]) for one in asked] == [("a", "s1"), ("b", "s2")]


def test_what_is_written_by_hand_is_answered(project: Repo) -> None:
    ask(project, "src/client.py")
    project.write(FILE, INTENTS.replace("docs/**", "src/client.py"))
    assert len(data(project, "status")["scope_requests"]) == 1
    project.write(FILE, INTENTS.replace("src/weather/**", "src/client.py"))
    assert data(project, "status")["scope_requests"] == []


def test_only_a_person_approves(project: Repo) -> None:
    ask(project, "docs/**")
    for args in ([], ["--refuse"], ["--token", "0123456789abcdef"]):
        said = refused(project, "approve-scope", "INT-001", "docs/**", *args)
        assert "gitgates approve intent approve-scope" in said
    assert (project.path / FILE).read_text() == INTENTS
    assert len(data(project, "status")["scope_requests"]) == 1


@pytest.mark.slow
def test_a_person_has_a_terminal(project: Repo) -> None:
    agent = {"CLAUDECODE": "1"}
    args = ("intent", "approve-scope", "INT-001", "docs/**")
    assert b"must be run by a person" in on_terminal(project, *args, env=agent)
    assert b"is now in the scope of INT-001" in on_terminal(project, *args)
    assert '"docs/**"]' in (project.path / FILE).read_text()


def test_what_makes_no_sense_is_refused(project: Repo) -> None:
    def said(name: str, pattern: str, reason: str = "x") -> str:
        return refused(project, "scope-expansion-request", name, pattern, "--reason", reason)

    assert said("weather", "a") == (
        f"gitgates: {FILE}: no intent `weather`\n  To list all: gitgates intent list\n"
    )
    assert said("INT-001", "../a") == (f"gitgates: got ../a, expected {RELATIVE}\n")
    for first, given in (("!", "'!a'"), ("-", "-a")):
        given_to = ("--reason", "x", "--", "INT-001", f"{first}a")
        assert refused(project, "scope-expansion-request", *given_to) == (
            f"gitgates: got {given}, expected a pattern that does not begin with `{first}`; "
            f"to match that, write \\{first}\n"
        )
    assert said("INT-001", "a", " \n") == (
        "gitgates: --reason is empty\n  Say what needs to change there.\n"
    )
    said_of_it = refused(project, "approve-scope", "INT-001", "/etc/x", "--token", token(project))
    assert said_of_it == (f"gitgates: got /etc/x, expected {RELATIVE}\n")
    assert data(project, "status")["scope_requests"] == []


def test_what_cannot_be_inserted_is_to_be_written_by_hand(project: Repo) -> None:
    shared = INTENTS.replace("[src/weather/**]", "&all [src/**]").replace(
        "\n      - docs/**", " *all"
    )
    project.write(FILE, shared)
    project.commit_all("shared")
    own = token(project)
    assert refused(project, "approve-scope", "INT-001", "docs/**", "--token", own, status=78) == (
        f"gitgates: {project.path / FILE}: cannot be changed without changing more than the "
        "scope of"
        " INT-001; nothing was written\n  Add 'docs/**' to its `owned_scope` yourself.\n"
    )
    assert (project.path / FILE).read_text() == shared
    project.write(FILE, INTENTS)
    project.commit_all("plain")
    told(project, "approve-scope", "INT-001", "docs/**", "--token", own)  # it was not used up


def test_a_request_is_approved_where_it_was_made(project: Repo) -> None:
    project.git("worktree", "add", "-q", "../linked")
    linked = project.path.parent / "linked"
    ask(Repo(linked), "*.txt", name="INT-002")
    assert data(project, "status")["scope_requests"][0]["root"] == str(linked)
    told(project, "approve-scope", "INT-002", "*.txt", "--token", token(project))
    assert (linked / FILE).read_text() == f'{INTENTS}      - "*.txt"\n'
    assert (project.path / FILE).read_text() == INTENTS
    assert data(project, "status")["scope_requests"] == []


def test_each_worktree_is_answered(project: Repo) -> None:
    linked = Repo(project.path.parent / "linked")
    project.git("worktree", "add", "-q", str(linked.path))
    for one in (project, linked):
        ask(one, "*.txt", name="INT-002")
        ask(one, "*.rst", name="INT-002")
    assert told(project, "status").count(f"Z, in {linked.path}; to approve it: ") == 2
    for _each in range(2):
        told(project, "approve-scope", "INT-002", "*.txt", "--token", token(project))
        told(project, "approve-scope", "INT-002", "*.rst", "--token", token(project))
    for one in (project, linked):
        assert (one.path / FILE).read_text() == f'{INTENTS}      - "*.txt"\n      - "*.rst"\n'
    assert data(project, "status")["scope_requests"] == []
    ask(linked, "*.md", name="INT-002")
    project.git("worktree", "remove", "--force", str(linked.path))
    assert len(data(project, "status")["scope_requests"]) == 1
    project.write(FILE, INTENTS + '      - "*.md"\n')
    assert data(project, "status")["scope_requests"] == []


def test_the_doctor_looks_at_the_intents(repo: Repo) -> None:
    def found() -> list[Said]:
        return [one for one in examine(repo) if one.check == "intents"]

    healthy(repo)
    repo.config(f"{CONFIG}\n[intents]\nrequired = true\n")
    assert [one[2:] for one in found()] == [
        (
            FILE,
            "0 intents, none is IN_PROGRESS: agents need one to change anything (`required`)",
            "set one to IN_PROGRESS",
        )
    ]
    repo.write(FILE, INTENTS)
    assert found() == []
    said = repo.gitgates("doctor").stdout
    assert f"ok       {FILE}: 2 intents, 1 of them IN_PROGRESS\n".encode() in said
    repo.write(FILE, INTENTS.replace("PENDING", "[]").replace("docs/**", "/"))
    assert [one.where for one in found()] == [f"{FILE}:10", f"{FILE}:11"]
