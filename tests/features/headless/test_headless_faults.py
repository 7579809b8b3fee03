"""An agent that does to the repository what nobody expects, and what is committed nevertheless."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Repo
from test_headless import CONFIG, agent, headless, prompts

GOOD = "echo good > a.txt"
LINES = [f"line {number}\n" for number in range(20)]


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


@pytest.mark.samples(1)
@pytest.mark.parametrize("ruin", ["rm .git/index", "git rm -rq --cached ."])
def test_what_the_index_does_not_list_is_not_deleted(work: Repo, ruin: str) -> None:
    passed(work, f"{ruin}; {GOOD}")
    assert committed(work) == "a.txt"
    assert work.git("status", "--porcelain") == ""


def test_what_was_there_before_is_neither_committed_nor_lost(work: Repo) -> None:
    """Ignored, changed, staged and untracked files; each alone in `make thorough`."""
    work.git("config", "commit.cleanup", "strip")
    work.write(".gitignore", ".env\n")
    work.write("changed", "committed\n")
    work.write("shared", "".join(LINES))
    work.commit_all("before")
    work.write("shared", "".join(["mine\n", *LINES[1:]]))
    for name in (".env", "changed", "untracked", "staged", "mine"):
        work.write(name, f"{name} before\n")
    work.git("add", "staged")
    (work.path / "link").symlink_to("somewhere")
    turn = "git checkout -q changed; rm untracked link; echo b > b; echo other > .gitignore"
    turn += "; sed -i 's/line 19/theirs/' shared; git add -A; printf 'a\\0b\\n'"
    done = headless(work, "#12: mend it", "--agent-command", agent(work, f"{turn}; {GOOD}"))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert work.git("log", "-1", "--format=%s") == "#12: mend it"
    assert committed(work) == ".gitignore\na.txt\nb\nshared"
    assert work.git("show", "HEAD:shared") == "".join([*LINES[:19], "theirs"])
    assert (work.path / "shared").read_text() == "".join(["mine\n", *LINES[1:19], "theirs\n"])
    status = " M shared\nA  staged\n?? .env\n?? mine"
    assert work.git("status", "--porcelain") == status
    for name in ("changed", "untracked"):
        shown = work.gitgates("recover", "--show", name).stdout
        assert shown == f"{name} before\n".encode()
    said = "had uncommitted changes; its previous content is in "
    told = done.stdout.decode()
    assert f"`changed` {said}" in told
    kept = told.partition(f"`link` {said}")[2].partition("\n")[0]
    assert os.readlink(kept) == "somewhere"


@pytest.mark.thorough
def test_what_was_ignored_is_not_committed(work: Repo) -> None:
    work.write(".gitignore", ".env\n")
    work.commit_all("ignore")
    work.write(".env", "secret\n")
    passed(work, f"echo other > .gitignore; {GOOD}")
    assert committed(work) == ".gitignore\na.txt"


def test_what_the_agent_has_committed_is_what_gates_have_seen(work: Repo) -> None:
    """And not what they have written."""
    work.config(CONFIG.replace("grep -q good a.txt", "date +%N > report; grep -q good a.txt"))
    work.write("b.txt", "fine\n")
    work.commit_all("b")
    passed(work, f"echo evil > b.txt; {GOOD}; git commit -qam own; echo fine > b.txt")
    assert work.git("show", "HEAD:b.txt") == "fine"
    assert work.git("status", "--porcelain") == "?? report"


@pytest.mark.thorough
def test_reports_of_gates_are_not_committed(work: Repo) -> None:
    work.config(CONFIG.replace("grep -q good a.txt", "date +%N > report; grep -q good a.txt"))
    work.commit_all("report")
    passed(work, GOOD)
    assert committed(work) == "a.txt"
    assert work.git("status", "--porcelain") == "?? report"


@pytest.mark.thorough
def test_uncommitted_work_that_an_agent_has_removed_is_kept(work: Repo) -> None:
    work.write("d/mine", "committed\n")
    work.commit_all("d")
    work.write("d/mine", "not committed\n")
    work.write("untracked", "untracked\n")
    told = passed(work, f"git checkout -q d/mine; rm untracked; {GOOD}")
    assert "`d/mine` had uncommitted changes" in told
    for path, content in (("d/mine", b"not committed\n"), ("untracked", b"untracked\n")):
        assert work.gitgates("recover", "--show", path).stdout == content


@pytest.mark.thorough
def test_staged_stays_staged_and_nothing_else_is(work: Repo) -> None:
    work.write("staged", "staged\n")
    work.git("add", "staged")
    work.write("mine", "mine\n")
    passed(work, f"{GOOD}; echo b > b; git add -A")
    assert committed(work) == "a.txt\nb"
    assert work.git("status", "--porcelain") == "A  staged\n?? mine"


@pytest.mark.thorough
def test_a_file_with_staged_and_other_changes_is_not_committed(work: Repo) -> None:
    lines = [f"{number}\n" for number in range(20)]
    work.write("both", "".join(lines))
    work.commit_all("both")
    work.write("both", "".join(["staged\n", *lines[1:]]))
    work.git("add", "both")
    work.write("both", "".join(["other\n", *lines[1:]]))
    done = run(work, f"{GOOD}; sed -i 's/^19$/agent/' both")
    assert done.returncode == 1
    assert b"cannot be separated" in done.stdout
    assert work.git("show", ":both") == "".join(["staged\n", *lines[1:]]).rstrip("\n")


CHANGED = [
    ("git switch -qc elsewhere", "refs/heads/elsewhere was created during the run"),
    ("git branch -qD spare", "refs/heads/spare was deleted during the run; it was at "),
    (
        "git commit -qa --amend -m x",
        " was HEAD before the run, and is no longer in its history",
    ),
    ("git tag v1", "changed during the run, and not restored: refs/tags/v1"),
    ("echo '# x' >> .git/config", "not restored: {git}/config"),
    ("sed -i s/good/bad/ pyproject.toml", "the configuration of gitgates was changed"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("turn", "note"), CHANGED)
def test_what_else_an_agent_has_changed_is_said(work: Repo, turn: str, note: str) -> None:
    work.git("branch", "spare")
    assert note.format(git=work.path / ".git") in passed(work, f"{GOOD}; {turn}")


def test_all_else_that_an_agent_has_changed_is_said(work: Repo) -> None:
    work.git("branch", "spare")
    told = passed(work, "; ".join([GOOD, *(turn for turn, _note in CHANGED)]))
    assert "changed during the run, and not restored: " in told
    for _turn, note in CHANGED:
        assert note.rpartition(": ")[2].format(git=work.path / ".git") in told


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


def test_a_branch_that_cannot_be_made_leaves_nothing(work: Repo) -> None:
    work.git("branch", "fix")
    assert run(work, GOOD, args=("--branch", "fix/x")).returncode == 74
    assert not list((work.path / ".git/gitgates/checkpoints").iterdir())
    passed(work, GOOD)


@pytest.mark.thorough
def test_a_branch_of_a_failed_run_is_not_said_to_stay(work: Repo) -> None:
    done = run(work, "echo worse > a.txt", args=("--branch", "x", "--max-retries", "0"))
    assert done.returncode == 1
    assert b"note:" not in done.stdout


def test_a_bisection_under_way_is_not_disturbed(work: Repo) -> None:
    work.git("bisect", "start")
    done = run(work, GOOD)
    assert done.returncode == 74
    assert b"a bisect is in progress\n  End it first: git bisect reset" in done.stderr


def test_neither_hooks_nor_what_git_cannot_hold_are_for_the_agent(work: Repo) -> None:
    hook = work.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    work.write("b.txt", "b\n")
    work.commit_all("b")
    turn = f"rm {hook} b.txt; git init -q inner; mkfifo b.txt; {GOOD}"
    mend = f"rm -rf inner b.txt; echo b > b.txt; printf '#!/bin/sh\\n' > {hook}; chmod 755 {hook}"
    passed(work, turn, mend)
    told = prompts(work)[1].partition("must not change during the run: ")[2].partition("\n")[0]
    assert {one.partition(": ")[0] for one in told.split(", ")} == {str(hook), "b.txt", "inner/"}
    assert committed(work) == "a.txt"


@pytest.mark.samples(1)
@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
def test_local_changes_that_git_does_not_see_are_not_committed(work: Repo, flag: str) -> None:
    lines = [f"{number}\n" for number in range(20)]
    work.write("s", "".join(lines))
    work.commit_all("s")
    work.git("update-index", flag, "s")
    work.write("s", "".join(["local\n", *lines[1:]]))
    passed(work, f"{GOOD}; sed -i 's/^19$/agent/' s")
    assert work.git("show", "HEAD:s") == "".join([*lines[:19], "agent"])
    assert (work.path / "s").read_text() == "".join(["local\n", *lines[1:19], "agent\n"])


def test_what_a_rollback_restored_is_not_lost_to_a_command_that_looked_before(work: Repo) -> None:
    work.write("d", "committed\n")
    work.commit_all("d")
    work.write("d", "not committed\n")
    assert run(work, "echo agent > d", args=("--max-retries", "0")).returncode == 1
    assert (work.path / "d").read_text() == "not committed\n"
    assert work.gitgates("recover", "--list").stdout == b"no stashed or kept files\n"
    work.git("reset", "-q", "--hard")
    assert "d  restored" in work.gitgates("recover", "--list").stdout.decode()
    assert b"`d` was restored" in work.gitgates("doctor").stdout
    work.gitgates("recover")
    assert (work.path / "d.recovered").read_text() == "not committed\n"
    assert (work.path / "d").read_text() == "committed\n"


def test_a_checkpoint_of_another_worktree_is_found(work: Repo) -> None:
    args = ("--worktree", "--on-failure", "keep", "--max-retries", "0")
    done = run(work, "echo worse > a.txt", args=args)
    assert done.returncode == 1
    there = next(work.path.parent.glob("repo.headless-*"))
    said = (done.stdout + done.stderr).decode()
    assert f"{there} was kept (it holds the checkpoint of its run); to remove it: git" in said
    assert f"everything is left unchanged in {there}; the checkpoint is " in said
    found = work.gitgates("recover").stdout.decode()
    assert "left a checkpoint" in found
    name = found.split()[3]
    assert work.gitgates("recover", "--roll-back", name).returncode == 0
    assert (there / "a.txt").read_text() == "bad\n"
    assert b"nothing to recover" in work.gitgates("recover").stdout


def test_a_worktree_of_nothing_is_refused(repo: Repo) -> None:
    repo.config(CONFIG)
    done = run(repo, GOOD, args=("--worktree",))
    assert done.returncode == 74
    assert b"there is no commit yet" in done.stderr


def test_a_state_folder_that_cannot_be_written_is_said(work: Repo) -> None:
    work.write(".git/gitgates", "no folder")
    done = run(work, GOOD)
    assert done.returncode == 73
    assert b".git/gitgates: cannot be written: File exists" in done.stderr


def test_an_agent_that_removes_the_checkpoint_commits_nothing(work: Repo) -> None:
    head = work.head()
    done = run(work, f"{GOOD}; rm -rf .git/gitgates")
    assert done.returncode == 73
    assert b"the checkpoint no longer exists: " in done.stderr
    assert work.head() == head


def test_an_index_that_is_locked_is_said(work: Repo) -> None:
    told = passed(work, f"{GOOD}; touch .git/index.lock")
    assert "the index does not match the commit: " in told
    assert "to fix it: git reset" in told


@pytest.mark.thorough
def test_what_a_hook_adds_to_the_commit_is_not_staged_backwards(work: Repo) -> None:
    hook = work.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nfor f in a.txt new; do echo fixed >> $f; git add $f; done\n")
    hook.chmod(0o755)
    passed(work, GOOD)
    assert committed(work) == "a.txt\nnew"
    assert work.git("status", "--porcelain") == ""


@pytest.mark.thorough
@pytest.mark.slow
def test_a_signal_beside_a_process_names_the_checkpoint_too(work: Repo) -> None:
    """Git's filter holds the run where it reads what the agent has made."""
    ready = work.path.parent / "ready"
    os.mkfifo(ready)
    work.git("config", "filter.slow.clean", f"echo > {ready}; sleep 600")
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
    assert b"gitgates recover --roll-back" in err


