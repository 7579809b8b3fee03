"""Content that its own gates have seen is gated, whichever way it came into a commit."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess

import pytest
from conftest import Repo
from verify_support import CONFIG, append, change, gate, verified


@pytest.fixture
def gated(repo: Repo) -> Repo:
    gate(repo)
    return repo


def squash_on_main(repo: Repo, subject: str = "squash (#1)") -> None:
    """Do what a forge does on request: merge `topic` into main, and commit that as one."""
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--squash", "topic")
    repo.git("commit", "-qnm", subject)


def test_a_revert_to_the_tree_of_a_gated_commit(gated: Repo) -> None:
    change(gated, "first")
    change(gated, "second")
    change(gated, "beside", name="b.py")
    gated.git("revert", "--no-edit", "HEAD", "HEAD~1")
    assert verified(gated)[3:] == ['gated Revert "beside"', 'gated Revert "second"']


def test_a_revert_to_what_no_gate_was_given_is_named(gated: Repo) -> None:
    change(gated, "unchecked", "--no-verify")
    change(gated, "beside", name="b.py")
    change(gated, "second")
    gated.git("revert", "--no-edit", "HEAD")
    assert verified(gated)[3] == 'bypassed the gates: py Revert "second"'


def test_what_only_a_weaker_gate_was_given_is_named(gated: Repo) -> None:
    change(gated, "weak")
    gated.config(CONFIG.replace("-n bad", "-n weak").replace(', "all"', ""))
    gated.write("a.py", "strong = 1\n")
    gated.git("commit", "-qam", "strong")
    gated.git("checkout", "HEAD~1", "--", "a.py")
    assert gated.commit("refused").returncode == 1
    gated.git("commit", "-qnm", "back")
    assert verified(gated)[2] == "bypassed the gates: py back"


def test_what_a_gate_was_given_counts_after_other_settings_have_changed(gated: Repo) -> None:
    gated.config(CONFIG.replace(', "all"', ""))
    change(gated, "first")
    gated.config(CONFIG.replace(', "all"', "").replace("pass_files", "timeout = 9\npass_files"))
    gated.write("a.py", "second = 1\n")
    gated.git("commit", "-qam", "second")
    gated.git("checkout", "HEAD~1", "--", "a.py")
    gated.git("commit", "-qnm", "back")
    assert verified(gated)[2] == "gated on another base back"


def test_files_that_were_never_together_are_as_on_another_base(gated: Repo) -> None:
    gated.config(CONFIG.replace(', "all"', ""))
    gated.commit_all("only what is about files")
    gated.git("tag", "-f", "base")
    gated.git("checkout", "-qb", "topic")
    change(gated, "one", name="one.py", text="one\n")
    change(gated, "more", name="one.py", text="more\n")
    gated.git("checkout", "-q", "main")
    change(gated, "main")
    gated.git("checkout", "topic", "--", "one.py")
    gated.git("commit", "-qnm", "taken over")
    assert verified(gated)[1] == "gated on another base taken over"


def test_a_squash_of_gated_commits_on_a_base_that_has_moved(gated: Repo) -> None:
    gated.git("checkout", "-qb", "topic")
    change(gated, "one")
    change(gated, "two", name="b.py")
    gated.git("checkout", "-q", "main")
    gated.write("a.py", "moved = 1\n" + (gated.path / "a.py").read_text())
    gated.git("commit", "-qam", "main")
    squash_on_main(gated)
    assert verified(gated) == ["gated main", "squash of gated commits squash (#1)"]
    strict = verified(gated, "--strict")
    assert strict[1].startswith("bypassed the gates: py, all squash")


def test_the_squash_of_a_branch_that_was_deleted(gated: Repo) -> None:
    gated.git("checkout", "-qb", "topic")
    change(gated, "one")
    change(gated, "two")
    gated.git("checkout", "-q", "main")
    change(gated, "main", name="m.py")
    squash_on_main(gated)
    gated.git("branch", "-D", "topic")
    assert verified(gated)[1] == "squash of gated commits squash (#1)"


def test_a_squash_with_one_commit_that_went_round_is_named(gated: Repo) -> None:
    gated.git("checkout", "-qb", "topic")
    change(gated, "one", "--no-verify")
    change(gated, "two", name="b.py")
    gated.git("checkout", "-q", "main")
    change(gated, "main", name="m.py")
    squash_on_main(gated)
    assert verified(gated)[1] == "bypassed the gates: py, all squash (#1)"


def test_a_squash_that_changes_something_on_the_way_is_named(gated: Repo) -> None:
    gated.git("checkout", "-qb", "topic")
    change(gated, "one")
    gated.git("checkout", "-q", "main")
    change(gated, "main", name="m.py")
    squash_on_main(gated)
    append(gated, "bad\n")
    gated.git("commit", "-qan", "--amend", "--no-edit")
    assert verified(gated)[1] == "bypassed the gates: py, all squash (#1)"


# -- commands of newer git that run no hooks --

NEWER = os.environ.get("GITGATES_E2E_GIT") or shutil.which("git") or "git"


@functools.cache
def knows(verb: str) -> bool:
    """Return whether this git has a verb: `history` came with 2.54, `replay` with 2.44."""
    said = subprocess.run([NEWER, verb, "-h"], capture_output=True, check=False)
    return b"is not a git command" not in said.stderr


@pytest.fixture
def newer(gated: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """The same with a newer git, and three gated commits: a.py, b.py, a.py."""
    monkeypatch.setenv("PATH", f"{os.path.dirname(NEWER)}{os.pathsep}{os.environ['PATH']}")
    for verb in ("history", "replay"):
        if not knows(verb):
            pytest.skip(f"{NEWER} has no `git {verb}`; name a newer one by GITGATES_E2E_GIT")
    change(gated, "one")
    change(gated, "two", name="b.py")
    change(gated, "three")
    return gated


def test_a_commit_that_was_reworded_is_gated(newer: Repo) -> None:
    newer.git("history", "reword", "HEAD~1", env={"GIT_EDITOR": "echo reworded >"})
    assert verified(newer) == ["gated one", "gated reworded", "gated three"]


def test_what_was_fixed_up_behind_the_gates_is_named(newer: Repo) -> None:
    append(newer, "bad\n", "b.py")
    newer.git("add", "b.py")
    newer.git("history", "fixup", "HEAD~1")
    assert newer.git("show", "HEAD~1:b.py").endswith("bad")
    assert verified(newer) == [
        "gated one",
        "bypassed the gates: py, all two",
        "gated on another base three",
    ]


def test_a_commit_that_was_dropped_leaves_the_others_gated(newer: Repo) -> None:
    done = newer.ask("git", "history", "drop", "HEAD~1")
    if b"unknown subcommand" in done.stderr:  # before git 2.56
        pytest.skip(f"{NEWER} has no `git history drop`")
    assert done.returncode == 0
    assert verified(newer) == ["gated one", "gated on another base three"]


def test_a_commit_that_was_split_is_what_its_parts_are(newer: Repo) -> None:
    append(newer, "four = 1\n")
    append(newer, "four = 1\n", "b.py")
    newer.git("commit", "-qam", "four")
    newer.ask("git", "history", "split", "HEAD", "b.py", stdin=b"y\n" * 3)
    assert newer.git("rev-list", "--count", "base..HEAD") == "5"
    # Both files were checked as they are; no gate has run with the first part alone.
    assert verified(newer)[3:] == ["bypassed the gates: all four", "gated four"]


def test_commits_that_were_replayed_are_as_after_a_rebase(newer: Repo) -> None:
    newer.git("checkout", "-qb", "topic", "HEAD~1")
    change(newer, "mine", name="m.py")
    newer.git("checkout", "-q", "main")
    newer.git("replay", "--onto", "main", "HEAD~1..topic")
    newer.git("checkout", "-q", "topic")
    assert verified(newer)[-1] == "gated on another base mine"


def test_replayed_reverts_are_gated_where_their_content_is(newer: Repo) -> None:
    newer.git("replay", "--revert", "main", "HEAD~1..HEAD")
    newer.git("reset", "-q", "--hard")
    assert verified(newer)[-1] == 'gated Revert "three"'


def test_where_nothing_can_be_written_no_squash_is_found(gated: Repo) -> None:
    gated.write("a.py", "x = 1\n")
    gated.git("add", ".")
    gated.git("commit", "-qm", "one", "--no-verify")
    state = gated.path / ".git/gitgates"
    shutil.rmtree(state, ignore_errors=True)
    state.write_text("a file of somebody")
    done = gated.gitgates("verify", "HEAD~1..HEAD")
    assert done.returncode == 1
    assert b"bypassed the gates" in done.stdout
    assert b"Traceback" not in done.stderr
