"""install-hooks --config and --global: hooks in git's configuration, which git 2.54 and later has.

Most of this needs such a git: GITGATES_E2E_GIT names one, where that in PATH is older.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import conftest
import pytest
from install_support import BIN, STATE, Repo, make_repo
from terminal_support import on_terminal

from gitgates.git.repo import find_repo
from gitgates.setup.doctor.checks import examine
from gitgates.setup.doctor.findings import survey
from gitgates.verbs.finding import Finding

NEWER = os.environ.get("GITGATES_E2E_GIT") or shutil.which("git") or "git"
NOTES = '[tool.gitgates.gates.g]\ncommand = "echo ran >> {}/ran; test ! -e bad.txt"\n'
HOOKS = ("pre-commit", "commit-msg", "pre-push")
OLDER = (
    "gitgates: git 2.54 and later runs these hooks; an older one, such as of an editor, runs none\n"
)
TRUST = (
    "gitgates: gates run only in repositories that you have trusted\n"
    "  To trust one, in it: gitgates approve gates\n"
)
UNTRUSTED = "nothing was checked: you have not trusted the gates of this repository"


@functools.cache
def version() -> tuple[int, ...]:
    said = subprocess.run([NEWER, "version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, re.findall(r"\d+", said)[:2]))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = make_repo(tmp_path / "repo", tmp_path / "home")
    made.env["PATH"] = f"{os.path.dirname(NEWER)}:{BIN}:{os.environ['PATH']}"
    made.configure(*HOOKS, gate=NOTES.format(tmp_path))
    made.commit("pyproject.toml", (made.path / "pyproject.toml").read_text())
    return made


@pytest.fixture
def newer(repo: Repo) -> Repo:
    if version() < (2, 54):
        pytest.skip(f"{NEWER} has no hooks by configuration; name a newer git by GITGATES_E2E_GIT")
    return repo


def done(repo: Repo, *args: str, **more: str) -> str:
    code, out, err = repo.gitgates(*args, **more)
    assert (code, err) == (0, "")
    return out


def with_git(repo: Repo, number: str) -> str:
    """Return a PATH with a git that says it is of another version."""
    said = f'case "$*" in *version) echo git version {number} ;; *) exec {NEWER} "$@" ;; esac'
    file = repo.write(".git/older/git", f"#!/bin/sh\n{said}\n", 0o755)
    return f"{file.parent}:{repo.env['PATH']}"


def config(repo: Repo) -> bytes:
    return (repo.path / ".git/config").read_bytes()


def ran(repo: Repo) -> int:
    """Return how often the gate has run since this was asked last."""
    file = repo.path.parent / "ran"
    count = len(file.read_text().splitlines()) if file.exists() else 0
    file.unlink(missing_ok=True)
    return count


def findings(repo: Repo) -> list[tuple[str, str, str, str]]:
    found = examine(survey(find_repo(str(repo.path), repo.env)))
    checks = ("hook", "shim", "twice")
    return [(one.severity, one.where, one.what, one.mend) for one in found if one.check in checks]


# Any git


def test_an_older_git_is_refused_before_anything_is_written(repo: Repo, tmp_path: Path) -> None:
    path = with_git(repo, "2.53.1")
    before = config(repo)
    for option, hint in (("--config", ""), ("--global", "")):
        code, out, err = repo.gitgates("install-hooks", option, PATH=path)
        assert (code, out) == (74, "")
        assert err == (
            "gitgates: git version 2.53.1 has no hooks by configuration, and would run none of the "
            "gates: that needs git 2.54 or later\n"
            f"  Install them as files, which every git runs: gitgates install-hooks{hint}\n"
        )
    assert config(repo) == before
    assert not (tmp_path / "home/gitconfig").exists()


@pytest.mark.parametrize("option", ["--config", "--global"])
@pytest.mark.parametrize("other", [("--force",), ("--via", "husky"), ("--agent", "claude")])
def test_options_that_do_not_fit(repo: Repo, option: str, other: tuple[str, ...]) -> None:
    code, out, err = repo.gitgates("install-hooks", option, *other)
    assert (code, out) == (64, "")
    assert "cannot be used with --" in err


# The repository's own


def test_a_configuration_that_git_cannot_read_is_not_taken_for_an_empty_one(
    repo: Repo, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("[hook\n")
    code, out, err = repo.gitgates("uninstall-hooks", "--global", GIT_CONFIG_GLOBAL=str(broken))
    assert (code, out) == (74, "")
    assert "git's configuration cannot be read: fatal: bad config line 1 in file" in err


def test_it_is_written_once_and_taken_out_byte_for_byte(newer: Repo) -> None:
    with (newer.path / ".git/config").open("ab") as file:
        file.write(b'# mine\n[hook "linter"]\n\tcommand = true ; mine\n\tevent = pre-commit')
    before = config(newer)
    names = [f"hook.gitgates-{name}" for name in ("pre-commit", "pre-merge-commit", *HOOKS[1:])]
    said = done(newer, "install-hooks", "--config")
    assert said == "".join(f"{name}: installed\n" for name in names) + OLDER
    assert newer.hooks() == []
    after = config(newer)
    said = done(newer, "install-hooks", "--config")
    assert said == "".join(f"{name}: already installed\n" for name in names) + OLDER
    assert config(newer) == after
    newer.git("config", "hook.gitgates-pre-push.command", "an older one")
    assert f"{names[3]}: updated\n" in done(newer, "install-hooks", "--config")
    assert newer.git("hook", "list", "pre-push") == "gitgates-pre-push"
    removed = "".join(f"{name}: removed\n" for name in names)
    assert done(newer, "uninstall-hooks") == removed + STATE.format(".git/gitgates")
    assert config(newer) == before + b"\n"  # which git adds to a last line without an end
    assert done(
        newer, "uninstall-hooks"
    ) == f"gitgates: no gitgates hooks in {newer.path}/.git/hooks\n" + STATE.format(".git/gitgates")


def test_each_hook_gets_what_git_gives_it(newer: Repo, tmp_path: Path) -> None:
    gates = {
        "pre-commit": "git diff --cached --name-only > ../staged",
        "commit-msg": "cat .git/COMMIT_EDITMSG > ../message",
        "pre-push": f"git log -1 --format=%s > {tmp_path}/pushed",
    }
    tables = (
        f"[gates.{name}]\ncommand = '{command}'\n[hooks.{name}]\ngates = ['{name}']\n"
        for name, command in gates.items()
    )
    newer.write("gitgates.toml", "".join(tables))
    (newer.path / "pyproject.toml").unlink()
    done(newer, "install-hooks", "--config")
    newer.write("a b.txt", "x")
    newer.git("add", ".")
    newer.write("unstaged.txt", "x")
    newer.git("commit", "-q", "-m", "the message")
    assert (tmp_path / "staged").read_text() == "a b.txt\ngitgates.toml\npyproject.toml\n"
    assert (tmp_path / "message").read_text() == "the message\n"
    newer.git("init", "-q", "--bare", tmp_path / "remote")
    newer.git("push", "-q", tmp_path / "remote", "HEAD:refs/heads/x")
    assert (tmp_path / "pushed").read_text() == "the message\n"


def test_a_failing_gate_refuses_commit_and_push_in_each_worktree(
    newer: Repo, tmp_path: Path
) -> None:
    done(newer, "install-hooks", "--config")
    assert newer.commit("a.txt").returncode == 0
    assert ran(newer) == 2  # before the commit, and of its message
    newer.git("worktree", "add", "-q", tmp_path / "linked")
    linked = newer._replace(path=tmp_path / "linked")
    for one in (newer, linked):
        refused = one.commit("bad.txt")
        assert refused.returncode == 1
        assert "gitgates pre-commit: blocked: gate `g` failed" in refused.stderr
        assert ran(newer) == 1
    newer.git("init", "-q", "--bare", tmp_path / "remote")
    refused = newer.run("git", "push", "-q", str(tmp_path / "remote"), "HEAD:refs/heads/x")
    assert refused.returncode == 1
    assert "gitgates pre-push: blocked" in refused.stderr
    assert newer.run("git", "commit", "-qm", "x", GITGATES="0").returncode == 0


def test_hooks_of_others_run_beside_it(newer: Repo) -> None:
    newer.keep("pre-commit")
    newer.git("config", "hook.linter.command", "echo linter ran >&2")
    newer.git("config", "hook.linter.event", "pre-commit")
    done(newer, "install-hooks", "--config")
    said = newer.commit("a.txt").stderr
    assert ("linter ran" in said, "foreign ran" in said, ran(newer)) == (True, True, 2)


def test_a_file_that_runs_the_gates_runs_them_alone(newer: Repo) -> None:
    assert done(newer, "install-hooks").startswith(".git/hooks/pre-commit: installed\n")
    own = b'#!/bin/sh\nexec gitgates git-hook --via=own commit-msg "$@"\n'
    shim = newer.hook("pre-commit").read_bytes()
    said = done(newer, "install-hooks", "--config")
    assert ".git/hooks/pre-commit: removed\n" in said
    assert newer.hooks() == []
    newer.keep("pre-commit", shim)
    newer.keep("commit-msg", own)
    assert newer.commit("a.txt").returncode == 0
    assert ran(newer) == 2
    both = "git's configuration has this hook as well, which leaves the gates to the file"
    assert [found for found in findings(newer) if found[2] == both] == [
        ("ok", f".git/hooks/{hook}", both, "") for hook in ("pre-commit", "commit-msg")
    ]
    newer.hook("pre-commit").chmod(0o644)  # git does not run it
    newer.keep("commit-msg", b"#!/bin/sh\n# not gitgates\n")
    assert newer.commit("b.txt").returncode == 0
    assert ran(newer) == 2
    # Installed as files again, they are no longer in the configuration.
    said = done(newer, "install-hooks", "--force")
    assert "hook.gitgates-pre-commit: removed\n" in said
    assert newer.commit("c.txt").returncode == 0
    assert ran(newer) == 2


def test_a_manager_that_runs_the_gates_runs_them_alone(newer: Repo) -> None:
    newer.write(".husky/_/pre-commit", '#!/bin/sh\n. "$(dirname "$0")/h"\n', 0o755)
    newer.write(".husky/_/h", '#!/bin/sh\nsh -e ".husky/$(basename "$0")" "$@"\n', 0o755)
    newer.write(".husky/pre-commit", 'gitgates git-hook --via=husky pre-commit "$@"\n')
    newer.git("config", "core.hooksPath", ".husky/_")
    done(newer, "install-hooks", "--config", "-t", "pre-commit")
    assert newer.commit("a.txt").returncode == 0
    assert ran(newer) == 1
    # A line that is commented out runs nothing.
    newer.write(".husky/pre-commit", '# gitgates git-hook --via=husky pre-commit "$@"\n')
    assert newer.commit("b.txt").returncode == 0
    assert ran(newer) == 1


def test_a_file_that_is_a_fifo_is_not_waited_for(newer: Repo) -> None:
    done(newer, "install-hooks", "--config", "-t", "pre-commit")
    newer.keep("pre-commit", b"#!/bin/sh\n: call_lefthook\n")
    os.mkfifo(newer.path / "lefthook.yml")
    assert newer.run("git", "commit", "-qm", "x", "--allow-empty").returncode == 0
    assert ran(newer) == 1


def test_where_gitgates_is_gone_nothing_passes_in_silence(newer: Repo) -> None:
    done(newer, "install-hooks", "--config", "-t", "pre-commit")
    command = newer.git("config", "hook.gitgates-pre-commit.command")
    gone = re.sub(r"/\S+/bin/python\S*", "/gone/python", command)
    newer.git("config", "hook.gitgates-pre-commit.command", gone)
    path = f"{os.path.dirname(NEWER)}:/usr/bin:/bin"
    newer.write("a", "x")
    newer.git("add", "a", PATH=path)
    refused = newer.run("git", "commit", "-qm", "x", PATH=path)
    assert refused.returncode == 1
    assert refused.stderr == (
        "gitgates pre-commit: nothing was checked: gitgates is gone. Install it again, and run: "
        "gitgates install-hooks --config. Or take this hook out: git config --local "
        "--remove-section hook.gitgates-pre-commit\n"
    )
    assert newer.run("git", "commit", "-qm", "x", PATH=path, GITGATES="0").returncode == 0
    # One that is in PATH takes its place.
    assert newer.commit("b.txt").returncode == 0
    assert ran(newer) == 1
    newer.git("config", "--local", "--remove-section", "hook.gitgates-pre-commit")


@pytest.mark.parametrize(
    ("change", "what", "mend"),
    [
        (
            ("hook.gitgates-pre-push.enabled", "false"),
            "`hook.gitgates-pre-push.enabled` is false:",
            "git config --unset-all",
        ),
        (
            ("hook.pre-push.enabled", "no"),
            "`hook.pre-push.enabled` is false: git does not",
            "git config --unset-all",
        ),
        (
            ("hook.gitgates-pre-push.event", ""),
            "pre-push is not installed: git runs none",
            "gitgates install-hooks",
        ),
    ],
)
def test_doctor_says_what_switches_it_off(newer: Repo, change: Any, what: str, mend: str) -> None:
    done(newer, "install-hooks", "--config")
    assert {one[0] for one in findings(newer)} == {"ok"}
    assert len(findings(newer)) == 4
    newer.git("config", "--add", *change)
    (found,) = [one for one in findings(newer) if one[0] != "ok"]
    assert found[0] == "problem"
    assert found[2].startswith(what)
    assert found[3].startswith(mend)


def missing_folder(repo: Repo) -> Finding:
    found = examine(survey(find_repo(str(repo.path), repo.env)))
    (finding,) = [one for one in found if "that folder does not exist" in one.what]
    return finding


def test_doctor_in_a_worktree_whose_hooks_folder_is_missing(newer: Repo, tmp_path: Path) -> None:
    done(newer, "install-hooks", "--config")
    newer.git("worktree", "add", "-q", tmp_path / "linked")
    newer.git("config", "extensions.worktreeConfig", "true")
    linked = newer._replace(path=tmp_path / "linked")
    linked.git("config", "--worktree", "core.hooksPath", "missing")
    missing = missing_folder(newer)
    assert missing.severity == "note"
    assert missing.what.endswith("that folder does not exist: git runs those of its configuration")
    assert len(findings(newer)) == 4  # once, not once for each worktree
    newer.git("config", "hook.gitgates-pre-push.command", "true")
    (found,) = [one for one in findings(linked) if one[0] == "problem"]
    assert found[3] == "gitgates install-hooks --config"
    newer.git("config", "--unset-all", "hook.gitgates-pre-push.event")
    assert missing_folder(newer).severity == "problem"  # git runs nothing before a push


def test_doctor_says_where_it_is_switched_off(newer: Repo) -> None:
    done(newer, "install-hooks", "--config", "-t", "pre-push")
    newer.git("config", "--global", "hook.pre-push.enabled", "false")
    (mend,) = [one[3] for one in findings(newer) if "hook.pre-push.enabled" in one[2]]
    assert newer.run("sh", "-c", mend).returncode == 0
    assert "hook.pre-push.enabled" not in "".join(one[2] for one in findings(newer))


def test_a_section_with_a_name_like_ours_stays(newer: Repo) -> None:
    newer.git("config", "hook.gitgates-mine.command", "echo mine")
    newer.git("config", "hook.gitgates-mine.event", "post-merge")
    before = config(newer)
    done(newer, "install-hooks", "--config")
    newer.gitgates("uninstall-hooks")
    assert config(newer) == before


@pytest.mark.parametrize("option", ["--config", "--global"])
def test_doctor_proves_that_a_failing_gate_refuses(newer: Repo, option: str) -> None:
    done(newer, "install-hooks", option)
    said = newer.gitgates("doctor", "--prove")[1]
    proved = "hook.gitgates-pre-commit: proved: a commit whose gate fails is refused\n"
    assert proved in said
    newer.git("config", "hook.gitgates-pre-commit.command", "true")
    newer.git("config", "hook.gitgates-pre-commit.event", "pre-commit")
    said = newer.gitgates("doctor", "--prove")[1]
    assert "hook.gitgates-pre-commit: a commit whose gate fails goes through" in said


def test_doctor_says_that_an_older_git_runs_none(newer: Repo) -> None:
    done(newer, "install-hooks", "--config", "-t", "pre-commit")
    path = with_git(newer, "2.39.5")
    newer.env["PATH"] = path
    found = [one for one in findings(newer) if "pre-commit" in one[1]]
    assert ("this git has no hooks by configuration" in found[0][2], found[0][3]) == (
        True,
        "gitgates install-hooks",
    )


# A person's own, for all repositories


def test_gates_of_a_clone_run_once_a_person_has_trusted_it(newer: Repo, tmp_path: Path) -> None:
    names = ("pre-commit", "pre-merge-commit", "commit-msg", "pre-push")
    outside = newer._replace(path=tmp_path)
    said = done(outside, "install-hooks", "--global")
    assert said == "".join(f"hook.gitgates-{name}: installed\n" for name in names) + OLDER + TRUST
    made = newer.commit("bad.txt")
    assert (made.returncode, ran(newer)) == (0, 0)
    assert made.stderr.count(UNTRUSTED) == 2
    newer.configure("pre-commit", gate=NOTES.format(tmp_path))
    assert newer.commit("b.txt").stderr.count(UNTRUSTED) == 1  # not where there are no gates
    newer.configure(*HOOKS, gate=NOTES.format(tmp_path))
    assert "To trust them, once: gitgates approve gates\n" in made.stderr
    assert not (newer.path / ".git/gitgates").exists()  # nothing of it is written
    (found,) = [one for one in findings(newer) if "gitgates-pre-push" in one[1]]
    assert (found[0], found[3]) == ("problem", "gitgates approve gates")
    refused = newer.gitgates("approve", "gates")
    assert refused[0] == 64
    assert "gates can only be approved by a person in a terminal" in refused[2]
    told = on_terminal(conftest.Repo(newer.path), "approve", "gates", env=newer.env)
    assert b"run the gates of %s: `g`" % str(newer.path).encode() in b" ".join(told.split())
    again = newer.commit("c.txt")
    assert (again.returncode, ran(newer)) == (1, 1)
    assert {one[0] for one in findings(newer)} == {"ok"}
    done(newer, "uninstall-hooks", "--purge")  # with which the trust goes
    newer.git("commit", "-qm", "c")
    assert ran(newer) == 0


def test_repositories_without_gates_notice_nothing(newer: Repo, tmp_path: Path) -> None:
    done(newer, "install-hooks", "--global")
    (newer.path / "pyproject.toml").unlink()
    made = newer.commit("a.txt")
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    assert not (newer.path / ".git/gitgates").exists()
    # Nor do they where gitgates is gone.
    file = tmp_path / "home/gitconfig"
    file.write_text(re.sub(r"/\S+/bin/python\S*", "/gone/python", file.read_text()))
    path = f"{os.path.dirname(NEWER)}:/usr/bin:/bin"
    newer.write("b", "x")
    newer.git("add", "b", PATH=path)
    assert newer.run("git", "commit", "-qm", "b", PATH=path).stderr == ""
    newer.configure("pre-commit")
    refused = newer.run("git", "commit", "-qm", "c", "--allow-empty", PATH=path)
    assert (refused.returncode, "gitgates is gone" in refused.stderr) == (1, True)


def test_the_repositorys_own_take_their_place(newer: Repo) -> None:
    done(newer, "install-hooks", "--global")
    done(newer, "install-hooks", "--config")
    made = newer.commit("a.txt")
    assert (UNTRUSTED in made.stderr, ran(newer)) == (False, 2)
    done(newer, "uninstall-hooks")
    done(newer, "install-hooks")
    made = newer.commit("b.txt")
    assert (UNTRUSTED in made.stderr, ran(newer)) == (False, 2)
    said = done(newer, "uninstall-hooks")
    assert "home/gitconfig, a configuration of git, has pre-commit, " in said
    assert "To remove them for all repositories: gitgates uninstall-hooks --global\n" in said


def test_all_of_it_is_removed_again(newer: Repo, tmp_path: Path) -> None:
    file = tmp_path / "home/gitconfig"
    file.write_text("[user]\n\tname = A ; me\n")
    before = file.read_bytes()
    done(newer, "install-hooks", "--global", "-t", "pre-push")
    assert done(newer, "uninstall-hooks", "--global") == "hook.gitgates-pre-push: removed\n"
    assert file.read_bytes() == before
    none = "gitgates: no gitgates hooks in your configuration of git\n"
    assert done(newer, "uninstall-hooks", "--global") == none
