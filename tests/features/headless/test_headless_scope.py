"""Where a headless run commits, and which changes its constraints see."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import Repo
from test_headless import CONFIG, agent, headless, prompts, result, started
from worktree_state import whole

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


@pytest.mark.samples(1)
@pytest.mark.parametrize("where", [("--worktree",), ()], ids=["worktree", "here"])
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
    done = run(work, *turns, args=("--worktree", "--branch", "topic", "--max-retries", "1"))
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert work.git("for-each-ref", "refs/heads") == before
    kept = f"refs/gitgates/failed/{result(work)['execution_id']}"
    assert work.git("show", f"{kept}:a.txt") == "good 1"


def test_a_branch_of_the_users_gets_no_commit_unasked(work: Repo) -> None:
    before = work.git("for-each-ref", "refs/heads"), whole(work)
    done = run(work, f"git switch -q other; {GOOD}", args=("--max-retries", "0"))
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert (work.git("for-each-ref", "refs/heads"), whole(work)) == before


def test_where_nobody_asked_for_a_branch_the_agent_may_make_one(work: Repo) -> None:
    done = run(work, f"git switch -q -c new; {GOOD}")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert b"HEAD was refs/heads/main before the run, and is now refs/heads/new" in done.stdout
    assert work.git("show", "new:a.txt") == "good"


def test_constraints_see_every_commit(work: Repo) -> None:
    """Also what a later one removes, and a file that git ignored, and was there before."""
    limited(work, 'deny = ["b.*", "*.env"]\nmax_files = 1\nmax_lines = 5\nallow = ["a.txt"]')
    work.write("secret.env", "secret\n")
    start = work.head()
    add = "seq 9 > b.txt; git add -f b.txt secret.env; git commit -qm in"
    add += "; git rm -q b.txt; git commit -qm out"
    done = run(work, f"{add}; {GOOD}", f"git reset -q {start}")
    assert done.returncode == 0, (done.stdout, done.stderr)
    for told in (
        "deny: must not change: b.txt, secret.env",
        "max_files: 3 files changed, at most 1",
        "max_lines: 21 lines changed, at most 5",
        "allow: only a.txt may change, not b.txt, secret.env",
        f"git reset --soft {start}",
    ):
        assert told in prompts(work)[1]
    assert (work.path / "secret.env").read_text() == "secret\n"
    assert work.git("log", "--name-only", "--format=", f"{start}..").split("\n") == ["a.txt"]


@pytest.mark.thorough
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
        ("max_lines = 5", "max_lines: 20 lines changed, at most 5"),
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


@pytest.mark.thorough
def test_what_an_ignored_file_was_before_is_seen_in_a_commit(work: Repo) -> None:
    limited(work, 'deny = ["*.env"]')
    work.write("secret.env", "secret\n")
    start = work.head()
    turns = (f"{GOOD}; git add -f secret.env; git commit -qm in", f"git reset -q {start}")
    done = run(work, *turns)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "deny: must not change: secret.env" in prompts(work)[1]
    assert (work.path / "secret.env").read_text() == "secret\n"


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


def test_a_failed_run_in_a_worktree_touches_no_branch_but_its_own(work: Repo) -> None:
    """Somebody deletes a branch in the repository, and moves another, while the agent works."""
    work.git("branch", "second")
    meanwhile = f"cd {work.path}; git branch -q -D other; git branch -q -f second HEAD~0; cd -"
    start = work.git("commit-tree", "-m", "x", "HEAD^{tree}")
    moves = f"{meanwhile}; git -C {work.path} update-ref refs/heads/second {start}"
    args = ("--worktree", "--branch", "topic", "--max-retries", "0")
    done = run(work, f"({moves}); echo worse > a.txt", args=args)
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert work.git("for-each-ref", "--format=%(refname)", "refs/heads").split("\n") == [
        "refs/heads/main",
        "refs/heads/second",
    ]
    assert work.git("rev-parse", "second") == start
    assert b"refs/heads/other was deleted during the run; it was at " in done.stdout


@pytest.mark.slow
def test_a_worktree_with_commits_on_no_branch_stays(work: Repo) -> None:
    leave = f"git checkout -q --detach; {GOOD}; git commit -qam own"
    command = agent(work, f"{leave}; touch {work.path.parent}/agent/ready; sleep 600")
    process = started(work, "--worktree", "--branch", "topic", "--agent-command", command)
    process.terminate()
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    said = (out + err).decode()
    (folder,) = (path for path in work.path.parent.iterdir() if ".headless-" in path.name)
    assert f"{folder} was kept (its HEAD has commits that are on no branch)" in said
    assert work.git("-C", str(folder), "show", "HEAD:a.txt") == "good"


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
    note = "gate `lint` checked nothing: none of 1 paths match"
    assert f"note: {note}\n" in done.stdout.decode()
    found = result(work)
    assert found["headless"]["notes"] == [note]
    folder = work.path / ".git/gitgates/runs" / found["execution_id"]
    assert "checked nothing: none of 1 paths match" in (folder / "report.html").read_text()
    assert "checked nothing: none of 1 paths match" in (folder / "summary.md").read_text()


def test_without_a_commit_those_of_the_agent_are_taken_back(work: Repo) -> None:
    work.write("staged.txt", "staged\n")
    work.git("add", "staged.txt")
    head = work.head()
    commits = f"{GOOD}; echo new > new.txt; git add a.txt new.txt; git commit -qm own; git add -A"
    done = run(work, commits, args=("--no-commit",))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert (work.head(), work.git("branch", "--show-current")) == (head, "main")
    assert sorted(work.git("status", "--porcelain").split("\n")) == [
        " M a.txt",
        "?? new.txt",
        "A  staged.txt",
    ]
    kept = f"refs/gitgates/failed/{result(work)['execution_id']}"
    assert (
        f"the agent had committed; with --no-commit, its commits were undone, and kept as {kept}"
        in (done.stdout.decode())
    )
    assert work.git("show", f"{kept}:new.txt") == "new"


@pytest.mark.thorough
def test_without_a_commit_a_new_branch_of_the_agent_is_left(work: Repo) -> None:
    head = work.head()
    done = run(work, f"git switch -qc new; {GOOD}; git commit -qam own", args=("--no-commit",))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert (work.head(), work.git("branch", "--show-current")) == (head, "main")
    assert work.git("show", "new:a.txt") == "good"
    assert work.git("status", "--porcelain") == " M a.txt"


@pytest.mark.thorough
def test_mixed_changes_are_put_back_if_that_is_asked_for(work: Repo) -> None:
    work.write("a.txt", "mine\n")
    before = whole(work)
    done = run(work, GOOD, args=("--on-failure", "rollback"))
    assert done.returncode == 1
    assert b"cannot be separated from the agent's: a.txt; nothing was committed" in done.stdout
    assert whole(work) == before
    kept = f"refs/gitgates/failed/{result(work)['execution_id']}"
    assert work.git("show", f"{kept}:a.txt") == "good"
    assert not list((work.path / ".git/gitgates/checkpoints").iterdir())


HOOKS = "cd $(git rev-parse --git-common-dir)/hooks; {}; cd -"
LEAVES_HOOKS = HOOKS.format(
    "echo evil > post-checkout; chmod 755 post-checkout; echo evil > pre-commit; "
    "rm commit-msg; mkdir d; echo evil > d/x"
)


@pytest.mark.samples(1)
@pytest.mark.parametrize("where", [(), ("--worktree",)], ids=["here", "worktree"])
def test_hooks_that_an_agent_has_left_go(work: Repo, where: tuple[str, ...]) -> None:
    hooks = work.path / ".git/hooks"
    for name in ("pre-commit", "commit-msg"):
        (hooks / name).write_text("#!/bin/sh\n")
        (hooks / name).chmod(0o755)
    done = run(work, f"{LEAVES_HOOKS}; {GOOD}", args=(*where, "--max-retries", "0"))
    assert done.returncode == 1, (done.stdout, done.stderr)
    # In a worktree, somebody else may have removed what is gone.
    left = ["pre-commit"] if where else ["commit-msg", "pre-commit"]
    assert sorted(path.name for path in hooks.rglob("*") if path.is_file()) == left
    assert (hooks / "pre-commit").read_text() == "#!/bin/sh\n"
    assert (hooks / "pre-commit").stat().st_mode & 0o777 == 0o755
    kept = work.path / ".git/gitgates/kept" / f"{result(work)['execution_id']}-hooks"
    said = done.stdout.decode()
    assert f"note: the hook `post-checkout` was created during the run; it is in {kept}" in said
    assert f"note: the hook `pre-commit` was changed during the run; it is in {kept}" in said
    assert (kept / "post-checkout").read_text() == "evil\n"
    assert (kept / "d/x").read_text() == "evil\n"


@pytest.mark.thorough
def test_hooks_of_an_interrupted_run_go_with_its_rollback(work: Repo) -> None:
    ready = f"touch {work.path.parent}/agent/ready"
    process = started(work, "--agent-command", agent(work, f"{LEAVES_HOOKS}; {ready}; sleep 600"))
    process.kill()
    process.communicate(timeout=30)
    run_id = next((work.path / ".git/gitgates/checkpoints").iterdir()).name
    rolled = work.gitgates("recover", "--roll-back", run_id)
    assert rolled.returncode == 0, rolled.stderr
    assert b"the hook `post-checkout` was created during the run" in rolled.stdout
    assert not [path for path in (work.path / ".git/hooks").rglob("*") if path.is_file()]


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
    none = "checked nothing: none of 1 paths match"
    assert f"gate `lint` {none}" in headless["notes"]
    folder = work.path / ".git/gitgates/runs" / found["execution_id"]
    assert none in (folder / "report.html").read_text()
    assert none in (folder / "summary.md").read_text()
    assert work.gitgates("recover", "--list").stdout == b"no stashed or kept files\n"
