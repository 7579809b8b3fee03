"""Where a headless run commits, and which changes its constraints see."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Repo
from test_headless import CONFIG, agent, headless, prompts, result
from worktree_state import whole

from gitgates.features.headless.run_state import hold, let_go
from gitgates.git.repo import find_repo

GOOD = "echo good > a.txt"


@pytest.fixture
def work(repo: Repo) -> Repo:
    repo.config(CONFIG)
    repo.write("a.txt", "bad\n")
    repo.write(".gitignore", "*.env\n")
    repo.commit_all("first")
    repo.git("branch", "other")
    return repo


def run(repo: Repo, *turns: str, args: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    return headless(repo, "go", "--agent-command", agent(repo, *turns), *args)


def limited(repo: Repo, setting: str) -> None:
    repo.config(f"{CONFIG}[headless]\n{setting}\n")
    repo.commit_all("limits")


BACK = "git switch -q -C topic"
LEAVES = [
    ("git checkout -q --detach", "HEAD is detached"),
    ("git switch -q other", "HEAD is refs/heads/other"),
    ("git switch -q -c new", "HEAD is refs/heads/new"),
    (f"git checkout -q --detach; {GOOD}; git commit -qam own", "HEAD is detached"),
]


@pytest.mark.samples(1, "nightly")
@pytest.mark.parametrize("where", [(), ("--in-place",)], ids=["worktree", "in place"])
@pytest.mark.parametrize(("leave", "told"), LEAVES)
def test_the_commit_is_on_the_branch_that_was_asked_for(
    work: Repo, where: tuple[str, ...], leave: str, told: str
) -> None:
    other = work.git("rev-parse", "other")
    done = run(work, f"{leave}; {GOOD}", BACK, args=(*where, "--branch", "topic"))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert told in prompts(work)[1]
    assert "refs/heads/topic" in prompts(work)[1]
    assert work.git("show", "topic:a.txt") == "good"
    assert work.git("rev-parse", "other") == other


def test_a_branch_that_was_left_for_good_fails_the_run(work: Repo) -> None:
    before = work.git("for-each-ref", "refs/heads")
    turns = [f"git checkout -q --detach; echo good {n} > a.txt" for n in range(2)]
    done = run(work, *turns, args=("--branch", "topic", "--max-retries", "1"))
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert work.git("for-each-ref", "refs/heads") == before
    kept = f"refs/gitgates/failed/{result(work)['execution_id']}"
    assert work.git("show", f"{kept}:a.txt") == "good 1"


def test_a_branch_of_the_users_gets_no_commit_unasked(work: Repo) -> None:
    before = work.git("for-each-ref", "refs/heads"), whole(work)
    done = run(work, f"git switch -q other; {GOOD}", args=("--max-retries", "0"))
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert (work.git("for-each-ref", "refs/heads"), whole(work)) == before


def test_constraints_see_every_commit(work: Repo) -> None:
    """Also what a later one removes, and a file that git ignores."""
    limited(work, 'deny = ["b.*", "*.env"]\nmax_files = 1\nallow = ["a.txt"]')
    start = work.head()
    add = "seq 9 > b.txt; echo > secret.env; git add -f b.txt secret.env; git commit -qm in"
    add += "; git rm -q b.txt; git commit -qm out"
    done = run(work, f"{add}; {GOOD}", f"git reset -q {start}; rm -f secret.env")
    assert done.returncode == 0, (done.stdout, done.stderr)
    for told in (
        "deny: must not change: b.txt, secret.env",
        "max_files: 3 files changed, at most 1",
        "allow: only a.txt may change, not b.txt, secret.env",
        f"git reset --soft {start}",
    ):
        assert told in prompts(work)[1]
    assert work.git("log", "--name-only", "--format=", f"{start}..").split("\n") == ["a.txt"]


@pytest.mark.nightly
@pytest.mark.parametrize("path", ["b.txt", "b.env"])
@pytest.mark.parametrize("later", ["true", "git rm -q {path}; git commit -qm out"])
def test_what_is_denied_is_seen_in_every_commit(work: Repo, path: str, later: str) -> None:
    limited(work, 'deny = ["b.*"]')
    start = work.head()
    add = f"echo b > {path}; git add -f {path}; git commit -qm in; {later.format(path=path)}"
    mend = f"git reset -q --soft {start}; git rm -qf --cached --ignore-unmatch {path}; rm -f {path}"
    done = run(work, f"{GOOD}; {add}", mend)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert f"deny: must not change: {path}" in prompts(work)[1]
    assert f"git reset --soft {start}" in prompts(work)[1]
    assert path not in work.git("log", "--name-only", "--format=", f"{start}..").split("\n")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("max_files = 1", "max_files: 2 files changed, at most 1"),
        ('allow = ["a.txt"]', "allow: only a.txt may change, not b.txt"),
    ],
)
def test_limits_see_what_a_later_commit_removes(work: Repo, setting: str, told: str) -> None:
    limited(work, setting)
    start = work.head()
    add = "seq 9 > b.txt; git add b.txt; git commit -qm in; git rm -q b.txt; git commit -qm out"
    done = run(work, f"{add}; {GOOD}", f"git reset -q --soft {start}")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert told in prompts(work)[1]


def test_what_is_denied_is_denied_where_git_ignores_it(work: Repo) -> None:
    """By rules of before, or by those of the agent; what a gate has written is not the agent's."""
    work.config(
        CONFIG.replace("test ! -e broken", "echo > gate.env")
        + '[headless]\ndeny = ["*.env", "hidden", "!nothing"]\n'
    )
    work.commit_all("limits")
    mend = "rm -f b.env hidden .gitignore; git checkout -q .gitignore; echo good > a.txt"
    done = run(work, f"{GOOD}; echo b > b.env; echo hidden >> .gitignore; echo > hidden", mend)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "deny: must not change: b.env, hidden\n" in prompts(work)[1]


