"""`gitgates explain` tells the plan that `gitgates run` would run."""

from __future__ import annotations

import json
import os

import pytest
from conftest import Repo

CONFIG = """
[gates.lint]
description = "style"
command = "ruff check"
files = ["*.py"]
pass_files = true
timeout = "2m"
on_fail = "fix"
[gates.fix]
command = ["ruff", "check", "--fix", "a b"]
writes = true
on_pass = "tell"
on_fail = "tell"
[gates.tell]
command = "notify"
timeout = 90
[gates.hooks]
pre-commit = ["ruff", "mypy"]
runner = "prek"
required = true
priority = "high"
[gates.js]
command = "eslint"
files = ["*.js"]
env = { A = "b" }
working_dir = "front"
[gates.empty]
[hooks.pre-commit]
gates = ["lint", "js", "missing", "empty", "hooks", "tell"]
[hooks.pre-rebase]
gates = ["js"]
[hooks.post-merge]
gates = []
"""

PLAN = """\
pre-commit: 6 gates, sequence; on 5 paths: a.py, b.py, c.py and 2 more
note: gate `hooks` is required: SKIP does not skip it

1. hooks: runs on 5 paths: a.py, b.py, c.py and 2 more
   command   prek run: ruff mypy
   timeout   5 min
   priority  high
   also      is required
   on pass   CONTINUE
   on fail   BLOCK

2. lint: runs on 3 paths: a.py, b.py, c.py
   checks    style
   command   ruff check
   timeout   2 min
   also      gets the paths
   on pass   CONTINUE
   on fail   → fix: always runs
      command   ruff check --fix 'a b'
      timeout   5 min
      also      may change files, so it runs alone
      on pass   → tell: skipped: named in SKIP
         command   notify
         timeout   90 s
         on pass   CONTINUE
         on fail   BLOCK
      on fail   → tell: skipped: named in SKIP (as above)

3. js: skipped: no file matches
   command   eslint
   timeout   5 min
   in        front
   also      sets A
   on pass   CONTINUE
   on fail   BLOCK

4. missing: stops the run when reached: gate `missing` is listed but not defined

5. empty: stops the run when reached: gate `empty` has no command

6. tell: skipped: named in SKIP (as above)
"""


@pytest.fixture(name="project")
def _project(repo: Repo) -> Repo:
    repo.config(CONFIG)
    for name in ("a.py", "b.py", "c.py", "d.txt"):
        repo.write(name)
    return repo


def explain(repo: Repo, *args: str, **env: str) -> tuple[int, str, str]:
    done = repo.gitgates("explain", *args, env=env)
    return done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode()


def test_whole_plan(project: Repo) -> None:
    assert explain(project, "pre-commit", SKIP="tell,hooks") == (0, PLAN, "")


def test_skips_that_name_no_gate(project: Repo) -> None:
    env = {"GITGATES_SKIP": "nope,hooks", "SKIP": "of-the-framework"}
    _status, said, _err = explain(project, "pre-commit", "--files", "a.py", **env)
    notes = [
        "GITGATES_SKIP names an unknown gate: `nope`",
        "gate `hooks` is required: GITGATES_SKIP does not skip it",
    ]
    assert said.splitlines()[1:3] == [f"note: {note}" for note in notes]
    _status, said, _err = explain(project, "pre-commit", "--format", "json", **env)
    assert json.loads(said)["notes"] == notes


def test_runs_nothing(project: Repo) -> None:
    project.config('[gates.g]\ncommand = "touch ran"\n[hooks.pre-commit]\ngates = ["g"]\n')
    assert explain(project, "pre-commit")[0] == 0
    assert not (project.path / "ran").exists()
    assert not (project.path / ".git/gitgates/runs").exists()


def test_paths_that_are_named(project: Repo) -> None:
    _status, said, _err = explain(project, "pre-commit", "--files", "a.py", "d.txt")
    assert said.startswith("pre-commit: 6 gates, sequence; on 2 paths: a.py, d.txt\n")


def test_all_files(project: Repo) -> None:
    project.git("add", "a.py")
    _status, said, _err = explain(project, "pre-commit", "--all-files")
    assert said.startswith("pre-commit: 6 gates, sequence; on 1 path: a.py\n")


def test_nothing_has_changed(project: Repo) -> None:
    project.git("add", "-A")
    project.commit()
    _status, said, _err = explain(project, "pre-rebase")
    assert said == (
        "pre-rebase: 1 gate, sequence; no file has changed\n"
        "note: git passes no paths to pre-rebase: when fired by git, `js` would be skipped\n\n"
        "1. js: skipped: no file has changed\n"
        "   command   eslint\n   timeout   5 min\n   in        front\n   also      sets A\n"
        "   on pass   CONTINUE\n   on fail   BLOCK\n"
    )


def test_hook_that_stands_in_for_another(project: Repo) -> None:
    _status, said, _err = explain(project, "pre-merge-commit", "--files", "a.py")
    assert said.splitlines()[:2] == [
        "pre-merge-commit: 6 gates, sequence; on 1 path: a.py",
        "note: pre-merge-commit has no gates of its own, so those of pre-commit run",
    ]


