"""What a fixer changed goes into the commit only where it is asked for and nothing is mixed up."""

from __future__ import annotations

import pytest
from conftest import Repo, timeless

FIX = (
    '[gates.fix]\ncommand = \'for f in "$@"; do sed -i s/bad/good/ "$f"; done\'\n'
    "files = ['*.txt']\npass_files = true\nwrites = true\nrestage = true\n"
    "[hooks.pre-commit]\ngates = ['fix']\n"
)
LINES = "".join(f"line {n}\n" for n in range(20))


@pytest.fixture
def armed(repo: Repo) -> Repo:
    repo.config(FIX)
    for name in ("a.txt", "b.txt"):
        repo.write(name, LINES)
    repo.commit_all("base")
    repo.shim("pre-commit")
    return repo


@pytest.mark.samples(1)
@pytest.mark.parametrize("args", [(), ("-a",), ("--", "a.txt")], ids=["plain", "all", "paths"])
def test_a_wholly_staged_file_is_committed_as_fixed(armed: Repo, args: tuple[str, ...]) -> None:
    armed.write("a.txt", "bad\n" + LINES)
    armed.git("add", "a.txt")
    done = armed.commit("x", *args)
    assert done.returncode == 0, done.stderr
    assert armed.git("show", "HEAD:a.txt") == ("good\n" + LINES).rstrip()
    assert armed.git("status", "--porcelain") == ""
    assert timeless(done.stderr) == (
        "fix  passed         0.00 s  changed and restaged 1 file: a.txt\n"
        "gitgates pre-commit: 1 gate passed\n"
    )


@pytest.mark.thorough
def test_a_new_file_is_committed_as_fixed(armed: Repo) -> None:
    armed.write("new.txt", "bad\n")
    armed.git("add", "new.txt")
    assert armed.commit().returncode == 0
    assert armed.git("show", "HEAD:new.txt") == "good"


def test_a_partly_staged_file_is_committed_as_fixed_and_the_rest_stays_unstaged(
    armed: Repo,
) -> None:
    armed.write("a.txt", "bad\n" + LINES)
    for name in ("b.txt", "gone.txt", "new.txt"):
        armed.write(name, "bad\n" + LINES)
    armed.git("add", ".")
    armed.write("a.txt", "bad\n" + LINES + "unstaged, bad\n")
    (armed.path / "gone.txt").unlink()
    done = armed.commit()
    assert done.returncode == 0, done.stderr
    assert b"changed and restaged 4 files: a.txt, b.txt, gone.txt, " in done.stderr
    for name in ("a.txt", "b.txt", "gone.txt", "new.txt"):
        assert armed.git("show", f"HEAD:{name}") == ("good\n" + LINES).rstrip()
    assert armed.git("status", "--porcelain") == " M a.txt\n D gone.txt"
    assert (armed.path / "a.txt").read_text() == "good\n" + LINES + "unstaged, bad\n"
    diff = armed.git("diff", "--unified=0", "a.txt")
    assert [line for line in diff.splitlines()[5:] if line[0] in "+-"] == ["+unstaged, bad"]


def test_a_partly_staged_file_stays_fixed_where_another_gate_refuses(armed: Repo) -> None:
    armed.config(
        FIX.replace("['fix']", "['fix', 'no']")
        + '[gates.no]\ncommand = "grep -q good a.txt && ! grep -q unstaged a.txt && false"\n'
    )
    armed.git("commit", "-qnm", "gates", "pyproject.toml")
    armed.write("a.txt", "bad\n" + LINES)
    armed.git("add", "a.txt")
    armed.write("a.txt", "bad\n" + LINES + "unstaged\n")
    assert armed.commit().returncode == 1
    assert armed.git("show", ":a.txt") == ("good\n" + LINES).rstrip()
    assert (armed.path / "a.txt").read_text() == "good\n" + LINES + "unstaged\n"


def test_a_fix_that_conflicts_with_what_is_not_staged_is_refused_with_the_way_out(
    armed: Repo,
) -> None:
    armed.write("a.txt", "bad\n" + LINES)
    armed.write("b.txt", "bad\n" + LINES)
    armed.git("add", ".")
    armed.write("a.txt", "bad, unstaged\n" + LINES)
    done = armed.commit()
    assert done.returncode == 1
    assert b"gate `fix` changed 1 file: a.txt" in done.stderr
    assert (
        b"the fix conflicts with unstaged changes in a.txt: fix those files in the working tree,"
        b" stage what you want of them (git add -p) and commit again" in done.stderr
    )
    assert (armed.path / "a.txt").read_text() == "bad, unstaged\n" + LINES
    assert armed.git("show", ":a.txt") == ("bad\n" + LINES).rstrip()
    assert armed.git("show", ":b.txt") == ("good\n" + LINES).rstrip()
    # That way leads out.
    armed.write("a.txt", "good, unstaged\n" + LINES)
    patch = armed.git("diff", "a.txt").replace("good, unstaged", "good") + "\n"
    assert armed.ask("git", "apply", "--cached", stdin=patch.encode()).returncode == 0
    done = armed.commit()
    assert done.returncode == 0, done.stderr
    assert (armed.path / "a.txt").read_text() == "good, unstaged\n" + LINES


