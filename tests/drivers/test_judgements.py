"""What judges a commit and a push is their own configuration, on their own content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Repo

pytestmark = pytest.mark.slow

GATE = '[gates.g]\ncommand = "{}"\n'
BOTH = '[hooks.pre-commit]\ngates = ["g"]\n[hooks.pre-push]\ngates = ["g"]\n'
LAX = GATE.format("true") + BOTH
STRICT = GATE.format("false") + BOTH
WHERE = GATE.format("pwd; false") + BOTH
COMMITS = (
    GATE.format("! grep bad a") + '[hooks.pre-commit]\ngates = ["g"]\n[hooks.pre-push]\n{} = {}\n'
)
NOT_ADDED = "in what is being committed; nothing was checked (to add it: git add gitgates.toml)"
IN_CHECKOUT = "in a private checkout"


def begin(repo: Repo, settings: str, *hooks: str) -> Repo:
    """Commit settings, which no gate has seen, and have a remote without any commit."""
    repo.write("gitgates.toml", settings)
    repo.commit_all("settings", no_verify=True)
    repo.git("init", "-q", "--bare", "../origin.git")
    repo.git("remote", "add", "origin", "../origin.git")
    repo.shim(*hooks or ("pre-commit", "pre-push"))
    return repo


def ended(repo: Repo, *args: str) -> tuple[int, str]:
    """Return the exit status of a git command, and what it says."""
    done = repo.ask("git", *args)
    return done.returncode, done.stderr.decode()


def push(repo: Repo, *refs: str) -> tuple[int, str]:
    return ended(repo, "push", "origin", *refs or ("main",))


# Pushes


def test_an_edit_that_is_not_pushed_does_not_judge_a_push(repo: Repo) -> None:
    begin(repo, STRICT)
    repo.write("gitgates.toml", LAX)
    status, said = push(repo)
    assert (status, "blocked by `g`" in said) == (1, True)
    commit = repo.head()[:7]
    assert (
        f"the configuration in the pushed commit {commit} (main) applies, not the working tree's"
        in said
    )
    repo.commit_all("lax", no_verify=True)
    for number, text in enumerate((STRICT, "[[")):  # nor a stricter one, or one with errors
        repo.write("gitgates.toml", text)
        assert push(repo, f"main:{number}")[0] == 0


def test_verify_cannot_be_deleted_by_an_edit(repo: Repo) -> None:
    begin(repo, COMMITS.format("verify", "true"))
    repo.write("a", "bad\n")
    repo.commit_all("bad", no_verify=True)
    repo.write("gitgates.toml", LAX)
    status, said = push(repo)
    assert (status, "bad: not pushed" in said) == (1, True)
    repo.write("gitgates.toml", COMMITS.format("gates", "[]"))
    repo.commit_all("do not verify", no_verify=True)
    assert push(repo)[0] == 0


def test_each_of_two_branches_is_judged_by_its_own_configuration(repo: Repo) -> None:
    begin(repo, LAX)
    repo.git("checkout", "-qb", "strict")
    repo.write("gitgates.toml", STRICT)
    repo.commit_all("strict", no_verify=True)
    assert push(repo, "main")[0] == 0  # though the other one is checked out
    status, said = push(repo, "main:again", "strict")
    assert (status, "blocked by `g`" in said) == (1, True)
    repo.git("checkout", "-q", "main")
    assert push(repo, "strict")[0] == 1
    repo.git("rm", "-q", "gitgates.toml")
    repo.git("commit", "-qm", "none", "--no-verify")
    status, said = push(repo, "main:none")
    assert (status, "no [tool.gitgates] found; nothing was checked" in said) == (0, True)
    assert push(repo, "main:none2", "strict")[0] == 1


def test_local_settings_apply_to_what_is_pushed(repo: Repo) -> None:
    begin(repo, LAX)
    repo.write("gitgates.local.toml", GATE.format("false"))
    repo.write("gitgates.toml", LAX + "# edited\n")
    assert (push(repo)[0], repo.commit("x", "-a").returncode) == (1, 1)


@pytest.mark.samples(2)
@pytest.mark.parametrize("flag", ["sparse", "--assume-unchanged", "--skip-worktree"])
def test_a_push_is_checked_where_all_files_are_as_committed(repo: Repo, flag: str) -> None:
    begin(repo, WHERE, "pre-push")
    repo.write("dir/a", "as committed\n")
    repo.commit_all("files")
    assert str(repo.path) + "\n" in push(repo)[1]
    if flag == "sparse":
        repo.git("sparse-checkout", "set", "other")
    else:
        repo.git("update-index", flag, "dir/a")
        repo.write("dir/a", "another content\n")
    assert repo.git("status", "--porcelain") == ""
    said = push(repo)[1]
    assert f"{IN_CHECKOUT}: git has been told not to look at `dir/a`\n" in said
    assert str(repo.path) + "\n" not in said


# Commits


def test_a_commit_with_a_file_outside_of_a_sparse_checkout_is_checked_out(repo: Repo) -> None:
    show = GATE.format("cat") + "files = ['*/a']\npass_files = true\n"
    begin(repo, show + '[hooks.pre-commit]\ngates = ["g"]\n')
    repo.write("in/a", "one\n")
    repo.write("out/a", "one\n")
    repo.commit_all("files", no_verify=True)
    repo.git("checkout", "-qb", "side")
    repo.write("out/a", "two\n")
    repo.commit_all("two", no_verify=True)
    repo.git("checkout", "-q", "main")
    repo.git("sparse-checkout", "set", "in")
    repo.git("merge", "-q", "--squash", "side")
    status, said = ended(repo, "commit", "-m", "merged")
    assert (status, f"{IN_CHECKOUT}: git has been told not to look at `out/a`" in said) == (0, True)
    repo.write("in/a", "two\n")
    status, said = ended(repo, "commit", "-am", "in")
    assert (status, IN_CHECKOUT in said, "1 gate passed" in said) == (0, False, True)


@pytest.mark.samples(1)
@pytest.mark.parametrize("name", ["gitgates.toml", "pyproject.toml"])
def test_a_link_to_the_configuration_is_followed_in_a_commit(repo: Repo, name: str) -> None:
    prefix = "tool.gitgates." if name == "pyproject.toml" else ""
    texts = {lax: text.replace("[", f"[{prefix}", 1) for lax, text in ((1, LAX), (0, STRICT))}
    texts = {lax: text.replace("\n[hooks", f"\n[{prefix}hooks") for lax, text in texts.items()}
    (repo.path / name).symlink_to("dir/settings.toml")
    repo.write("dir/settings.toml", texts[0])
    repo.git("add", ".")
    repo.shim("pre-commit")
    repo.write("dir/settings.toml", texts[1])  # is not staged
    assert repo.commit().returncode == 1
    repo.git("add", ".")
    assert repo.commit().returncode == 0
    assert b"gated  " in repo.gitgates("verify", "HEAD").stdout


def test_a_link_out_of_the_repository_is_no_configuration_of_a_commit(repo: Repo) -> None:
    repo.path.parent.joinpath("settings.toml").write_text(LAX)
    (repo.path / "gitgates.toml").symlink_to("../settings.toml")
    assert repo.gitgates("run", "pre-commit").returncode == 0
    repo.git("add", ".")
    repo.shim("pre-commit")
    done = repo.commit()
    assert done.returncode == 1
    assert b"gitgates.toml: is a symbolic link to `../settings.toml`, which is not a" in done.stderr
    assert b"link to one of them, or copy it." in done.stderr
    assert b"another one" not in done.stderr


def test_only_the_staged_configuration_can_be_wrong(repo: Repo) -> None:
    begin(repo, LAX, "pre-commit", "commit-msg")
    repo.write("gitgates.toml", LAX + "[[")
    status, said = ended(repo, "commit", "--allow-empty", "-m", "x")
    assert (status, "uncommitted changes, which do not apply" in said) == (0, True)
    assert repo.gitgates("run", "--staged").returncode == 0
    assert repo.gitgates("run", "pre-commit").returncode == 78  # the working tree's
    repo.git("add", ".")
    repo.write("gitgates.toml", LAX)
    for args in (["commit", "-m", "x"], ["commit", "-m", "x", "--allow-empty"]):
        status, said = ended(repo, *args)
        assert status == 1
        assert said.startswith(
            "gitgates: the configuration in what is being committed has problems:\n"
            "gitgates.toml: is not valid TOML"
        )
        assert "The working tree's configuration differs: stage it if it is right." in said
    assert ended(repo, "commit", "-am", "x", "--allow-empty")[0] == 0


def test_a_configuration_that_is_not_added_is_no_part_of_a_commit(repo: Repo) -> None:
    repo.write("gitgates.toml", STRICT)
    repo.shim("pre-commit")
    status, said = ended(repo, "commit", "--allow-empty", "-m", "x")
    assert (status, said) == (0, f"gitgates pre-commit: no [tool.gitgates] {NOT_ADDED}\n")
    repo.git("add", ".")
    assert repo.commit().returncode == 1


def test_a_message_is_judged_by_the_configuration_of_its_commit(repo: Repo) -> None:
    begin(repo, GATE.format("false") + '[hooks.commit-msg]\ngates = ["g"]\n', "commit-msg")
    repo.write("gitgates.toml", LAX)
    assert ended(repo, "commit", "--allow-empty", "-m", "x")[0] == 1
    assert ended(repo, "commit", "-am", "x")[0] == 0


def test_a_push_with_a_submodule_at_another_commit_is_checked_out(
    repo: Repo, tmp_path: Path
) -> None:
    other = Repo.init(tmp_path / "other")
    for text in ("1", "2"):
        other.write("x", text)
        other.commit_all(text)
    repo.git("submodule", "add", "-q", str(other.path), "sub")
    repo.git("config", "submodule.sub.ignore", "all")
    begin(repo, LAX)
    assert IN_CHECKOUT not in push(repo)[1]
    Repo(repo.path / "sub").git("checkout", "-q", "HEAD^")
    said = push(repo, "main:again")[1]
    assert IN_CHECKOUT in said
    assert "gitgates: submodules are not checked out: sub" in said


def test_nor_is_a_repository_in_it_that_is_no_submodule_overlooked(repo: Repo) -> None:
    inner = Repo.init(repo.path / "inner")
    inner.git("commit", "--allow-empty", "-qm", "1")
    repo.git("add", "inner")
    repo.git("config", "diff.ignoreSubmodules", "all")
    begin(repo, LAX)
    assert IN_CHECKOUT not in push(repo)[1]
    inner.git("commit", "--allow-empty", "-qm", "2")
    assert IN_CHECKOUT in push(repo, "main:again")[1]


def test_a_hook_that_is_not_told_the_index_refuses_a_commit_of_another_one(repo: Repo) -> None:
    begin(repo, GATE.format("! git diff --cached | grep bad") + BOTH, "pre-commit")
    hook = repo.path / ".git/hooks/pre-commit"
    os.rename(hook, f"{hook}.real")
    hook.write_text(f'#!/bin/sh\nunset GIT_INDEX_FILE\nexec {hook}.real "$@"\n')
    hook.chmod(0o755)
    repo.write("gitgates.toml", f"{repo.path.joinpath('gitgates.toml').read_text()}# bad\n")
    status, said = ended(repo, "commit", "-am", "x")
    assert (status, "GIT_INDEX_FILE is not set, and git holds" in said) == (1, True)
    assert ended(repo, "commit", "--allow-empty", "-m", "of the usual index")[0] == 0