@pytest.mark.parametrize("hook", ["pre-push", "post-merge"])
def test_hook_without_gates(project: Repo, hook: str) -> None:
    assert explain(project, hook) == (
        0,
        f"{hook} has no gates, so nothing runs. Hooks with gates: pre-commit, pre-rebase.\n",
        "",
    )
    status, said, _err = explain(project, hook, "--format", "json")
    assert status == 0
    assert json.loads(said) == {"version": 1, "hook": hook, "configured_as": None, "gates": []}


def test_unknown_hook(project: Repo) -> None:
    assert explain(project, "pre-comit") == (
        64,
        "",
        "gitgates: unknown hook `pre-comit`\n  Did you mean `pre-commit`?\n",
    )
    assert explain(project, "xyzzy") == (
        64,
        "",
        "gitgates: unknown hook `xyzzy`\n  Configured: pre-commit, pre-rebase, post-merge.\n",
    )
    assert explain(Repo.init(project.path / "other"), "xyzzy") == (
        64,
        "",
        "gitgates: unknown hook `xyzzy`\n  Configured: none.\n",
    )


def test_without_a_hook_it_is_the_one_of_a_commit(project: Repo) -> None:
    assert explain(project) == explain(project, "pre-commit")


def test_no_configuration(repo: Repo) -> None:
    assert explain(repo, "pre-commit") == (
        78,
        "",
        (
            f"gitgates: {repo.path}: no [tool.gitgates] in pyproject.toml, and no gitgates.toml\n"
            "  To create one: gitgates init\n"
        ),
    )


def test_json(project: Repo) -> None:
    args = ("pre-commit", "--format", "json", "--files", "a.py", "d.txt")
    status, said, err = explain(project, *args)
    document = json.loads(said)
    gates = document.pop("gates")
    assert (status, err) == (0, "")
    assert document == {
        "version": 1,
        "hook": "pre-commit",
        "configured_as": "pre-commit",
        "strategy": "sequence",
        "paths": ["a.py", "d.txt"],
        "order": ["hooks", "lint", "js", "missing", "empty", "tell"],
        "notes": [],
        "session": None,
        "not_asked": "",
        "policies": [
            {"name": "gates", "verdict": "allow", "to_agent": "", "to_person": "", "note": ""}
        ],
    }
    facts = [(g["name"], g["listed"], g["runs"], g["called_by"], g["paths"]) for g in gates]
    assert facts == [
        ("hooks", True, True, [], ["a.py", "d.txt"]),
        ("lint", True, True, [], ["a.py"]),
        ("js", True, False, [], []),
        ("missing", True, False, [], []),
        ("empty", True, False, [], []),
        ("tell", True, True, ["fix"], []),
        ("fix", False, True, ["lint"], []),
    ]
    assert gates[1] == {
        "name": "lint",
        "listed": True,
        "called_by": [],
        "runs": True,
        "why": "runs on 1 path: a.py",
        "fault": "",
        "takes_paths": True,
        "paths": ["a.py"],
        "description": "style",
        "command": "ruff check",
        "pre_commit": None,
        "runner": None,
        "working_dir": ".",
        "timeout_s": 120.0,
        "on_pass": "CONTINUE",
        "on_fail": "fix",
        "priority": "normal",
        "writes": False,
        "required": False,
        "reuse": None,
    }


def test_odd_names_and_commands_stay_on_their_line(repo: Repo) -> None:
    repo.config(
        "[gates.odd]\ncommand = '''echo one\necho two'''\nfiles = ['*']\n"
        "[gates.long]\ncommand = '" + "x" * 200 + "'\n"
        "[hooks.pre-commit]\ngates = ['odd', 'long']\n"
    )
    for name in ("new\nline", "\x1b[31mred", "-dash"):
        repo.write(name)
    repo.write(os.fsdecode(b"latin-\xe9"))
    status, said, err = explain(repo, "pre-commit")
    assert (status, err) == (0, "")
    assert said.splitlines() == [
        (
            'pre-commit: 2 gates, sequence; on 5 paths: "\\u001b[31mred", -dash, "latin-\ufffd" '
            "and 2 more"
        ),
        "",
        '1. odd: runs on 5 paths: "\\u001b[31mred", -dash, "latin-\ufffd" and 2 more',
        '   command   "echo one\\necho two"',
        "   timeout   5 min",
        "   on pass   CONTINUE",
        "   on fail   BLOCK",
        "",
        "2. long: always runs",
        "   command   " + "x" * 99 + "…",
        "   timeout   5 min",
        "   on pass   CONTINUE",
        "   on fail   BLOCK",
    ]
    document = json.loads(explain(repo, "pre-commit", "--format", "json")[1])
    assert "latin-\ufffd" in document["paths"]


def test_colour_only_where_it_is_wanted(project: Repo) -> None:
    assert "\x1b[1mlint\x1b[0m: runs" in explain(project, "pre-commit", FORCE_COLOR="1")[1]
    assert "\x1b" not in explain(project, "pre-commit")[1]
    assert "\x1b" not in explain(project, "pre-commit", FORCE_COLOR="1", NO_COLOR="1")[1]
