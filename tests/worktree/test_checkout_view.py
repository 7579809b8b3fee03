"""Gates before a push see the pushed commit, and nothing that lies about in the working tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Repo, timeless
from worktree_state import whole

LOOK = 'pwd >> "$OUT/where"; cat a >> "$OUT/a"; ls >> "$OUT/names"; git ls-files >> "$OUT/git"'
CONFIG = f"""
[gates.look]
command = '''{LOOK}'''
[gates.good]
command = "! grep -l bad a"
[gates.paths]
command = 'cat "$@" >> "$OUT/paths"'
files = ["*.txt"]
pass_files = true
[hooks.pre-push]
gates = ["look", "good", "paths"]
"""


@pytest.fixture
def pushing(repo: Repo, out: Path) -> Repo:
    """A repository with a remote that has its first commit."""
    assert out.exists()
    repo.config(CONFIG)
    repo.write("a", "first\n")
    repo.commit_all("first")
    repo.add_origin()
    repo.shim("pre-push")
    return repo


def change(repo: Repo, text: str, name: str = "a") -> None:
    repo.write(name, text)
    repo.git("add", name)
    repo.git("commit", "-qm", text.strip())


def said(out: Path, name: str) -> list[str]:
    path = out / name
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


@pytest.mark.thorough
def test_where_the_tree_is_the_commit_gates_run_in_it(pushing: Repo, out: Path) -> None:
    change(pushing, "second\n")
    pushing.git("push", "-q", "origin", "main")
    assert said(out, "where") == [str(pushing.path)]


@pytest.mark.samples(1)
@pytest.mark.parametrize("dirt", ["unstaged", "staged", "untracked"])
def test_what_is_not_pushed_is_not_seen(pushing: Repo, out: Path, dirt: str) -> None:
    change(pushing, "second\n")
    if dirt == "untracked":
        pushing.write("forgotten", "x\n")
    else:
        pushing.write("a", "not pushed\n")
    if dirt == "staged":
        pushing.git("add", "a")
    before = whole(pushing)
    done = pushing.ask("git", "push", "origin", "main")
    assert done.returncode == 0, done.stderr
    assert b"checking what is pushed to main in a private checkout" in done.stderr
    assert said(out, "where") != [str(pushing.path)]
    assert said(out, "a") == ["second"]
    assert said(out, "names") == said(out, "git") == ["a", "pyproject.toml"]
    assert whole(pushing) == before
    assert len(pushing.git("worktree", "list").splitlines()) == 1


@pytest.mark.thorough
def test_git_has_nothing_to_complain_of_there(pushing: Repo, out: Path) -> None:
    look = "git status --short >> $OUT/said 2>&1; git log -1 --format=%s >> $OUT/said 2>&1"
    pushing.config(f"[gates.look]\ncommand = '{look}'\n[hooks.pre-push]\ngates = ['look']\n")
    pushing.git("add", ".")
    change(pushing, "second\n")
    pushing.write("forgotten", "x")
    done = pushing.ask("git", "push", "origin", "main")
    assert b"in a private checkout" in done.stderr
    assert said(out, "said") == ["second"]


def test_a_mistake_that_is_mended_but_not_committed_is_found(pushing: Repo, out: Path) -> None:
    change(pushing, "bad\n")
    pushing.write("a", "mended\n")
    done = pushing.ask("git", "push", "origin", "main")
    assert done.returncode == 1
    assert b"gitgates pre-push: blocked by `good`" in done.stderr
    assert said(out, "where") != [str(pushing.path)]
    pushing.git("commit", "-qam", "mended")
    assert pushing.ask("git", "push", "origin", "main").returncode == 0
    assert said(out, "where") == [str(pushing.path)]  # the tree is the commit


def test_each_of_two_branches_is_checked_by_itself(pushing: Repo, out: Path) -> None:
    for name in ("one", "two"):
        pushing.git("checkout", "-qb", name, "main")
        change(pushing, f"{name}\n")
        change(pushing, f"text of {name}\n", f"{name}.txt")
    pushing.git("checkout", "-q", "main")
    done = pushing.ask("git", "push", "origin", "one", "two")
    assert done.returncode == 0, done.stderr
    assert said(out, "a") == ["one", "two"]
    assert said(out, "paths") == ["text of one", "text of two"]


def test_one_bad_branch_of_two_refuses_the_push(pushing: Repo) -> None:
    for name in ("one", "two"):
        pushing.git("checkout", "-qb", name, "main")
        change(pushing, "bad\n" if name == "two" else "fine\n")
    pushing.git("checkout", "-q", "main")
    done = pushing.ask("git", "push", "origin", "one", "two")
    assert done.returncode == 1
    assert timeless(done.stderr).count("good   failed") == 1


def test_keep_checks_the_working_tree(pushing: Repo, out: Path) -> None:
    pushing.config(CONFIG + 'unstaged = "keep"\n')
    pushing.git("add", "pyproject.toml")
    change(pushing, "second\n")
    pushing.write("forgotten", "x\n")
    pushing.git("push", "-q", "origin", "main")
    assert said(out, "where") == [str(pushing.path)]


def test_unstaged_changes_may_be_hidden_for_a_push(pushing: Repo, out: Path) -> None:
    pushing.config(CONFIG + 'unstaged = "hide"\n')
    pushing.git("add", ".")
    change(pushing, "second\n")
    pushing.write("a", "not pushed\n")
    before = whole(pushing)
    done = pushing.ask("git", "push", "origin", "main")
    assert done.returncode == 0, done.stderr
    assert (said(out, "where"), said(out, "a")) == ([str(pushing.path)], ["second"])
    assert whole(pushing) == before
    pushing.git("add", "a")  # which cannot be hidden: the index would have to change
    change(pushing, "x\n", "other")
    pushing.write("a", "staged\n")
    pushing.git("add", "a")
    assert pushing.ask("git", "push", "origin", "main").returncode == 0
    assert said(out, "where") != [str(pushing.path)]


def test_what_a_gate_lacks_there_is_said_and_installed(pushing: Repo, out: Path) -> None:
    """As a user meets it: a push from a dirty tree, the message, one line of configuration."""
    tables = "[gates.tool]\ncommand = 'deps/tool'\n[hooks.pre-push]\ngates = ['tool']\n"
    pushing.config(tables)
    pushing.write(".gitignore", "deps/\n")
    pushing.write("package-lock.json", "{}")
    pushing.write("deps/tool", "#!/bin/sh\nexit 0\n").chmod(0o755)
    pushing.git("add", ".")
    change(pushing, "second\n")
    pushing.write("forgotten", "x")
    done = pushing.ask("git", "push", "origin", "main")
    assert done.returncode == 1
    assert b"lack what git ignores in the working tree: deps/" in done.stderr
    assert b'[tool.gitgates.worktree] setup = "npm ci" in pyproject.toml; or commit' in done.stderr
    setup = (
        'mkdir -p deps && printf "#!/bin/sh\\n" > deps/tool && chmod +x deps/tool && echo >> $OUT/n'
    )
    pushing.config(f"{tables}[worktree]\nsetup = '{setup}'\n")
    for number in range(2):
        pushing.git("add", ".", ":!forgotten")
        change(pushing, f"{number}\n")
        done = pushing.ask("git", "push", "origin", "main")
        assert done.returncode == 0, done.stderr
        assert (b"private checkout: `mkdir" in done.stderr) is (number == 0)
    assert (out / "n").read_text() == "\n"
    pushing.git("rm", "-q", "package-lock.json")
    pushing.config(tables.replace("deps/tool", "false"))
    (pushing.path / ".gitignore").write_text("")
    pushing.git("add", ".", ":!forgotten")
    change(pushing, "third\n")
    assert b"git ignores" not in pushing.ask("git", "push", "origin", "main").stderr


def test_a_gate_that_stages_and_commits_there_touches_nothing_here(
    pushing: Repo, out: Path
) -> None:
    look = "git status --short >> $OUT/said 2>&1; git log -1 --format=%s >> $OUT/said 2>&1"
    pushing.config(
        f"[gates.wild]\ncommand = '{look}; echo x > new; git add -A; git stash list; git status'\n"
        "[hooks.pre-push]\ngates = ['wild']\n"
    )
    pushing.git("add", ".")
    change(pushing, "second\n")
    pushing.write("a", "mine\n")
    before = whole(pushing)
    assert pushing.ask("git", "push", "origin", "main").returncode == 0
    assert said(out, "said") == ["second"]  # git has nothing to complain of
    assert whole(pushing) == before


def test_a_commit_can_be_checked_in_a_checkout(repo: Repo, out: Path) -> None:
    hook = '[hooks.pre-commit]\ngates = ["look"]\nunstaged = "checkout"\n'
    repo.config(CONFIG.partition("[hooks")[0] + hook)
    repo.write("a", "committed\n")
    repo.commit_all("base")
    repo.shim("pre-commit")
    repo.write("a", "staged\n")
    repo.git("add", "a")
    repo.write("a", "unstaged\n")
    repo.write("untracked", "x\n")
    before = whole(repo)
    done = repo.commit()
    assert done.returncode == 0, done.stderr
    assert said(out, "a") == ["staged"]
    assert said(out, "names") == ["a", "pyproject.toml"]
    assert whole(repo)[0] == before[0]