def test_what_a_merge_brings_from_an_own_branch_is_no_change_of_the_agent(work: Repo) -> None:
    """What the users' branches held before the run was not written by it; a merge's own is."""
    limited(work, 'deny = ["b.txt"]')
    work.git("switch", "-q", "other")
    work.write("b.txt", "b\n")
    work.commit_all("theirs")
    work.git("rm", "-q", "b.txt")
    work.git("commit", "-qm", "removed again")
    work.git("switch", "-q", "main")
    done = run(work, f"git merge -q -m merge other; {GOOD}")
    assert done.returncode == 0, (done.stdout, done.stderr)
    hidden = "git merge -q --no-commit other; echo evil > b.txt; git add b.txt; git commit -qm m"
    work.git("switch", "-q", "other")
    work.git("commit", "-q", "--allow-empty", "-m", "more")
    work.git("switch", "-q", "main")
    (work.path.parent / "agent/prompt1").unlink()
    undo = "git rm -q b.txt; git commit -qm out; echo good again > a.txt"
    done = run(work, f"{hidden}; {undo}", args=("--max-retries", "0"))
    assert done.returncode == 1, (done.stdout, done.stderr)


def test_what_cannot_be_fixed_may_be_said_in_the_first_turn(work: Repo) -> None:
    say = f"{sys.executable} -m gitgates cannot-fix test --reason 'no network'"
    done = run(work, f"echo worse > a.txt; {say}", "echo still > a.txt")
    assert done.returncode == 1
    assert b"the agent reported that it cannot fix the failures" in done.stdout, done
    assert len(prompts(work)) == 1
    assert result(work)["outcome"] == "cannot-fix"
    assert work.git("status", "--porcelain") == ""


@pytest.mark.thorough
def test_a_gate_that_nothing_matched_is_told_in_the_report(work: Repo) -> None:
    work.config(CONFIG.replace("[gates.build]", 'files = ["*.py"]\n[gates.build]'))
    work.commit_all("files")
    done = run(work, GOOD)
    assert done.returncode == 0, (done.stdout, done.stderr)
    note = "gate `lint` checked nothing: no file matches"
    assert f"note: {note}\n" in done.stdout.decode()
    found = result(work)
    assert found["headless"]["notes"] == [note]
    folder = work.path / ".git/gitgates/runs" / found["execution_id"]
    assert "checked nothing: no file matches" in (folder / "report.html").read_text()
    assert "checked nothing: no file matches" in (folder / "summary.md").read_text()


