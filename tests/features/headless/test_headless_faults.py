"""An agent that does to the repository what nobody expects, and what is committed nevertheless."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import Repo
from test_headless import CONFIG, agent, headless, left, prompts, result
from worktree_state import whole

from gitgates.features.headless.run_state import hold
from gitgates.git.repo import find_repo

GOOD = "echo good > a.txt"


@pytest.fixture
def work(repo: Repo) -> Repo:
    repo.config(CONFIG)
    repo.write("a.txt", "bad\n")
    repo.commit_all("first")
    return repo


def run(repo: Repo, *turns: str, args: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    return headless(repo, "go", "--agent-command", agent(repo, *turns), *args)


def passed(repo: Repo, *turns: str, args: tuple[str, ...] = ()) -> str:
    """Return what a run says that passes."""
    done = run(repo, *turns, args=args)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.decode()


def committed(repo: Repo) -> str:
    return repo.git("show", "--name-only", "--format=", "HEAD")


INDEX = "$(git rev-parse --git-dir)/index"
# What an agent does to its index.
HIDES = [
    "git update-index --assume-unchanged a.txt b.txt; git update-index --skip-worktree c.txt",
    f"rm {INDEX}",
    "git rm -rq --cached .",
    f"touch {INDEX}.lock",
    f"echo x > {INDEX}",
    "git config core.ignoreStat true; git update-index --refresh",
]


@pytest.mark.samples(2)
@pytest.mark.parametrize("hides", HIDES)
def test_what_the_index_of_the_agent_hides_is_committed(work: Repo, hides: str) -> None:
    work.write("b.txt", "b\n")
    work.write("c.txt", "c\n")
    work.write("d.txt", "d\n")
    work.commit_all("more")
    passed(work, f"{hides}; echo 1 >> b.txt; echo 1 >> c.txt; rm d.txt; {GOOD}")
    assert committed(work) == "a.txt\nb.txt\nc.txt\nd.txt"
    assert work.git("status", "--porcelain") == ""


# Ignore rules that a run adds, and what they hide.
RULES = [
    "echo b.txt >> .gitignore",
    "mkdir d; echo '*' > d/.gitignore; mv b.txt d/b.txt",
    "echo b.txt > $(git rev-parse --git-common-dir)/info/exclude",
    "echo b.txt > $AGENT/ignore; git config core.excludesFile $AGENT/ignore",
]


@pytest.mark.samples(2)
@pytest.mark.parametrize("rule", RULES)
def test_what_ignore_rules_of_the_run_hide_is_committed_or_named(work: Repo, rule: str) -> None:
    work.write(".gitignore", "*.log\n")
    work.commit_all("rules")
    work.write(".git/info/exclude", "*.tmp\n")
    told = passed(work, f"echo b > b.txt; echo log > x.log; echo log > x.tmp; {rule}; {GOOD}")
    path = "d/b.txt" if "mkdir" in rule else "b.txt"
    note = told.partition("note: not committed, because of ignore rules that the run has added: ")[
        2
    ]
    if note:
        paths = ["d/.gitignore", "d/b.txt"] if "mkdir" in rule else [path]
        assert note.partition("\n")[0] == ", ".join(paths)
    else:
        assert path in committed(work).split("\n")
    assert not {"x.log", "x.tmp"}.intersection(committed(work).split("\n"))
    assert (work.path / ".git/info/exclude").read_text() == "*.tmp\n"


def test_what_the_agent_has_committed_is_what_gates_have_seen(work: Repo) -> None:
    """And not what they have written, in any attempt."""
    report = "date +%N > report; grep -q good a.txt"
    work.config(CONFIG.replace("grep -q good a.txt", report))
    work.write("b.txt", "fine\n")
    work.commit_all("b")
    passed(
        work,
        "echo 1 > a.txt",
        f"echo evil > b.txt; {GOOD}; git commit -qam own; git checkout -q HEAD~ b.txt",
    )
    assert work.git("show", "HEAD:b.txt") == "fine"
    assert work.git("show", "HEAD~:b.txt") == "evil"
    assert "report" not in work.git("ls-tree", "--name-only", "HEAD")
    assert work.git("status", "--porcelain") == ""


# What an agent does to what it shares with others → what is said of it.
CHANGED = [
    ("git branch elsewhere", "refs/heads/elsewhere was created during the run"),
    ("git branch -qD spare", "refs/heads/spare was deleted during the run; it is at {head} again"),
    ("git branch -qf other HEAD~", "refs/heads/other was moved to {first} during the run; it is"),
    (
        "git update-ref refs/heads/main HEAD~",
        "refs/heads/main was moved to {first} during the run",
    ),
    ("git tag -d v1", "refs/tags/v1 was deleted during the run; it is at {tag} again"),
    ("git tag v2", "refs/tags/v2 was created during the run"),
    ("git stash clear", "was removed from the stash during the run; it is there again"),
    (
        "git config core.bare true",
        "{git}/config was changed during the run, and has been put back; ",
    ),
]


@pytest.mark.samples(3)
@pytest.mark.parametrize(("turn", "note"), [*CHANGED, ("", "")])
def test_what_an_agent_changes_beside_its_tree_is_put_back_and_said(
    work: Repo, turn: str, note: str
) -> None:
    """The last case has all at once, and a `gc` that removes what nothing names."""
    first = work.head()
    work.write("x.txt", "x\n")
    work.commit_all("second")
    work.git("branch", "other")
    work.git("tag", "-a", "-m", "one", "v1")
    for number in (1, 2):
        work.write("a.txt", f"stashed {number}\n")
        work.git("stash", "-q")
    work.git("commit", "-q", "--allow-empty", "-m", "only the reflog has it")
    lost = work.head()
    work.git("reset", "-q", "--hard", "HEAD~")
    work.git("branch", "spare")
    refs, before = work.git("for-each-ref"), whole(work)
    stash = work.git("stash", "list", "--format=%H %gs")
    settings = {path: path.read_bytes() for path in (work.path / ".git/config",)}
    gone = "git reflog expire --expire=now --all; git gc -q --prune=now"
    turns = "; ".join([turn] if turn else [*(each for each, _note in CHANGED), gone])
    names = {"head": work.head(), "first": first, "tag": work.git("rev-parse", "v1")}
    done = run(work, f"{turns}; echo worse > a.txt", args=("--max-retries", "0"))
    assert done.returncode == 1, (done.stdout, done.stderr)
    for each in [note] if note else [note for _turn, note in CHANGED]:
        assert each.format(git=work.path / ".git", **names) in done.stdout.decode()
    made = ("refs/gitgates/failed/", "refs/heads/elsewhere", "refs/tags/v2")
    now = work.git("for-each-ref").split("\n")
    assert [line for line in now if not line.split("\t")[1].startswith(made)] == refs.split("\n")
    assert whole(work) == before
    assert work.git("stash", "list", "--format=%H %gs") == stash
    assert {path: path.read_bytes() for path in settings} == settings
    assert work.git("cat-file", "-t", lost) == "commit"
    assert work.git("fsck", "--connectivity-only", "--no-dangling") == ""
    assert left(work) == []


def test_what_others_do_meanwhile_stays(work: Repo) -> None:
    """They commit in the repository, fetch, stash, and have a hook of theirs before the run."""
    work.git("branch", "other")
    work.git("clone", "-q", ".", "../origin")
    work.git("remote", "add", "origin", "../origin")
    there = f"cd {work.path}; git commit -q --allow-empty -m mine; git switch -q other"
    there += "; git commit -q --allow-empty -m more; git fetch -q origin; git switch -q main"
    there += "; echo x > new; git stash -q -u"
    done = run(work, f"({there}); echo worse > a.txt", args=("--max-retries", "0"))
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert work.git("log", "--format=%s", "main") == "mine\nfirst"
    assert work.git("log", "--format=%s", "other") == "more\nfirst"
    assert work.git("rev-parse", "origin/main") == work.git("rev-parse", "main~")
    assert len(work.git("stash", "list").split("\n")) == 1
    assert "moved" not in done.stdout.decode()


def test_where_no_gate_applies_nothing_is_committed(work: Repo) -> None:
    only_py = CONFIG.replace("[gates.lint]", 'files = ["*.py"]\n[gates.lint]')
    work.config(only_py.replace('"test", "lint", "build"', '"test"'))
    work.commit_all("files")
    done = run(work, GOOD)
    assert done.returncode == 1
    assert b"no gate applied to the changes, so nothing was checked" in done.stdout
    assert work.git("status", "--porcelain") == ""
    assert b"note:" not in done.stdout
    page = done.stdout.decode().partition("report: ")[2].strip()
    assert "nothing was checked" in Path(page).read_text()


@pytest.mark.thorough
def test_a_message_may_hold_anything(work: Repo) -> None:
    work.git("config", "commit.cleanup", "strip")
    turn = "printf 'a\\0b\\n'; " + GOOD
    done = headless(work, "#12: mend it", "--agent-command", agent(work, turn))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert work.git("log", "-1", "--format=%s") == "#12: mend it"


def test_what_git_cannot_hold_goes_back_to_the_agent(work: Repo) -> None:
    hook = work.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    turn = f"rm {hook}; git init -q inner; {GOOD}"
    told = passed(work, turn, "rm -rf inner")
    assert "git cannot hold the change: a nested repository" in prompts(work)[1]
    assert f"{hook} was changed during the run, and has been put back" in told
    assert hook.stat().st_mode & 0o777 == 0o755
    assert committed(work) == "a.txt"


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    "left_there", ["git init -q inner; echo > inner/x", "git update-ref refs/gitgates/failed HEAD"]
)
def test_a_worktree_with_what_git_cannot_hold_stays(work: Repo, left_there: str) -> None:
    before = whole(work)
    done = run(work, f"pwd; echo worse > a.txt; {left_there}", args=("--max-retries", "0"))
    assert done.returncode == 1, (done.stdout, done.stderr)
    said = done.stdout.decode()
    assert "note: not all of it could be committed: " in said
    folder = said.partition(" was kept; to remove it: git worktree remove")[0].rpartition(" ")[2]
    assert Path(folder, "a.txt").read_text() == "worse\n"
    assert whole(work) == before


REPLACED = [
    "rm .git; git init -q; git add -A; git commit -qm x",
    "rm .git",
    "git checkout -q --detach; git commit -q --allow-empty -m x",
    "git worktree prune; git worktree list",
    "git switch -qc elsewhere",
    "git merge -q --no-commit --no-ff main; echo x > $(git rev-parse --git-dir)/MERGE_HEAD",
]


@pytest.mark.samples(2)
@pytest.mark.parametrize("ruin", REPLACED)
def test_whatever_an_agent_does_in_its_worktree_is_left_there(work: Repo, ruin: str) -> None:
    work.write("dirty.txt", "dirty\n")
    work.git("add", "dirty.txt")
    before, head = whole(work), work.head()
    done = run(work, f"{ruin}; echo worse > a.txt", args=("--max-retries", "0"))
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert (whole(work), work.head(), left(work)) == (before, head, [])
    kept = f"refs/gitgates/failed/{result(work)['execution_id']}"
    assert work.git("show", f"{kept}:a.txt") == "worse"


@pytest.mark.parametrize("place", ["pre-commit", ""], ids=["a hook", "all hooks"])
def test_what_is_in_the_place_of_a_hook_goes(work: Repo, place: str) -> None:
    hook = work.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    there = f"$(git rev-parse --git-common-dir)/hooks/{place}".rstrip("/")
    put = f"mkdir {there}" if place else f"echo x > {there}"
    assert f"{hook} was changed during the run, and has been put back" in passed(
        work, f"rm -rf {there}; {put}; {GOOD}"
    )
    assert hook.read_text() == "#!/bin/sh\n"


def test_commits_of_an_agent_that_removes_its_worktree_are_kept(work: Repo) -> None:
    done = run(work, "echo worse > a.txt; git commit -qam own; rm -rf $PWD")
    assert done.returncode == 74
    assert b"is no longer a worktree of the repository" in done.stderr
    ref = done.stderr.decode().partition("the agent's work is kept as ")[2].split()[0]
    assert work.git("show", f"{ref}:a.txt") == "worse"
    assert left(work) == []


def test_a_repository_without_a_commit_is_refused(repo: Repo) -> None:
    repo.config(CONFIG)
    done = run(repo, GOOD)
    assert done.returncode == 74
    assert b"there is no commit to begin with" in done.stderr


def test_a_state_folder_that_cannot_be_written_is_said(work: Repo) -> None:
    work.write(".git/gitgates", "no folder")
    done = run(work, GOOD)
    assert done.returncode == 73
    assert b": cannot be written: " in done.stderr


def test_an_agent_that_removes_our_state_commits_nothing(work: Repo) -> None:
    head = work.head()
    done = run(work, f"{GOOD}; rm -rf $(git rev-parse --git-common-dir)/gitgates")
    assert done.returncode == 73
    assert b"was removed during the run" in done.stderr
    assert b" was kept; to remove it: git worktree remove" in done.stderr
    assert work.head() == head


@pytest.mark.thorough
@pytest.mark.slow
def test_a_signal_beside_a_process_keeps_the_work_too(work: Repo) -> None:
    """Git's filter holds the run where it reads what the agent has made."""
    ready = work.path.parent / "ready"
    os.mkfifo(ready)
    once = f"[ -e {ready}1 ] || {{ touch {ready}1; echo > {ready}; sleep 600; }}; cat"
    work.git("config", "filter.slow.clean", once)
    work.write(".gitattributes", "slow filter=slow\n")
    work.commit_all("filter")
    command = ("headless", "go", "--agent-command", agent(work, "echo > slow"))
    process = subprocess.Popen(
        [sys.executable, "-m", "gitgates", *command],
        cwd=work.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    ready.read_bytes()
    os.killpg(process.pid, signal.SIGTERM)  # as a service manager does: git ends as well
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert work.git("show", f"refs/gitgates/failed/{result(work)['execution_id']}:slow") == ""


def test_what_is_left_of_runs_that_were_killed_before_they_began_goes(work: Repo) -> None:
    work.write(".git/gitgates/headless/killed/lock", "")
    work.write(".git/gitgates/headless/begins/lock", "")
    (work.path / ".git/gitgates/headless/empty").mkdir()
    with (work.path / ".git/gitgates/headless/begins/lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert work.gitgates("recover").stdout == b"nothing to recover\n"
        assert os.listdir(work.path / ".git/gitgates/headless") == ["begins"]
    assert run(work, GOOD).returncode == 0
    assert work.gitgates("recover").stdout == b"nothing to recover\n"
    assert left(work) == []


def test_a_damaged_state_of_a_run_says_how_to_go_on(work: Repo) -> None:
    work.write(".git/gitgates/headless/r1/run.json", "{")
    for done in (work.gitgates("recover"), run(work, GOOD)):
        assert done.returncode == 73
        assert b"headless/r1/run.json: cannot be read" in done.stderr
        assert b"To continue without it: rm -r '" in done.stderr


ADVICE = """\
[[advice]]
title = "Tidy up"
hook_command = "echo TIDY-UP; test -e tidy"
hook_trigger = "session-end"
hook_on_failure = "block"
"""


def test_advice_for_the_end_goes_back_as_gates_do(work: Repo) -> None:
    work.config(CONFIG + ADVICE)
    work.commit_all("advice")
    command = agent(work, "echo good > a.txt", "touch tidy")
    done = headless(work, "make it good", "--agent-command", command)
    assert done.returncode == 0, done.stderr
    _, told = prompts(work)
    assert "TIDY-UP" in told
    assert work.git("show", "--name-only", "--format=") == "a.txt\ntidy"


@pytest.mark.thorough
def test_advice_that_passes_is_no_pass_of_gates(work: Repo) -> None:
    work.config(CONFIG + ADVICE)
    work.write("tidy", "")
    work.commit_all("advice")
    before = work.head()
    command = agent(work, *(f"echo bad {n} > a.txt" for n in range(4)))
    done = headless(work, "make it good", "--agent-command", command)
    assert (done.returncode, work.head()) == (1, before)
    assert len(prompts(work)) == 3


def test_objects_are_held_while_another_git_makes_a_worktree(repo: Repo) -> None:
    repo.write("a.txt", "x\n")
    repo.commit_all("lost")
    lost = repo.git("rev-parse", "HEAD")
    repo.git("commit", "-q", "--amend", "-m", "another")
    repo.git("worktree", "add", "-q", "--detach", "../linked")
    commondir = repo.path / ".git/worktrees/linked/commondir"
    content = commondir.read_text()
    commondir.write_text("")
    done = threading.Timer(0.2, commondir.write_text, [content])
    done.start()
    hold(find_repo(str(repo.path), dict(os.environ)), "run")
    done.join()
    held = repo.git("for-each-ref", "--format=%(objectname)", "refs/gitgates/held/run/")
    assert lost in held.split()
