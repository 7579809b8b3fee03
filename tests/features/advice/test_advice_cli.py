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
from gitgates.session.approval import new_token

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
BEAD = {
    "id": "bd-adv-pre_commit_tests",
    "title": "Run tests before committing",
    "description": "All code changes must pass tests before commit.",
    "issue_type": "advice",
    "status": "pinned",
    "advice_target_rig": "beads",
    "advice_target_role": "polecat",
    "advice_hook_command": "make test",
    "advice_hook_trigger": "before-commit",
    "advice_hook_timeout": 120,
    "advice_hook_on_failure": "block",
}


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


def test_bead_of_the_specification(project: Repo) -> None:
    project.write("beads.jsonl", f'{json.dumps(BEAD)}\n\n{{"issue_type": "task", "id": "bd-2"}}\n')
    done = project.gitgates("advice", "import", "beads.jsonl")
    assert done.stderr == (
        b"gitgates: wrote pyproject.toml\ngitgates: skipped 1 bead of other types\n"
    )
    (found,) = data(project, "show", "bd-adv-pre_commit_tests")
    assert len(found.pop("hash")) == 64
    assert found == {
        "id": "bd-adv-pre_commit_tests",
        "title": "Run tests before committing",
        "description": "All code changes must pass tests before commit.",
        "status": "pinned",
        "priority": 2,
        "created_at": "",
        "rig": "beads",
        "role": "polecat",
        "agent": "",
        "hook_command": "make test",
        "hook_trigger": "before-commit",
        "hook_timeout": 120,
        "hook_on_failure": "block",
    }
    assert "`bd-adv-pre_commit_tests` already" in refused(project, "import", "beads.jsonl")


def test_import_tells_every_problem(project: Repo) -> None:
    good = json.dumps({**BEAD, "advice_hook_timeout": 0})
    beads = [
        "{",
        "[]",
        json.dumps({"issue_type": "task", "advice_hook_trigger": "before-push"}),
        good,
        good,
        json.dumps({**BEAD, "id": "bd-2", "advice_hook_timeout": 400, "priority": 5}),
        json.dumps({**BEAD, "description": "\ud800"}),
        json.dumps({"issue_type": "advice", "id": ["x"]}),
    ]
    project.write("beads.jsonl", "\n".join(beads))
    assert refused(project, "import", "beads.jsonl") == (
        "gitgates: beads.jsonl:1: is not valid JSON: "
        "Expecting property name enclosed in double quotes: "
        "line 1 column 2 (char 1)\n"
        "beads.jsonl:2: got [], expected an object\n"
        "beads.jsonl:3: advice_hook_trigger: applies only to the type advice, not "
        '"task"\n'
        "beads.jsonl:7: is not valid JSON: "
        "'utf-8' codec can't encode character '\\ud800' in position "
        "90: surrogates not allowed\n"
        "beads.jsonl:5: advice `bd-adv-pre_commit_tests` already exists\n"
        "beads.jsonl:6: advice.bd-2.priority: got 5, expected a whole number from 0, the highest, "
        "to 4\n"
        "beads.jsonl:6: advice.bd-2.hook_timeout: got 400, expected from 1 to 300 seconds, or 0 "
        "for the default of 30\n"
        "beads.jsonl:8: advice[0]: has no `title`\n"
        'beads.jsonl:8: advice.0.id: got ["x"], expected 1 to 100 letters, digits, `.`, `_` and `-`'
        "\n"
        "  Nothing was written.\n"
    )


def test_what_a_bead_says_commands_no_terminal(project: Repo) -> None:
    project.write("beads.jsonl", json.dumps({**BEAD, "advice_hook_command": "a\nb \x1b[31m"}))
    shown = told(project, "import", "beads.jsonl")
    assert shown.count("\n") == 1
    assert shown.isprintable() or "\x1b" not in shown


def test_zero_is_the_default_timeout(project: Repo) -> None:
    project.write("beads.jsonl", json.dumps({**BEAD, "advice_hook_timeout": 0}))
    told(project, "import", "beads.jsonl")
    assert data(project, "list")[0]["hook_timeout"] == 30


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