HOOKS = "cd $(git rev-parse --git-common-dir)/hooks; {}; cd -"
LEAVES_HOOKS = HOOKS.format(
    "echo evil > post-checkout; chmod 755 post-checkout; echo evil > pre-commit; "
    "rm commit-msg; mkdir d; echo evil > d/x"
)


@pytest.mark.samples(1)
@pytest.mark.parametrize("where", [(), ("--in-place",)], ids=["worktree", "in place"])
def test_hooks_that_an_agent_has_left_go(work: Repo, where: tuple[str, ...]) -> None:
    """They do not run at the commit, either."""
    hooks = work.path / ".git/hooks"
    for name in ("pre-commit", "commit-msg"):
        (hooks / name).write_text("#!/bin/sh\n")
        (hooks / name).chmod(0o755)
    done = run(work, f"{LEAVES_HOOKS}; {GOOD}", args=where)
    assert done.returncode == 0, (done.stdout, done.stderr)
    found = sorted(path.name for path in hooks.rglob("*") if path.is_file())
    assert found == ["commit-msg", "pre-commit"]
    assert (hooks / "pre-commit").read_text() == "#!/bin/sh\n"
    assert (hooks / "pre-commit").stat().st_mode & 0o777 == 0o755
    said = done.stdout.decode()
    for name in ("post-checkout", "pre-commit", "d/x"):
        note = f"note: {hooks}/{name} was changed during the run, and has been put back; "
        kept = said.partition(f"{note}the changed version is in ")[2].partition("\n")[0]
        assert Path(kept).read_text() == "evil\n"


def test_where_gates_had_nothing_to_check_nothing_is_committed(work: Repo) -> None:
    """One of them has looked at nothing, one matches nothing, and one is left out."""
    work.config(
        '[gates.test]\ncommand = "echo no tests ran in 0.01s"\n'
        '[gates.lint]\ncommand = "true"\nfiles = ["*.py"]\n'
        '[gates.build]\ncommand = "true"\n'
        '[hooks.headless]\ngates = ["test", "lint", "build"]\n'
    )
    work.commit_all("idle")
    head = work.head()
    command = agent(work, GOOD)
    done = work.gitgates(
        "headless", "go", "--agent-command", command, env={"GITGATES_SKIP": "build"}
    )
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert b"so nothing was checked" in done.stdout
    assert work.head() == head
    assert work.git("show", f"refs/gitgates/failed/{result(work)['execution_id']}:a.txt") == "good"


def test_a_gate_that_had_nothing_to_check_is_named_beside_one_that_had(work: Repo) -> None:
    idle = CONFIG.replace("test ! -e broken", "echo no tests ran in 0.01s")
    work.config(idle.replace("[gates.build]", 'files = ["*.py"]\n[gates.build]'))
    work.commit_all("idle")
    done = run(work, GOOD)
    assert done.returncode == 0, (done.stdout, done.stderr)
    why = "gate `build` checked nothing (no tests ran in 0.01s)"
    assert f"gitgates headless: passed with a warning: {why}\n" in done.stdout.decode()
    assert b"all gates passed" not in done.stdout
    assert b"note: gate `build` checked nothing: no tests ran in 0.01s\n" in done.stdout
    found = result(work)
    headless = found["headless"]
    assert (headless["status"], headless["outcome"]) == ("passed", f"passed with a warning: {why}")
    none = "checked nothing: no file matches"
    assert f"gate `lint` {none}" in headless["notes"]
    folder = work.path / ".git/gitgates/runs" / found["execution_id"]
    assert none in (folder / "report.html").read_text()
    assert none in (folder / "summary.md").read_text()
    assert work.gitgates("recover", "--list").stdout == b"no stashed or kept files\n"


def test_a_worktree_that_git_had_not_finished_making_holds_nothing_up(repo: Repo) -> None:
    repo.write("a.txt", "a\n")
    repo.commit_all("start")
    repo.git("worktree", "add", "-q", "../half")
    (repo.path / ".git/worktrees/half/HEAD").write_text("0" * 40 + "\n")
    here = find_repo(str(repo.path), dict(os.environ))
    hold(here, "run")
    assert repo.head() == repo.git("rev-parse", "refs/gitgates/held/run/0")
    let_go(here, "run")