@pytest.mark.thorough
def test_a_fix_of_a_file_that_was_deleted_and_not_staged_is_committed(armed: Repo) -> None:
    armed.write("a.txt", "bad\n" + LINES)
    armed.git("add", "a.txt")
    (armed.path / "a.txt").unlink()
    done = armed.commit()
    assert done.returncode == 0, done.stderr
    assert armed.git("show", "HEAD:a.txt") == ("good\n" + LINES).rstrip()
    assert armed.git("status", "--porcelain") == " D a.txt"


def test_fixers_in_turn_restage_a_partly_staged_file(armed: Repo) -> None:
    second = FIX.partition("[hooks")[0].replace("fix]", "more]").replace("s/bad/", "s/line.5$/")
    armed.config(second.replace("good", "five") + FIX.replace("['fix']", "['fix', 'more']"))
    armed.git("commit", "-qnm", "gates", "pyproject.toml")
    armed.write("a.txt", "bad\n" + LINES)
    armed.git("add", "a.txt")
    armed.write("a.txt", "bad\n" + LINES + "unstaged\n")
    done = armed.commit()
    assert done.returncode == 0, done.stderr
    fixed = "good\n" + LINES.replace("line 5\n", "five\n")
    assert armed.git("show", "HEAD:a.txt") == fixed.rstrip()
    assert (armed.path / "a.txt").read_text() == fixed + "unstaged\n"


def test_a_file_that_is_not_in_the_index_is_never_added(repo: Repo) -> None:
    repo.config(
        "[gates.fix]\ncommand = 'echo x > made.txt'\nwrites = true\nrestage = true\n"
        "[hooks.pre-commit]\ngates = ['fix']\n"
    )
    repo.shim("pre-commit")
    repo.git("add", "pyproject.toml")
    assert repo.commit().returncode == 0
    assert repo.git("status", "--porcelain") == "?? made.txt"


@pytest.mark.samples(1)
@pytest.mark.parametrize("key", ["files = ['*.txt']\npass_files = true", ""])
def test_a_file_that_nobody_staged_is_not_restaged(repo: Repo, key: str) -> None:
    repo.config(
        f"[gates.fix]\ncommand = 'sed -i s/bad/good/ *.txt'\nwrites = true\nrestage = true\n{key}\n"
        "[hooks.pre-commit]\ngates = ['fix']\n"
    )
    repo.write("other.txt", "bad\n")
    repo.commit_all("base")
    repo.shim("pre-commit")
    repo.write("a.txt", "bad\n")
    repo.git("add", "a.txt")
    done = repo.commit()
    assert done.returncode == 1
    assert b"blocked: gate `fix` changed 1 file: other.txt" in done.stderr
    assert repo.git("show", ":a.txt") == "good"
    assert repo.git("status", "--porcelain") == "A  a.txt\n M other.txt"


def test_a_private_checkout_cannot_be_restaged(repo: Repo) -> None:
    repo.config(FIX + "unstaged = 'checkout'\n")
    done = repo.gitgates("check")
    assert done.returncode == 78
    assert done.stderr.decode().splitlines()[0] == (
        "pyproject.toml: tool.gitgates.hooks.pre-commit.unstaged: in a private checkout, gate "
        "`fix` cannot restage what it fixes. Use `hide` (the default), or remove `restage`."
    )


def test_restage_needs_writes(repo: Repo) -> None:
    repo.config("[gates.fix]\ncommand = 'x'\nrestage = true\n")
    done = repo.gitgates("check")
    assert done.returncode == 78
    assert done.stderr.decode().splitlines()[0] == (
        "pyproject.toml: tool.gitgates.gates.fix.restage: requires `writes = true`"
        ". Add writes = true to detect its changes."
    )


@pytest.mark.slow
def test_an_index_that_somebody_holds_is_waited_for_and_named(armed: Repo) -> None:
    armed.config(FIX.replace("sed -i", "touch .git/index.lock; sed -i"))
    armed.git("add", ".")
    armed.git("commit", "-qm", "x", "--no-verify")
    armed.write("a.txt", "bad\n")
    armed.git("add", "a.txt")
    done = armed.commit()
    assert done.returncode == 1
    assert b"a gate's changes cannot be staged" in done.stderr
    assert b"index.lock" in done.stderr
    (armed.path / ".git/index.lock").unlink()
    assert (armed.path / "a.txt").read_text() == "good\n"


def test_a_check_runs_again_on_what_a_fixer_has_staged(repo: Repo) -> None:
    repo.config(
        '[gates.check]\ncommand = "grep -q bad a.txt"\n'
        '[gates.fix]\ncommand = "sed -i.tmp s/bad/good/ a.txt; rm a.txt.tmp"\n'
        "writes = true\nrestage = true\n"
        "[hooks.pre-commit]\ngates = ['check', 'fix']\n"
    )
    repo.git("add", ".")
    repo.gitgates("install-hooks")
    repo.write("a.txt", "bad\n")
    repo.git("add", "a.txt")
    done = repo.commit("x")
    assert done.returncode == 1
    lines = timeless(done.stderr).splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [
        ["check", "passed"],
        ["fix", "passed"],
        ["check", "failed"],
    ]