def test_work_that_git_cannot_keep_stays_in_files(work: Repo) -> None:
    command = "git update-ref refs/gitgates/failed HEAD; echo worse > a.txt; echo new > b.txt"
    done = run(work, command, args=("--max-retries", "0"))
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert work.git("status", "--porcelain") == ""
    note = done.stdout.decode().partition("the agent's work could not be committed: ")[2]
    folder = note.partition("its files are in ")[2].partition("\n")[0]
    found = {path.read_text() for path in Path(folder).iterdir()}
    assert found == {"worse\n", "new\n"}


@pytest.mark.thorough
@pytest.mark.slow
def test_a_run_that_is_killed_after_its_commit_is_followed_by_the_index(work: Repo) -> None:
    work.write("staged.txt", "staged\n")
    work.git("add", "staged.txt")
    hook = work.path / ".git/hooks/post-commit"
    hook.write_text("#!/bin/sh\nkill -9 $(ps -o ppid= -p $PPID)\n")
    hook.chmod(0o755)
    script = agent(work, GOOD)
    command = [sys.executable, "-m", "gitgates", "headless", "go", "--agent-command", script]
    done = subprocess.run(command, cwd=work.path, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done
    run_id = next((work.path / ".git/gitgates/checkpoints").iterdir()).name
    assert work.gitgates("recover", "--drop", run_id).returncode == 0
    assert committed(work) == "a.txt"
    assert work.git("status", "--porcelain") == "A  staged.txt"


@pytest.mark.slow
def test_locks_of_a_git_that_was_killed_forgetting_a_checkpoint_are_removed(work: Repo) -> None:
    git = work.path / ".git"
    half = git / "gitgates/checkpoints/20260101T000000.000000Z-1"
    half.mkdir(parents=True)
    work.git("update-ref", f"refs/gitgates/checkpoint/{half.name}", "HEAD")
    new, old = git / "packed-refs.lock", git / "config.lock"
    new.touch()
    old.touch()
    os.utime(old, (1, 1))  # of before the run, so somebody else's
    done = headless(work, "go", "--agent-command", agent(work, "echo good > a.txt"))
    assert done.returncode == 0, done.stderr
    assert (new.exists(), old.exists(), half.exists()) == (False, True, False)
    assert not work.git("for-each-ref", "refs/gitgates/checkpoint")


def test_a_damaged_checkpoint_says_how_to_go_on(work: Repo) -> None:
    work.write(".git/gitgates/checkpoints/r1/checkpoint.json", "{")
    for done in (work.gitgates("recover"), run(work, GOOD)):
        assert done.returncode == 73
        assert b"checkpoints/r1/checkpoint.json: cannot be read" in done.stderr
        assert b"To continue without it: rm -r '" in done.stderr


@pytest.mark.thorough
def test_a_symlink_of_before_that_is_gone_is_kept(work: Repo) -> None:
    (work.path / "link").symlink_to("somewhere")
    said = passed(work, f"rm link; {GOOD}")
    kept = Path(
        said.partition("`link` had uncommitted changes; its previous content is in ")[2].split(
            "\n"
        )[0]
    )
    assert os.readlink(kept) == "somewhere"


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
