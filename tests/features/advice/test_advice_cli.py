"""`gitgates advice`: written, shown and taken out again; nothing else in the file changes."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest
from conftest import Repo
from session_support import as_person

from gitgates.git.repo import find_repo
from gitgates.verbs.approval import new_token

PYPROJECT = """\
[project]
name = "x"

# the gates
[tool.gitgates.gates.t]
command = "true"   # really

[tool.other]
a = 1
"""
# The example of the specification.
RUN_TESTS = (
    *("Always run tests", "--rig", "beads", "--role", "polecat", "--hook-command", "make test"),
    *("--hook-trigger", "before-commit", "--hook-timeout", "60", "--hook-on-failure", "block"),
)


@pytest.fixture(autouse=True)
def _no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CODE_SESSION_ID", "CLAUDECODE", "GITGATES_RIG", "GITGATES_ROLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(name="project")
def _project(repo: Repo) -> Repo:
    repo.write("pyproject.toml", PYPROJECT)
    return repo


def told(repo: Repo, *args: str) -> str:
    done = repo.gitgates("advice", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def refused(repo: Repo, *args: str, status: int = 64) -> str:
    before = (repo.path / "pyproject.toml").read_text()
    done = repo.gitgates("advice", *args)
    assert (done.returncode, done.stdout) == (status, b"")
    assert (repo.path / "pyproject.toml").read_text() == before
    return done.stderr.decode()


def data(repo: Repo, *args: str) -> list[dict[str, Any]]:
    document = json.loads(told(repo, *args, "--format", "json"))
    assert document.pop("version") == 1
    found: list[dict[str, Any]] = document.pop("advice")
    assert document == {}
    return found


def without_time(text: str) -> str:
    return re.sub(r'"20[0-9TZ:-]+"', '"NOW"', text)


def test_example_of_the_specification(project: Repo) -> None:
    line = "always-run-tests · Always run tests [before-commit: make test] (block)"
    assert told(project, "add", *RUN_TESTS) == f"{line}\n"
    block = (
        '[[tool.gitgates.advice]]\nid = "always-run-tests"\ntitle = "Always run tests"\n'
        'created_at = "NOW"\nrig = "beads"\nrole = "polecat"\nhook_command = "make test"\n'
        'hook_trigger = "before-commit"\nhook_timeout = 60\nhook_on_failure = "block"\n'
    )
    text = (project.path / "pyproject.toml").read_text()
    assert without_time(text) == f"{PYPROJECT}\n{block}"
    assert told(project, "list") == f"  {line}\n  Target: beads/polecat\n"
    assert told(project, "hooks") == ""
    who = ("--rig", "beads", "--role", "polecat")
    assert told(project, "hooks", *who) == f"  {line}\n  Target: beads/polecat\n"
    assert told(project, "hooks", *who, "--trigger", "session-end") == ""
    assert told(project, "hooks", *who, "--dry-run") == (
        "would run at before-commit: make test "
        f"(always-run-tests, in {project.path}, at most 60 s; block)\n"
    )


def test_what_makes_no_sense_is_not_added(project: Repo) -> None:
    assert refused(project, "add", "Bad", "--hook-trigger", "later", "--priority", "7") == (
        "gitgates: advice: advice.bad.priority: got 7, expected a whole number from 0, the "
        "highest, to 4\n"
        'advice: advice.bad.hook_trigger: got "later", expected one of session-end, before-commit, '
        "before-push, before-handoff\n"
        "advice: advice.bad.hook_trigger: requires `hook_command`\n"
        "  Nothing was written.\n"
    )


def test_ids_are_not_given_twice(project: Repo) -> None:
    for _ in range(3):
        told(project, "add", "Be brief")
    told(project, "add", "日本語")
    assert [one["id"] for one in data(project, "list")] == [
        *("be-brief", "be-brief-2", "be-brief-3", "a80b52e5")
    ]


def test_local_advice_is_for_one_person(project: Repo) -> None:
    told(project, "add", "Be brief", "--local")
    assert (project.path / "pyproject.toml").read_text() == PYPROJECT
    text = '[[advice]]\nid = "be-brief"\ntitle = "Be brief"\ncreated_at = "NOW"\n'
    assert without_time((project.path / "gitgates.local.toml").read_text()) == text
    told(project, "edit", "be-brief", "--agent", "toast")
    assert told(project, "list") == "  be-brief · Be brief\n  Target: */*/toast\n"
    told(project, "remove", "be-brief")
    assert (project.path / "gitgates.local.toml").read_text() == ""


def test_edit_changes_one_table(project: Repo) -> None:
    text = (
        f'{PYPROJECT}\n[[tool.gitgates.advice]]  # first\ntitle = "A"\n# why\npriority=1 # high\n\n'
        '# second\n[[tool.gitgates.advice]]\ntitle = "B"\n\n[z]\n'
    )
    project.write("pyproject.toml", text)
    assert told(project, "edit", "a", "--priority", "0", "--description", "x\ny") == "a · A\n"
    after = text.replace("priority=1 # high\n", 'priority=0 # high\ndescription = """x\ny"""\n')
    assert (project.path / "pyproject.toml").read_text() == after
    told(project, "edit", "a", "--priority", "1", "--description", "")
    assert (project.path / "pyproject.toml").read_text() == text
    told(project, "close", "b")
    assert (project.path / "pyproject.toml").read_text() == text.replace(
        'title = "B"\n', 'title = "B"\nstatus = "closed"\n'
    )
    assert told(project, "list") == "  a · A\n"
    assert told(project, "list", "--all") == "  a · A\n  b · B closed\n"
    told(project, "remove", "b")
    told(project, "remove", "a")
    assert (project.path / "pyproject.toml").read_text() == f"{PYPROJECT}\n# second\n\n[z]\n"


def test_another_title_leaves_the_id(project: Repo) -> None:
    text = f'{PYPROJECT}\n[[tool.gitgates.advice]]\ntitle = "A"\n'
    project.write("pyproject.toml", text)
    told(project, "edit", "a", "--title", "B")
    assert told(project, "list") == "  a · B\n"


def test_line_ends_of_windows_stay(project: Repo) -> None:
    text = f'{PYPROJECT}\n[[tool.gitgates.advice]]\ntitle = "A"\n\n# z\n[z]\n'
    path = project.path / "pyproject.toml"
    path.write_bytes(text.replace("\n", "\r\n").encode())
    told(project, "edit", "a", "--description", "x\ny")
    after = text.replace('"A"\n', '"A"\ndescription = """x\ny"""\n')
    assert path.read_bytes() == after.replace("\n", "\r\n").encode()
    told(project, "remove", "a")
    assert path.read_bytes() == f"{PYPROJECT}\n# z\n[z]\n".replace("\n", "\r\n").encode()


def test_edit_refuses(project: Repo) -> None:
    told(project, "add", "A")
    assert refused(project, "edit", "a") == (
        "gitgates: nothing to change\n  Specify a change, such as --hook-timeout 60\n"
    )
    assert refused(project, "edit", "b", "--title", "c") == (
        "gitgates: no advice entry `b`\n  To list all: gitgates advice list --all\n"
    )
    assert refused(project, "edit", "a", "--hook-command", "true") == (
        "gitgates: advice: advice.a: has a `hook_command` but no `hook_trigger`. Add one: "
        "session-end, before-commit, before-push or before-handoff.\n  Nothing was written.\n"
    )
    assert "has no `title`" in refused(project, "edit", "a", "--title", "")


def test_inline_tables_are_left_to_the_person(project: Repo) -> None:
    project.write("pyproject.toml", '[tool.gitgates]\nadvice = [{ title = "A" }]\n')
    for args in (("edit", "a", "--priority", "1"), ("remove", "a"), ("add", "B")):
        said = refused(project, *args, status=78)
        name = "advice" if args[0] == "add" else "a"
        assert f"`{name}` cannot be changed without rewriting" in said
        lines = '[[tool.gitgates.advice]]\ntitle = "A"\npriority = 1\n'
        assert (f"or change it by hand to:\n\n{lines}" in said) is (args[0] == "edit")
        assert ('[[tool.gitgates.advice]]\nid = "b"\ntitle = "B"\n' in said) is (args[0] == "add")


def test_only_what_stands_in_the_table_goes_with_it(project: Repo) -> None:
    text = '# a\n\n[[tool.gitgates.advice]]\n# own\ntitle = "A"\n# own\n\n# of none\n\n# end'
    project.write("pyproject.toml", text)
    told(project, "edit", "a", "--priority", "1")
    after = text.replace("# own\n\n", "# own\npriority = 1\n\n")
    assert (project.path / "pyproject.toml").read_text() == after
    told(project, "remove", "a")
    assert (project.path / "pyproject.toml").read_text() == "# a\n\n# of none\n\n# end"


WEAKEN = [
    ("edit", "always-run-tests", "--hook-on-failure", "warn"),
    ("edit", "always-run-tests", "--hook-command", "true"),
    ("edit", "always-run-tests", "--status", "tombstone"),
    ("edit", "always-run-tests", "--role", "crew"),
    ("close", "always-run-tests"),
    ("remove", "always-run-tests"),
]


@pytest.mark.parametrize("args", WEAKEN, ids=" ".join)
def test_weakening_what_blocks_is_a_persons(project: Repo, args: tuple[str, ...]) -> None:
    told(project, "add", *RUN_TESTS)
    verb = f"advice {args[0]}"
    assert refused(project, *args).startswith(
        f"gitgates: `gitgates {verb}` must be run by a person in a terminal"
    )
    token = new_token(find_repo(str(project.path), dict(os.environ)), verb)
    told(project, *args, "--token", token)
    assert (project.path / "pyproject.toml").read_text().count("make test") == (
        args[2:3] != ("--hook-command",)
    ) * (args[0] != "remove")


@pytest.mark.slow
def test_in_a_terminal_a_person_closes_it(project: Repo) -> None:
    told(project, "add", *RUN_TESTS)
    as_person(project, "advice", "close", "always-run-tests")
    assert told(project, "list") == ""


def test_strengthening_is_anybodys(project: Repo) -> None:
    told(project, "add", *RUN_TESTS)
    told(project, "edit", "always-run-tests", "--hook-timeout", "90", "--priority", "0")
    warns = ("Warn", "--hook-command", "true", "--hook-trigger", "before-push")
    told(project, "add", *warns)
    told(project, "edit", "warn", "--hook-on-failure", "block")
    assert refused(project, "edit", "warn", "--hook-on-failure", "warn")


def test_who_asks(project: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    told(project, "add", *RUN_TESTS)
    monkeypatch.setenv("GITGATES_RIG", "beads")
    assert told(project, "hooks") == ""
    monkeypatch.setenv("GITGATES_ROLE", "polecat")
    assert len(data(project, "hooks")) == 1
    assert data(project, "hooks", "--rig", "gastown") == []
