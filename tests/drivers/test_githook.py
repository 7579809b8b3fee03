"""Real commits, merges and pushes: which paths gates get, and which repository they see.

A gate writes what it was given to files below $OUT, outside the repository.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from conftest import Repo, timeless

RECORD = '''
[gates.record]
command = 'printf "%s\\n" "$@" >> "$OUT/paths"'
pass_files = true
[gates.always]
command = """
echo ran >> "$OUT/always"
git diff --cached --name-only >> "$OUT/cached"
env >> "$OUT/env"
"""
'''


def seen(out: Path, name: str = "paths") -> list[str] | None:
    """Return the recorded lines, sorted, and forget them; None if the gate did not run."""
    path = out / name
    if not path.exists():
        return None
    lines = path.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    path.unlink()
    return sorted(lines)


def stage_after_first(repo: Repo) -> None:
    """Commit everything, put the shim in place, and stage a change of `a`."""
    repo.commit_all("configure")
    repo.shim("pre-commit")
    repo.write("a", "2\n")
    repo.git("add", "a")


def arm(repo: Repo, hook: str = "pre-commit", extra: str = "") -> None:
    """Configure the recording gates, commit that, and put the shim in place."""
    repo.config(RECORD + f'[hooks.{hook}]\ngates = ["record", "always"]\n' + extra)
    repo.git("add", "pyproject.toml")
    repo.git("commit", "-qm", "configure")
    repo.shim(hook)


def test_staged_paths_are_added_modified_renamed_and_copied(repo: Repo, out: Path) -> None:
    for name in ("old", "mod", "gone", "link-target"):
        repo.write(name, f"{name}\n" * 20)
    repo.git("add", ".")
    arm(repo)
    repo.git("mv", "old", "new")
    repo.write("mod", "changed")
    repo.write("-dash", "x")
    repo.write("sp ace/ü", "x")
    repo.write(os.fsdecode(b"raw\xff"), "x")
    repo.git("rm", "-q", "gone")
    os.symlink("link-target", repo.path / "link")
    repo.git("add", ".")
    repo.write("unstaged", "not part of it")
    assert repo.commit().returncode == 0
    assert seen(out) == sorted(["new", "mod", "./-dash", "sp ace/ü", os.fsdecode(b"raw\xff")])


def test_a_newline_in_a_name_is_one_argument(repo: Repo, out: Path) -> None:
    arm(repo)
    repo.config(RECORD.replace("%s", "<%s>") + '[hooks.pre-commit]\ngates = ["record"]\n')
    repo.git("commit", "-qam", "show the ends", "--no-verify")
    repo.write("two\nlines", "x")
    repo.git("add", "two\nlines")
    assert repo.commit().returncode == 0
    assert (out / "paths").read_text() == "<two\nlines>\n"


def test_a_commit_that_only_deletes_runs_gates_that_take_no_paths(repo: Repo, out: Path) -> None:
    repo.write("gone", "x")
    repo.git("add", ".")
    arm(repo)
    repo.git("rm", "-q", "gone")
    done = repo.commit()
    assert done.returncode == 0
    assert (seen(out), seen(out, "always")) == (None, ["ran"])
    assert "record  skipped      files were only deleted\n" in timeless(done.stderr)


@pytest.mark.samples(1)
@pytest.mark.parametrize("args", [(), ("-a",), ("--amend",)], ids=["plain", "all", "amend"])
def test_deleted_files_match_gates_that_are_given_no_paths(
    repo: Repo, args: tuple[str, ...]
) -> None:
    repo.config(
        "[gates.types]\ncommand = 'grep -q x b.py'\nfiles = ['*.py']\n"
        "[gates.docs]\ncommand = 'false'\nfiles = ['*.md']\n"
        "[hooks.pre-commit]\ngates = ['types', 'docs']\n"
    )
    repo.write("b.py", "x")
    stage_after_first(repo)
    repo.git("commit", "-qm", "before", "--no-verify")
    repo.git("rm", "-q", "b.py")
    done = repo.commit("gone", *args)
    assert done.returncode == 1
    assert b"blocked by `types`" in done.stderr
    repo.git("reset", "-q", "--hard")
    repo.git("mv", "b.py", "b.txt")
    assert repo.commit("renamed", *args).returncode == 1


def test_the_first_commit(repo: Repo, out: Path) -> None:
    repo.config(RECORD + '[hooks.pre-commit]\ngates = ["record", "always"]\n')
    repo.shim("pre-commit")
    repo.git("add", ".")
    assert repo.commit().returncode == 0
    assert (seen(out), seen(out, "cached")) == (["pyproject.toml"], ["pyproject.toml"])


def test_commit_all_sees_what_it_commits(repo: Repo, out: Path) -> None:
    repo.write("a", "1")
    repo.write("b", "1")
    repo.git("add", ".")
    arm(repo)
    repo.write("a", "2")
    repo.write("new", "untracked")
    assert repo.commit("all", "-a").returncode == 0
    assert (seen(out), seen(out, "cached")) == (["a"], ["a"])
    assert repo.git("status", "--porcelain") == "?? new"


def test_commit_of_named_paths_sees_only_those(repo: Repo, out: Path) -> None:
    repo.write("a", "1")
    repo.write("b", "1")
    repo.git("add", ".")
    arm(repo)
    repo.write("a", "2")
    repo.write("b", "2")
    repo.git("add", "b")
    assert repo.commit("a only", "--", "a").returncode == 0
    assert (seen(out), seen(out, "cached")) == (["a"], ["a"])
    assert repo.git("status", "--porcelain") == "M  b"


def test_amend_is_about_what_it_adds(repo: Repo, out: Path) -> None:
    arm(repo)
    repo.write("a", "1")
    repo.git("add", ".")
    assert repo.commit().returncode == 0
    seen(out)
    repo.write("b", "1")
    repo.git("add", ".")
    assert repo.commit("again", "--amend").returncode == 0
    assert seen(out) == ["b"]


def test_detached_head(repo: Repo, out: Path) -> None:
    arm(repo)
    repo.git("checkout", "-q", "--detach")
    repo.write("a", "1")
    repo.git("add", ".")
    assert repo.commit().returncode == 0
    assert seen(out) == ["a"]


def diverge(repo: Repo) -> None:
    """Make a branch `side` beside main: both change `both`, each changes a file of its own."""
    repo.write("both", "".join(f"{n}\n" for n in range(30)))
    repo.git("add", ".")
    repo.git("commit", "-qm", "base", "--no-verify")
    repo.git("checkout", "-qb", "side")
    repo.write("theirs", "x")
    repo.write("both", "".join(f"{n}\n" for n in range(29)) + "side\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "side", "--no-verify")
    repo.git("checkout", "-q", "main")
    repo.write("ours", "x")
    repo.git("add", ".")
    repo.git("commit", "-qm", "main", "--no-verify")


def test_a_merge_runs_pre_commits_gates_on_what_differs_from_both_parents(
    repo: Repo, out: Path
) -> None:
    arm(repo)
    repo.shim("pre-merge-commit")
    diverge(repo)
    repo.write("both", "main\n" + "".join(f"{n}\n" for n in range(1, 30)))
    repo.git("commit", "-qam", "main too", "--no-verify")
    repo.git("merge", "-q", "side", "-m", "merge")
    assert (seen(out), seen(out, "always")) == (["both"], ["ran"])


def test_a_resolved_conflict_is_checked(repo: Repo, out: Path) -> None:
    arm(repo)
    diverge(repo)
    repo.write("both", "".join(f"{n}\n" for n in range(29)) + "main\n")
    repo.git("commit", "-qam", "conflict", "--no-verify")
    assert repo.ask("git", "merge", "side").returncode == 1
    repo.write("both", "resolved\n")
    repo.git("add", "both")
    assert repo.commit("resolved").returncode == 0
    assert seen(out) == ["both"]


def test_cherry_pick_and_rebase_run_no_hook_but_their_conflicts_do(repo: Repo, out: Path) -> None:
    arm(repo)
    diverge(repo)
    repo.git("cherry-pick", "side")
    assert seen(out, "always") is None
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.git("rebase", "-q", "side")
    assert seen(out, "always") is None


def test_a_linked_worktree_sees_its_own_index(repo: Repo, out: Path) -> None:
    arm(repo)
    repo.git("worktree", "add", "-q", "../linked")
    linked = Repo(repo.path.parent / "linked")
    for args in ((), ("-a",)):
        linked.write("w", f"{args}")
        linked.git("add", "w")
        linked.write("w", f"{args} again")
        assert linked.commit("in linked", *args).returncode == 0
        assert (seen(out), seen(out, "cached")) == (["w"], ["w"])
    assert repo.git("status", "--porcelain") == ""


@pytest.mark.samples(2)
@pytest.mark.parametrize("args", [(), ("-a",), ("--", "a")], ids=["plain", "all", "paths"])
@pytest.mark.parametrize("where", ["main", "linked"])
def test_a_gate_that_commits_elsewhere_commits_elsewhere(
    repo: Repo, out: Path, where: str, args: tuple[str, ...]
) -> None:
    repo.write("a", "1")
    repo.git("add", ".")
    scratch = out / "scratch"
    extra = (
        f"[gates.scratch]\ncommand = 'git init -q {scratch} && cd {scratch} && "
        "echo x > x && git add x && git commit -qm scratch'\n"
    )
    if where == "linked" and args:
        # There the copy of the index has an absolute name, which means the same everywhere.
        extra += 'git_env = "clean"\n'
    repo.config(RECORD + extra + '[hooks.pre-commit]\ngates = ["scratch", "record"]\n')
    repo.commit_all("configure")
    repo.shim("pre-commit")
    if where == "linked":
        repo.git("worktree", "add", "-q", "../linked")
        repo = Repo(repo.path.parent / "linked")
    before = repo.head()
    repo.write("a", "2")
    repo.git("add", "a")
    done = repo.commit("real", *args)
    assert done.returncode == 0, done.stderr
    assert repo.git("rev-parse", "HEAD~1") == before
    assert Repo(scratch).git("log", "--format=%s") == "scratch"
    assert seen(out) == ["a"]
    assert repo.git("status", "--porcelain") == ""


@pytest.mark.parametrize("args", [(), ("-a",), ("--", "a")], ids=["plain", "all", "paths"])
def test_gates_get_no_variable_of_git_but_a_copy_of_another_index(
    repo: Repo, out: Path, args: tuple[str, ...]
) -> None:
    repo.write("a", "1")
    repo.git("add", ".")
    arm(repo)
    repo.write("a", "2")
    repo.git("add", "a")
    assert repo.commit("x", "--author=A <a@example.invalid>", *args).returncode == 0
    git_names = [line for line in seen(out, "env") or [] if line.startswith("GIT_")]
    kept = [line for line in git_names if not line.startswith(("GIT_CONFIG_", "GIT_EXEC_PATH"))]
    found = [re.sub(r"\d+$", "PID", line) for line in kept]
    assert found == (["GIT_INDEX_FILE=.git/gitgates-index.PID"] if args else [])
    assert not list((repo.path / ".git").glob("gitgates-index*"))


def test_a_gate_in_a_subfolder_sees_the_same_index(repo: Repo, out: Path) -> None:
    repo.write("sub/a", "1")
    repo.git("add", ".")
    extra = (
        "[gates.below]\ncommand = 'git diff --cached --name-only > \"$OUT/below\"'\n"
        'working_dir = "sub"\n'
    )
    repo.config(extra + '[hooks.pre-commit]\ngates = ["below"]\n')
    repo.commit_all("configure")
    repo.shim("pre-commit")
    repo.write("sub/a", "2")
    done = repo.commit("all", "-a")
    assert done.returncode == 0, done.stderr
    assert seen(out, "below") == ["sub/a"]


@pytest.mark.samples(4, "nightly")
@pytest.mark.parametrize(
    ("args", "writes"),
    [
        pytest.param((), True, id="plain, a fixer"),
        pytest.param(("-a",), False, id="all"),
        pytest.param(("--", "a"), True, id="paths, a fixer"),
        pytest.param((), False, id="plain", marks=pytest.mark.thorough),
        pytest.param(("-a",), True, id="all, a fixer", marks=pytest.mark.thorough),
        pytest.param(("--", "a"), False, id="paths", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        "echo BAD >> a; git add a",
        "git reset -q --hard",
        "git rm -q --cached a",
        "git read-tree --empty",
        "echo x > new; git add new",
    ],
)
def test_a_gate_may_not_change_what_is_committed(
    repo: Repo, command: str, args: tuple[str, ...], *, writes: bool
) -> None:
    repo.write("a", "1\n")
    repo.config(
        f"[gates.wild]\ncommand = '{command}'\nwrites = {str(writes).lower()}\n"
        "[hooks.pre-commit]\ngates = ['wild']\n"
    )
    stage_after_first(repo)
    done = repo.commit("x", *args)
    assert done.returncode == 1, done.stderr
    assert b"changed" in done.stderr
    assert repo.git("log", "--format=%s") == "configure"


@pytest.mark.samples(1)
@pytest.mark.parametrize("args", [(), ("-a",), ("--", "a")], ids=["plain", "all", "paths"])
def test_gitgates_in_a_gate_sees_the_same_index(repo: Repo, args: tuple[str, ...]) -> None:
    repo.write("a", "1\n")
    repo.config(
        f"[gates.inner]\ncommand = '{sys.executable} -m gitgates run manual'\n"
        "[gates.look]\ncommand = 'git diff --cached --name-only | grep -qx a'\n"
        "[hooks.manual]\ngates = ['look']\n[hooks.pre-commit]\ngates = ['inner']\n"
    )
    stage_after_first(repo)
    done = repo.commit("x", *args)
    assert done.returncode == 0, done.stderr


def test_git_dir_stays_where_the_folder_does_not_tell(repo: Repo, out: Path) -> None:
    arm(repo)
    outside = repo.path.parent / "outside.git"
    (repo.path / ".git").rename(outside)
    repo.write("a", "1")
    where = ("--git-dir", str(outside), "--work-tree", str(repo.path))
    repo.git(*where, "add", "a")
    done = repo.ask("git", *where, "commit", "-m", "dotfiles")
    assert done.returncode == 0, done.stderr
    assert (seen(out), seen(out, "cached")) == (["a"], ["a"])
    assert f"GIT_DIR={outside}" in (seen(out, "env") or [])


def test_message_hooks_are_about_the_message(repo: Repo, out: Path) -> None:
    arm(repo, "commit-msg")
    repo.write("a.py", "x")
    repo.git("add", ".")
    assert repo.commit("the message").returncode == 0
    assert seen(out) == [".git/COMMIT_EDITMSG"]


def test_a_message_can_be_refused_from_a_linked_worktree(repo: Repo) -> None:
    repo.config(
        '[gates.subject]\ncommand = \'grep -q "^ok" "$1"\'\npass_hook_input = true\n'
        "[hooks.commit-msg]\ngates = ['subject']\n"
    )
    repo.commit_all("configure")
    repo.shim("commit-msg")
    repo.git("worktree", "add", "-q", "../linked")
    linked = Repo(repo.path.parent / "linked")
    for place in (repo, linked):
        assert place.commit("no", "--allow-empty").returncode == 1
        assert place.commit("ok", "--allow-empty").returncode == 0


def test_hook_input_reaches_every_gate_that_asks(repo: Repo, out: Path) -> None:
    gate = (
        '[gates.{0}]\ncommand = \'cat > "$OUT/{0}"; echo "$@" >> "$OUT/{0}"\'\n'
        "pass_hook_input = true\n"
    )
    repo.config(
        gate.format("one") + gate.format("two") + "[hooks.pre-push]\ngates = ['one', 'two']\n"
    )
    repo.commit_all("configure")
    repo.shim("pre-push")
    repo.git("init", "-q", "--bare", "../remote.git")
    repo.git("push", "-q", "../remote.git", "main")
    head = repo.head()
    expected = f"refs/heads/main {head} refs/heads/main {'0' * 40}\n../remote.git ../remote.git\n"
    assert (out / "one").read_text() == (out / "two").read_text() == expected
    assert not any((repo.path / ".git/gitgates/runs").iterdir())  # nothing was printed


def change(repo: Repo, name: str, content: str = "x") -> None:
    repo.write(name, content)
    repo.git("add", name)
    repo.git("commit", "-qm", name)


def test_post_checkout_and_post_merge_are_about_what_changed(repo: Repo, out: Path) -> None:
    hooks = "".join(
        f"[hooks.{name}]\ngates = ['record']\n" for name in ("post-checkout", "post-merge")
    )
    repo.config(RECORD + hooks + "[hooks.post-commit]\ngates = ['record']\n")
    repo.commit_all("configure")
    repo.shim("post-checkout", "post-merge", "post-commit")
    repo.git("checkout", "-qb", "side")
    assert seen(out) is None
    change(repo, "package.json")
    assert seen(out) == ["package.json"]
    repo.git("checkout", "-q", "main")
    assert seen(out) is None  # main has none of it
    repo.git("merge", "-q", "side")
    assert seen(out) == ["package.json"]
    repo.git("checkout", "-q", "HEAD~1")
    repo.git("checkout", "-q", "main")
    assert seen(out) == ["package.json"]


def test_a_hook_that_comes_too_late_says_so(repo: Repo) -> None:
    repo.config("[gates.a]\ncommand = 'false'\n[hooks.post-commit]\ngates = ['a']\n")
    repo.shim("post-commit")
    repo.git("add", ".")
    done = repo.commit()
    assert done.returncode == 0
    assert timeless(done.stderr).splitlines()[-1] == (
        "gitgates post-commit: too late to block: gate `a` failed (exit status 1)"
    )


@pytest.mark.parametrize(
    ("command", "said"),
    [("'false'", b"too late to block: gate `a` failed"), ("7", b"gates.a.command: got 7")],
)
def test_what_fails_too_late_breaks_no_command_of_git(
    repo: Repo, command: str, said: bytes
) -> None:
    repo.config(f"[gates.a]\ncommand = {command}\n[hooks.post-checkout]\ngates = ['a']\n")
    repo.write("a", "1")
    repo.commit_all("one")
    repo.write("a", "2")
    repo.commit_all("two")
    repo.write("a", "3")
    repo.commit_all("three")
    repo.shim("post-checkout")
    done = repo.ask("git", "worktree", "add", "-q", "-b", "other", "../other")
    assert (done.returncode, said in done.stderr) == (0, True)
    repo.git("bisect", "start", "HEAD", "HEAD~2")
    assert repo.git("rev-parse", "HEAD") == repo.git("rev-parse", "main~1")
    # By hand, and of a hook that was there before, the exit status is what it was.
    repo.git("checkout", "-q", "main")
    assert repo.gitgates("run", "post-checkout").returncode in (1, 78)
    kept = repo.write(".git/hooks/post-checkout.before-gitgates", "#!/bin/sh\nexit 1\n")
    kept.chmod(0o755)
    assert repo.ask("git", "checkout", "-q", "main~1").returncode == 1


def test_skips_are_said_and_required_gates_cannot_be_skipped(repo: Repo) -> None:
    repo.config(
        "[gates.a]\ncommand = 'true'\n[gates.b]\ncommand = 'true'\nrequired = true\n"
        "[hooks.pre-commit]\ngates = ['a', 'b']\n"
    )
    repo.git("add", ".")
    repo.shim("pre-commit")
    for name in ("GITGATES_SKIP", "SKIP"):
        done = repo.ask(".git/hooks/pre-commit", env={name: "a, b"})
        assert timeless(done.stderr) == (
            f"a  skipped      named in {name}\n"
            "b  passed         0.00 s\n"
            f"gitgates: gate `b` is required: {name} does not skip it\n"
            "gitgates pre-commit: 1 gate passed, 1 gate skipped\n"
        )


def test_skips_are_in_the_ledger_of_all_worktrees(repo: Repo) -> None:
    repo.config("[gates.a]\ncommand = 'false'\n[hooks.pre-commit]\ngates = ['a']\n")
    repo.commit_all("configure")
    repo.shim("pre-commit")
    repo.git("worktree", "add", "-q", "../linked")
    linked = Repo(repo.path.parent / "linked")
    done = linked.ask("git", "commit", "-qm", "x", "--allow-empty", env={"GITGATES_SKIP": "a"})
    assert done.returncode == 0
    entry = json.loads((repo.path / ".git/gitgates/ledger.jsonl").read_text())
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "v": 1,
        "what": "skip",
        "hook": "pre-commit",
        "gates": ["a"],
        "by": "GITGATES_SKIP",
        "root": str(linked.path),
    }


def test_the_off_switch(repo: Repo) -> None:
    repo.config("[gates.a]\ncommand = 'false'\n[hooks.pre-commit]\ngates = ['a']\n")
    repo.shim("pre-commit")
    repo.git("add", ".")
    assert repo.commit().returncode == 1
    done = repo.ask("git", "commit", "-qm", "x", env={"GITGATES": "0"})
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_gate_that_calls_its_own_hook_does_not_loop(repo: Repo) -> None:
    repo.config(
        "[gates.again]\ncommand = '.git/hooks/pre-commit; git commit --allow-empty -qm inner'\n"
        "[hooks.pre-commit]\ngates = ['again']\n"
    )
    repo.commit_all("configure")
    repo.shim("pre-commit")
    done = repo.ask(".git/hooks/pre-commit")
    assert done.returncode == 0
    assert repo.git("log", "--format=%s") == "inner\nconfigure"


def test_the_previous_hook_may_run_the_gates_itself(repo: Repo, out: Path) -> None:
    repo.config(
        "[gates.a]\ncommand = 'echo ran >>$OUT/always; cat f >>$OUT/paths'\n"
        "[hooks.pre-commit]\ngates = ['a']\n"
    )
    previous = repo.write(
        ".git/hooks/pre-commit",
        "#!/bin/sh\ngitgates run --staged pre-commit || exit 1\necho went on >>$OUT/went\n"
        # What would lead back to the gates that follow is told so, and ends.
        'gitgates git-hook --via=own pre-commit "$@" && gitgates pre-commit-hook pre-commit\n',
    )
    previous.chmod(0o755)
    repo.git("add", ".")
    assert repo.gitgates("install-hooks").returncode == 0
    repo.write("f", "staged\n")
    repo.git("add", "f")
    repo.write("f", "unstaged\n")
    done = repo.commit()
    assert (done.returncode, seen(out, "went")) == (0, ["went on"])
    assert seen(out, "always") == ["ran"] * 2  # there, and after it
    assert seen(out) == ["staged"] * 2  # unstaged work is hidden there, too
    assert (done.stderr + done.stdout).count(b"pre-commit is already running here\n") == 2
    repo.config("[gates.a]\ncommand = 'false'\n[hooks.pre-commit]\ngates = ['a']\n")
    repo.git("add", ".")
    assert (repo.commit().returncode, seen(out, "went")) == (1, None)


def test_what_a_gate_leaves_running_gets_no_free_pass(repo: Repo) -> None:
    repo.config("[gates.a]\ncommand = 'false'\n[hooks.pre-commit]\ngates = ['a']\n")
    repo.git("add", ".")
    repo.shim("pre-commit")
    gone = f"999999999 pre-commit {repo.path}/.git"
    done = repo.ask(".git/hooks/pre-commit", env={"GITGATES_ACTIVE": gone})
    assert done.returncode == 1


def test_a_fixer_that_changes_files_fails_the_commit(repo: Repo) -> None:
    repo.config(
        '[gates.fix]\ncommand = \'for f in "$@"; do echo fixed > "$f"; done\'\n'
        "files = ['*.txt']\npass_files = true\nwrites = true\n[hooks.pre-commit]\ngates = ['fix']\n"
    )
    repo.shim("pre-commit")
    repo.write("a.txt", "broken\n")
    repo.write("b.txt", "fixed\n")
    repo.git("add", ".")
    done = repo.commit()
    assert done.returncode == 1
    assert timeless(done.stderr) == (
        "fix  passed         0.00 s  changed 1 file: a.txt\n"
        "gitgates: review the fixes (git diff), stage them (git add) and commit again; with "
        "`restage = true` the gate stages it\n"
        "gitgates pre-commit: blocked: gate `fix` changed 1 file: a.txt\n"
        "gitgates: to see more: gitgates runs show latest; "
        "to skip this once: GITGATES_SKIP=fix git commit\n"
    )
    repo.git("add", ".")
    assert repo.commit().returncode == 0


def test_after_a_fixer_a_gate_met_again_runs_again(repo: Repo, out: Path) -> None:
    repo.config(
        "[gates.check]\ncommand = 'echo check >> \"$OUT/order\"; grep -q good a.txt'\n"
        "on_fail = 'fix'\n"
        "[gates.fix]\ncommand = 'echo fix >> \"$OUT/order\"; echo good > a.txt'\nwrites = true\n"
        "on_pass = 'verify'\n"
        "[gates.verify]\ncommand = 'echo verify >> \"$OUT/order\"; grep -q good a.txt'\n"
        "[hooks.manual]\ngates = ['check', 'verify', 'check']\n"
    )
    repo.write("a.txt", "bad\n")
    repo.git("add", ".")
    done = repo.gitgates("run")
    assert (out / "order").read_text().split() == ["check", "fix", "verify", "check"]
    assert done.returncode == 0
    assert b"but `fix` passed" in done.stdout


def test_a_refusal_ends_with_what_can_be_done(repo: Repo) -> None:
    gates = "[gates.a]\ncommand = 'false'\n[gates.b]\ncommand = 'nonesuch'\n"
    repo.config(f"{gates}[hooks.pre-commit]\ngates = ['a', 'b']\nstrategy = 'collect'\n")
    repo.write("f")
    repo.git("add", ".")
    repo.shim("pre-commit")

    def last(**env: str) -> str:
        done = repo.ask("git", "commit", "-m", "x", env=env)
        assert done.returncode == 1
        return done.stderr.decode().splitlines()[-1]

    see = (
        "gitgates: to see more: gitgates runs show latest; to see what gates lack: gitgates doctor"
    )
    assert last() == f"{see}; to skip this once: GITGATES_SKIP=a,b git commit"
    all_of_them = f"{see}; to skip this once: GITGATES_SKIP=a,b git commit"
    assert last(GITGATES_SKIP="a") == all_of_them, "one after the other, they would take turns"
    assert last(GITGATES_SKIP="typo") == all_of_them
    # A person decides that, and no agent.
    assert last(CLAUDECODE="1") == see
    repo.config(f"{gates}required = true\n[hooks.pre-commit]\ngates = ['b']\n")
    repo.git("add", ".")
    assert last() == f"{see}; to skip this once: git commit --no-verify"
    repo.config("[hooks.pre-commit]\ngates = ['undefined']\n")
    repo.git("add", ".")
    assert last().endswith("gitgates doctor; to skip this once: git commit --no-verify")
    repo.config("[gates.a]\ncommand = 'true'\n[hooks.pre-commit]\ngates = ['a']\n")
    repo.git("add", ".")
    assert repo.commit().stderr.splitlines()[-1] == b"gitgates pre-commit: 1 gate passed"
