"""`gitgates doctor` finds what keeps gates from running, and names what mends it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from conftest import SRC, Repo
from doctor_support import CONFIG, HOOKS, Said, examine, follow, healthy

from gitgates.config.load import load
from gitgates.core.types import make_gate
from gitgates.setup.doctor.checks import find_missing, program_of

INSTALL = "gitgates install-hooks"


def test_healthy(repo: Repo) -> None:
    healthy(repo)
    version = repo.git("version")
    done = repo.gitgates("doctor")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == (
        f"ok       git: {version}\n"
        "ok       pyproject.toml: 1 gate, 2 hooks\n"
        "ok       .git/hooks/pre-commit: installed\n"
        "ok       .git/hooks/pre-merge-commit: installed\n"
        "ok       .git/hooks/pre-push: installed\n"
        "gitgates doctor: nothing is wrong\n"
    )


def test_nothing_installed(repo: Repo) -> None:
    repo.config(CONFIG)
    done = repo.gitgates("doctor")
    assert (done.returncode, done.stderr) == (1, b"")
    assert (
        done.stdout.decode().split("\n", 2)[2]
        == "".join(
            f"problem  .git/hooks/{hook}: {hook} is not installed: git runs none of its gates\n"
            f"         {INSTALL}\n"
            for hook in HOOKS
        )
        + "gitgates doctor: 3 problems\n"
    )


def test_what_it_names_mends_it(repo: Repo) -> None:
    repo.config(CONFIG)
    for mend in {found.mend for found in examine(repo)}:
        follow(repo, mend)
    assert examine(repo) == []


def test_outside_of_a_repository(tmp_path: Path) -> None:
    done = Repo(tmp_path).gitgates("doctor")
    assert (done.returncode, done.stdout) == (74, b"")


def test_colour_only_where_it_is_wanted(repo: Repo) -> None:
    repo.config(CONFIG)
    said = repo.gitgates("doctor", env={"FORCE_COLOR": "1"}).stdout
    assert b"\x1b[31mproblem \x1b[0m .git/hooks/pre-commit" in said


def test_changes_nothing(repo: Repo) -> None:
    healthy(repo)
    before = sorted(str(path) for path in repo.path.rglob("*"))
    assert examine(repo) == []
    assert sorted(str(path) for path in repo.path.rglob("*")) == before


# -- the configuration --


def test_no_configuration(repo: Repo) -> None:
    what = "no [tool.gitgates] in pyproject.toml, and no gitgates.toml"
    assert examine(repo) == [
        Said(
            "problem",
            "configuration",
            str(repo.path),
            what,
            "To create one: gitgates init",
        )
    ]


def test_problems_of_the_configuration_deferred_ones_included(repo: Repo) -> None:
    healthy(repo)
    repo.config("jobs = true\n" + CONFIG.replace('"g"]', '"g", "gg"]', 1))
    assert examine(repo) == [
        Said(
            "problem",
            "configuration",
            "pyproject.toml: tool.gitgates.jobs",
            "got true, expected a whole number, 0 or more",
            "",
        ),
        Said(
            "problem",
            "configuration",
            "pyproject.toml: tool.gitgates.hooks.pre-commit.gates",
            "gate `gg` is not defined",
            "Did you mean `g`?",
        ),
    ]


def test_no_hook_of_git_is_configured(repo: Repo) -> None:
    repo.config('[gates.g]\ncommand = "true"\n[hooks.manual]\ngates = ["g"]\n')
    assert examine(repo) == []


# -- the shim --


def edit_shim(repo: Repo, old: str, new: str) -> None:
    path = repo.path / ".git/hooks/pre-commit"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def the_shim(what: str, severity: str = "problem", mend: str = INSTALL) -> list[Said]:
    return [Said(severity, "shim", ".git/hooks/pre-commit", what, mend)]


def test_not_executable(repo: Repo) -> None:
    path = healthy(repo).path / ".git/hooks/pre-commit"
    path.chmod(0o644)
    what = "is not executable, so git does not run it"
    assert examine(repo) == the_shim(what, mend=f"chmod +x {path}")


def test_interpreter_is_gone(repo: Repo) -> None:
    edit_shim(healthy(repo), f"python={sys.executable}\n", "python='/no where/python'\n")
    assert examine(repo) == the_shim("its interpreter is missing: /no where/python")


def test_home_is_gone(repo: Repo) -> None:
    edit_shim(healthy(repo), f"home={SRC}\n", "home=/nowhere\n")
    assert examine(repo) == the_shim("gitgates is missing from /nowhere")


def test_shim_of_an_older_version(repo: Repo) -> None:
    edit_shim(healthy(repo), "(shim 2)", "(shim 0)")
    assert examine(repo) == the_shim("was written by a different version of gitgates", "note")


# -- what surrounds us --


def test_git_that_is_too_old(repo: Repo, tmp_path: Path) -> None:
    healthy(repo)
    real = repo.ask("sh", "-c", "command -v git").stdout.decode().strip()
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(
        '#!/bin/sh\nfor arg; do [ "$arg" = version ] && echo git version 2.30.9 && exit; done\n'
        f'exec {real} "$@"\n'
    )
    fake.chmod(0o755)
    assert examine(repo, PATH=f"{fake.parent}:{os.environ['PATH']}") == [
        Said(
            "problem",
            "git",
            "git",
            "git version 2.30.9; gitgates needs 2.31 or later",
            "install git 2.31 or later",
        )
    ]


def test_switched_off(repo: Repo) -> None:
    what = "GITGATES=0 is set: hooks run no gates"
    assert examine(healthy(repo), GITGATES="0") == [
        Said("problem", "environment", "GITGATES", what, "unset GITGATES")
    ]


def test_skips(repo: Repo) -> None:
    what = "set, and skips gate `g`"
    assert examine(healthy(repo), SKIP="g") == [
        Said("note", "environment", "SKIP", what, "unset SKIP")
    ]


def test_index_that_a_killed_run_has_left(repo: Repo) -> None:
    left = healthy(repo).write(".git/gitgates-index", "x")
    what = f"a killed run left {left}"
    assert examine(repo) == [Said("note", "left over", str(repo.path), what, f"rm {left}")]


def test_unstaged_work_that_a_killed_run_has_hidden(repo: Repo) -> None:
    healthy(repo).write(".git/gitgates/rescue/journal", "{}")
    what = "a killed run stashed unstaged work, which is not restored yet"
    assert examine(repo) == [Said("problem", "left over", str(repo.path), what, "gitgates recover")]


def test_run_that_is_alive_has_left_nothing(repo: Repo) -> None:
    healthy(repo).write(".git/gitgates/rescue/journal", "{}")
    repo.write(".git/gitgates-index", "x")
    with repo.write(".git/gitgates/lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert examine(repo) == []


# -- what gates need --


def test_programs_and_folders(repo: Repo) -> None:
    repo.config(
        '[gates.gone]\ncommand = "no-such-program --flag"\n'
        '[gates.argv]\ncommand = ["no-such-program"]\n'
        '[gates.path]\ncommand = "./tool x"\nworking_dir = "sub"\n'
        '[gates.fine]\ncommand = "A=b ./tool x"\n'
        '[gates.folder]\ncommand = "true"\nworking_dir = "no such"\n'
        '[gates.shell]\ncommand = "cd x && make"\n'
    )
    repo.write("sub/x")
    repo.write("tool").chmod(0o755)
    mend = "install it, or add its folder to PATH in the gate's env"
    gone = "its program `no-such-program` was not found in PATH"
    assert examine(repo) == [
        Said("problem", "command", "gate `gone`", gone, mend),
        Said("problem", "command", "gate `argv`", gone, mend),
        Said(
            "problem",
            "command",
            "gate `path`",
            "its program ./tool is missing or not executable",
            "look at: ls -l ./tool",
        ),
        Said(
            "problem",
            "command",
            "gate `folder`",
            "its working_dir `no such` does not exist",
            "mkdir -p 'no such'",
        ),
    ]


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("ruff check", "ruff"),
        ("A=b C='d' ruff", "ruff"),
        ("'ruff' check", "ruff"),
        ("cd x && y", "cd"),
        ("$TOOL x", ""),
        ("(a; b)", ""),
        ("! grep x", ""),
        ("if true; then a; fi", "if"),
        ("a=1", ""),
        ("# nothing", ""),
        ("test -f x", "test"),
        ("true|false", ""),
        (("a b", "c"), "a b"),
    ],
)
def test_program_of_a_command(command: str | tuple[str, ...], program: str) -> None:
    assert program_of(make_gate(name="g", command=command)) == program


def test_pre_commit_gates(repo: Repo) -> None:
    config = '[gates.g]\npre-commit = ["ruff", "mypy"]\n[gates.all]\npre-commit = true\n'
    repo.config(config)
    what = "it runs hooks of .pre-commit-config.yaml, which cannot be read"
    mend = "pre-commit validate-config"
    assert examine(repo) == [
        Said("problem", "pre-commit", "gate `g`", what, mend),
        Said("problem", "pre-commit", "gate `all`", what, mend),
    ]
    repo.write(
        ".pre-commit-config.yaml",
        "repos:\n- repo: local\n  hooks:\n  - {id: ruff-check, alias: ruff, name: r, entry: r, "
        "language: system}\n",
    )
    assert examine(repo) == [
        Said(
            "problem",
            "pre-commit",
            "gate `g`",
            ".pre-commit-config.yaml has no hook `mypy`",
            "add it there, or remove it from `g`",
        )
    ]
    repo.write(".pre-commit-config.yaml", "repos: [")
    assert {one.what for one in examine(repo)} == {what}


def test_runner_is_missing(repo: Repo, tmp_path: Path) -> None:
    # An interpreter of its own has no prek beside it.
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    repo.config('[gates.g]\npre-commit = true\nrunner = "prek"\n')
    repo.write(".pre-commit-config.yaml", "repos: []\n")
    root = str(repo.path)
    config = load(root)
    assert config is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.executable", str(python))
        found = list(find_missing(config.gates, root, {"PATH": "/no"}))
    assert [(one.what, one.mend) for one in found] == [
        ("its runner prek is not found", "pipx install prek")
    ]


def test_json_of_odd_names(tmp_path: Path) -> None:
    repo = Repo.init(Path(os.fsdecode(os.fsencode(tmp_path) + b"/latin-\xe9")))
    done = repo.gitgates("doctor", "--format", "json")
    assert (done.returncode, done.stderr) == (1, b"")
    assert "latin-\ufffd" in json.loads(done.stdout)["findings"][1]["where"]


@pytest.mark.parametrize(
    ("value", "severity", "what"),
    [
        ("0", "", ""),
        ("pool", "problem", "expected an absolute path"),
        ("{root}/open", "note", "others may write to it"),
        ("{root}/own", "", ""),
    ],
)
def test_a_pool_that_cannot_be_used(repo: Repo, value: str, severity: str, what: str) -> None:
    healthy(repo)
    (repo.path / "open").mkdir()
    (repo.path / "open").chmod(0o777)
    said = examine(repo, GITGATES_POOL=value.format(root=repo.path))
    said = [one for one in said if one.check == "pool"]
    assert [one.severity for one in said] == ([severity] if severity else [])
    assert all(what in one.what for one in said)


def test_strace_for_gates_that_reuse_passes(repo: Repo, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh", "ssh-keygen"):
        (tools / name).symlink_to(str(shutil.which(name)))
    (tools / "apk").symlink_to("/bin/true")
    for reuse in ("true", "false"):
        repo.config(
            f'[gates.t]\ncommand = "true"\nreuse = {reuse}\n[hooks.manual]\ngates = ["t"]\n'
        )
        said = repo.gitgates("doctor", env={"PATH": str(tools)}).stdout.decode()
        assert ("passes of t are not reused: strace is not installed" in said) is (reuse == "true")
        assert ("apk add strace" in said) is (reuse == "true")
