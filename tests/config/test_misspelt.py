"""Patterns and commands as other tools spell them are refused, with the spelling that is meant."""

from __future__ import annotations

import json

import pytest
from config_support import fatal
from conftest import Repo

from gitgates.config.values import show

NO_REGEX = "Patterns are not regular expressions, and use / between folders."
FROM_ROOT = 'Write it relative to the root of the repository, such as "src/x.py".'
NEVER = [
    ("*.{py,js}", 'Write one pattern for each, as .gitignore has no braces: "*.py", "*.js".'),
    (
        "!a/*.{ts, tsx}",
        'Write one pattern for each, as .gitignore has no braces: "!a/*.ts", "!a/*.tsx".',
    ),
    (r"\.py$", f'{NO_REGEX} Try "*.py".'),
    (r".*\.(py|pyi)$", f'{NO_REGEX} Try "*.py", "*.pyi".'),
    ("^src/", NO_REGEX),
    (r"src/\d+", NO_REGEX),
    (r".*\.py", NO_REGEX),
    (r"docs\index.md", NO_REGEX),
    ("/home/me/x.py", FROM_ROOT),
    ("~/x.py", FROM_ROOT),
    ("C:/x.py", FROM_ROOT),
]
FINE = [
    *("/src/*.py", "/home/", "src/.*", r"\.github/", "{{cookiecutter.x}}/", "~$*.docx", "a{b}"),
    *(r"a\{b,c}", r"odd\$", "[^a]b", "[!a]*.py", "(group)/*.ts", r"\(a\)/", "A$B.class", "a|b"),
]


@pytest.mark.parametrize("key", ["gates.g.files", "gates.g.exclude", "headless.deny"])
def test_a_pattern_that_can_match_nothing_is_a_mistake(key: str) -> None:
    said = {
        pattern: fatal(f"gates.g.command = 'x'\n{key} = ['a', '{pattern}']\n")
        for pattern, _hint in NEVER
    }
    assert said == {
        pattern: f"gitgates.toml: {key}[1]: got {show(pattern)}, "
        f"expected a pattern as in .gitignore. {hint}"
        for pattern, hint in NEVER
    }


def test_a_pattern_that_may_be_meant_so_is_none() -> None:
    said = {
        pattern: fatal(f"[gates.g]\ncommand = 'x'\nfiles = ['{pattern}']\n") for pattern in FINE
    }
    assert said == dict.fromkeys(FINE, "")


PLACEHOLDER = "a command without placeholders. Remove {}, and add pass_files = true."
COMMAND = "a shell command in quotes, or an array of a program and its arguments."
WRONG = [
    ('"ruff check {staged_files}"', PLACEHOLDER.format("{staged_files}")),
    ('"eslint {{files}}"', PLACEHOLDER.format("{{files}}")),
    ("\"eslint '{files}'\"", PLACEHOLDER.format("{files}")),
    (
        '["eslint", "{push_files}"]',
        f"{COMMAND} Remove {{push_files}}, and add pass_files = true.",
    ),
    ('["ruff check"]', f'{COMMAND} Try ["ruff", "check"], or "ruff check".'),
    ('["./x.sh --all", "a"]', f'{COMMAND} Try ["./x.sh", "--all", "a"], or "./x.sh --all a".'),
    (
        '["ruff", "check", "&&", "pytest", "-k", "a b"]',
        f"""{COMMAND} An array is not run by a shell. Try "ruff check && pytest -k 'a b'".""",
    ),
]
RUNS = [
    '''"python -c 'print(f\\"{files}\\")'"''',
    '"git ls-files | xargs -I{files} head {files}"',
    '["./my program", "a"]',
    '["grep", "-rn", "&&", "src"]',
    '["find", ".", "-exec", "wc", "{}", ";"]',
    '["sh", "-c", "a && b"]',
]


@pytest.mark.parametrize(("command", "said"), WRONG)
def test_a_command_that_cannot_work_is_a_mistake(command: str, said: str) -> None:
    found = fatal(f"[gates.g]\ncommand = {command}\n")
    assert found.startswith("gitgates.toml: gates.g.command: got ")
    assert found.endswith(f", expected {said}")


@pytest.mark.parametrize("command", RUNS)
def test_a_command_that_may_be_meant_so_is_none(command: str) -> None:
    assert fatal(f"[gates.g]\ncommand = {command}\n") == ""


NO_FILE = """\
[gates.go]
command = "true"
files = ["*.go", "cmd/"]
[gates.left-out]
command = "true"
files = ["*.py"]
exclude = ["a.py"]
[gates.fine]
command = "true"
files = ["*.py"]
[gates.off]
command = "true"
files = []
"""


def test_check_and_doctor_name_gates_that_no_tracked_file_matches(repo: Repo) -> None:
    repo.config(NO_FILE)
    repo.write("a.py")
    repo.git("add", ".")
    repo.write("new.go")
    none = "match none of 2 tracked files"
    expected = [
        f'gate `go`: its `files` = ["*.go", "cmd/"] {none}',
        f'gate `left-out`: its `files` = ["*.py"] {none}',
    ]
    done = repo.gitgates("check")
    assert done.stdout == b"pyproject.toml: 4 gates, 0 hooks, no problems, 2 warnings\n"
    assert done.stderr.decode().splitlines() == [f"gitgates: {line}" for line in expected]
    done = repo.gitgates("check", "--format", "json")
    assert (done.returncode, json.loads(done.stdout)["warnings"]) == (0, expected)
    said = repo.gitgates("doctor").stdout.decode().splitlines()
    assert [line for line in said if none in line] == [f"note     {line}" for line in expected]


def test_the_command_that_doctor_names_for_such_a_gate_works(repo: Repo) -> None:
    repo.config(f'{NO_FILE}[hooks.pre-push]\ngates = ["go"]\n')
    repo.write("a.py")
    repo.git("add", ".")
    assert b"gitgates explain pre-push --all-files\n" in repo.gitgates("doctor").stdout
    done = repo.gitgates("explain", "pre-push", "--all-files")
    assert done.returncode == 0
    assert b"1. go: skipped: no file matches" in done.stdout


def test_check_names_files_that_never_match_a_commit_message(repo: Repo) -> None:
    repo.config(
        '[gates.py]\ncommand = "true"\nfiles = ["*.py"]\n'
        '[gates.all]\ncommand = "true"\nfiles = ["*"]\n'
        '[hooks.commit-msg]\ngates = ["py", "all"]\n[hooks.pre-commit]\ngates = ["py"]\n'
    )
    repo.write("a.py")
    repo.git("add", ".")
    what = 'gate `py`: its `files` = ["*.py"] never match in commit-msg, which has only the message'
    done = repo.gitgates("check")
    assert done.stderr.decode().splitlines() == [f"gitgates: {what}"]
    assert what in repo.gitgates("doctor").stdout.decode()


def test_where_git_is_not_a_configuration_can_be_checked(repo: Repo) -> None:
    repo.config(NO_FILE)
    repo.ask("rm", "-rf", ".git")
    done = repo.gitgates("check")
    assert (done.returncode, done.stderr) == (0, b"")
