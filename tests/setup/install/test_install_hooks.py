"""install-hooks and uninstall-hooks: the right hooks, and all that was there comes back."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from install_support import FOREIGN, STATE, Repo, make_repo

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow  # each starts an interpreter or two

KEPT = "pre-push.before-gitgates"
NOT = "not executable), nor does gitgates"


def state(path: Path) -> tuple[bytes, int]:
    return path.read_bytes(), path.stat().st_mode & 0o7777


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = make_repo(tmp_path / "repo", tmp_path / "home")
    repo.configure("pre-commit", "pre-push")
    return repo


def test_installs_what_is_configured_and_says_so_when_done_again(repo: Repo) -> None:
    first = repo.gitgates("install-hooks")
    assert first == (
        0,
        (
            ".git/hooks/pre-commit: installed\n"
            ".git/hooks/pre-merge-commit: installed\n"
            ".git/hooks/pre-push: installed\n"
        ),
        "",
    )
    assert repo.hooks() == ["pre-commit", "pre-merge-commit", "pre-push"]
    assert repo.hook("pre-commit").stat().st_mode & 0o777 == 0o755

    again = repo.gitgates("install-hooks")
    assert again == (0, first[1].replace("installed", "already installed"), "")

    changed = repo.hook("pre-push").read_bytes()
    repo.hook("pre-push").write_bytes(changed.replace(b"python=", b"python=/gone"))
    repo.hook("pre-commit").chmod(0o644)
    code, said, _ = repo.gitgates("install-hooks")
    assert (code, said) == (
        0,
        (
            ".git/hooks/pre-commit: updated\n"
            ".git/hooks/pre-merge-commit: already installed\n"
            ".git/hooks/pre-push: updated\n"
        ),
    )
    assert repo.hook("pre-push").read_bytes() == changed
    assert repo.hook("pre-commit").stat().st_mode & 0o777 == 0o755


def test_uninstalls_without_a_configuration(repo: Repo) -> None:
    repo.gitgates("install-hooks")
    (repo.path / "pyproject.toml").unlink()
    assert repo.gitgates("uninstall-hooks") == (
        0,
        (
            ".git/hooks/pre-commit: removed\n"
            ".git/hooks/pre-merge-commit: removed\n"
            ".git/hooks/pre-push: removed\n" + STATE.format(".git/gitgates")
        ),
        "",
    )
    assert repo.hooks() == []
    assert repo.gitgates("uninstall-hooks") == (
        0,
        f"gitgates: no gitgates hooks in {repo.path}/.git/hooks\n" + STATE.format(".git/gitgates"),
        "",
    )


def test_named_hooks_need_no_configuration(repo: Repo) -> None:
    (repo.path / "pyproject.toml").unlink()
    code, said, _ = repo.gitgates("install-hooks", "-t", "commit-msg", "--hook-type=post-commit")
    assert (code, said) == (
        0,
        ".git/hooks/commit-msg: installed\n.git/hooks/post-commit: installed\n",
    )


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ("pre-comit", "`pre-comit` is not a hook of git\n  Did you mean `pre-commit`?"),
        ("xyz", "`xyz` is not a hook of git\n  For a list, see: git help hooks"),
        ("update", "`update` runs no gates in a clone: skipped"),
        ("manual", "`manual` is not run by git, so there is nothing to install"),
        ("Stop", "`Stop` is not run by git, so there is nothing to install"),
        ("fsmonitor-watchman", "`fsmonitor-watchman` runs no gates in a clone: skipped"),
    ],
)
def test_refuses_what_is_no_hook_of_people(repo: Repo, hook: str, said: str) -> None:
    assert repo.gitgates("install-hooks", "-t", hook) == (64, "", f"gitgates: {said}\n")
    assert repo.hooks() == []


def test_nothing_configured(repo: Repo) -> None:
    repo.configure("manual", "pre-receive")
    assert repo.gitgates("install-hooks") == (
        78,
        "",
        (
            "gitgates: the configuration defines no git hook to install\n"
            "  `pre-receive` runs no gates in a clone: skipped\n"
            '  Add one, for example: [tool.gitgates.hooks.pre-commit] with gates = ["..."]\n'
            "  Or name it: gitgates install-hooks --hook-type pre-commit\n"
        ),
    )
    (repo.path / "pyproject.toml").unlink()
    own = repo.write("gitgates.toml", "jobs = 1\n")
    said = repo.gitgates("install-hooks")[2]
    assert (
        "  To propose some: gitgates init\n  Add one, for example: [hooks.pre-commit] with" in said
    )
    own.unlink()
    code, _, said = repo.gitgates("install-hooks")
    assert code == 78
    assert "gitgates init" in said


def test_a_configured_server_side_hook_is_said_to_be_left_out(repo: Repo) -> None:
    repo.configure("pre-push", "pre-receive", "Stop")
    assert repo.gitgates("install-hooks") == (
        0,
        (
            ".git/hooks/pre-push: installed\n"
            "gitgates: `pre-receive` runs no gates in a clone: skipped\n"
            "gitgates: to install the hooks of Claude Code: "
            "gitgates install-hooks --agent claude\n"
        ),
        "",
    )


@pytest.mark.samples(1)
@pytest.mark.parametrize("mode", [0o755, 0o700, 0o555, 0o644])
def test_a_foreign_hook_comes_back_byte_for_byte(repo: Repo, mode: int) -> None:
    content = b"#!/bin/sh\n\xff\xfe no newline at the end"
    repo.keep("pre-push", content, mode)
    code, said, _ = repo.gitgates("install-hooks", "-t", "pre-push")
    how = "runs first" if mode & 1 or mode == 0o700 else None
    expected = f"runs first: {KEPT}" if how else f"is kept; git did not run it ({NOT}: {KEPT}"
    assert (code, said) == (
        0,
        f".git/hooks/pre-push: installed; the existing hook {expected}\n",
    )
    assert state(repo.hook(KEPT)) == (content, mode)
    # Done again, the kept hook stays what it is.
    assert repo.gitgates("install-hooks", "-t", "pre-push")[1] == (
        ".git/hooks/pre-push: already installed\n"
    )
    assert state(repo.hook(KEPT)) == (content, mode)

    assert repo.gitgates("uninstall-hooks") == (
        0,
        (
            ".git/hooks/pre-push: removed; the previous hook was restored "
            "(pre-push.before-gitgates)\n"
        ),
        "",
    )
    assert repo.hooks() == ["pre-push"]
    assert state(repo.hook("pre-push")) == (content, mode)


KEPT = "pre-push.before-gitgates"
NOT = "not executable), nor does gitgates"


@pytest.mark.parametrize("target", ["../../elsewhere", "/nowhere/at/all"])
def test_a_link_is_moved_as_a_link(repo: Repo, target: str) -> None:
    repo.write("elsewhere", FOREIGN, 0o755)
    repo.hook("pre-push").symlink_to(target)
    repo.gitgates("install-hooks", "-t", "pre-push")
    assert os.readlink(repo.hook(KEPT)) == target
    assert not repo.hook("pre-push").is_symlink()
    repo.gitgates("uninstall-hooks")
    assert os.readlink(repo.hook("pre-push")) == target
    assert repo.hooks() == ["pre-push"]
    assert (repo.path / "elsewhere").read_bytes() == FOREIGN


def test_a_link_to_a_shim_of_ours_is_not_ours(repo: Repo) -> None:
    repo.gitgates("install-hooks", "-t", "pre-push")
    shim = repo.hook("pre-push").read_bytes()
    repo.hook("pre-push").rename(repo.path / "shared")
    repo.hook("pre-push").symlink_to("../../shared")
    repo.gitgates("install-hooks", "-t", "pre-push")
    repo.gitgates("uninstall-hooks")
    assert os.readlink(repo.hook("pre-push")) == "../../shared"
    assert (repo.path / "shared").read_bytes() == shim


def test_a_folder_in_a_hooks_place_is_moved_and_comes_back(repo: Repo) -> None:
    (repo.hook("pre-push") / "inside").mkdir(parents=True)
    repo.gitgates("install-hooks", "-t", "pre-push")
    assert repo.hook("pre-push").is_file()
    repo.gitgates("uninstall-hooks")
    assert (repo.hook("pre-push") / "inside").is_dir()


@pytest.mark.parametrize(
    "content",
    [
        b'#!/bin/sh\ncd "$(dirname "$(readlink -f "$0")")" && ./run "$(basename "$0")"\n',
        b"#!/usr/bin/env bash\ncase ${BASH_SOURCE##*/} in pre-push) exit 1 ;; esac\n",
        b"#!/usr/bin/env python3\nimport sys\nprint(sys.argv[0])\n",
        b"#!/usr/bin/env ruby\nhook = File.basename($0)\n",
        b'exec other "$(basename "$0")"\n',
    ],
)
def test_a_hook_that_needs_its_name_and_cannot_have_it_is_refused(
    repo: Repo, content: bytes
) -> None:
    repo.keep("pre-push", content)
    code, out, said = repo.gitgates("install-hooks", "-t", "pre-commit", "-t", "pre-push")
    assert (code, out) == (73, "")
    assert "depends on its own name ($0), and would be renamed" in said
    assert f"{repo.path}/.git/hooks/pre-push\n" in said
    assert '    gitgates git-hook --via=own pre-push "$@"\n' in said
    assert repo.hooks() == ["pre-push"]
    assert repo.gitgates("install-hooks", "-t", "pre-push", "--force")[0] == 0
    assert state(repo.hook(KEPT)) == (content, 0o755)


def test_two_foreign_hooks_are_never_put_upon_each_other(repo: Repo) -> None:
    repo.gitgates("install-hooks", "-t", "pre-push", "-t", "commit-msg")
    shim = repo.hook("commit-msg").read_bytes()
    repo.keep("pre-push", b"#!/bin/sh\n# newer\n")
    repo.keep(KEPT, b"#!/bin/sh\n# older\n", 0o700)
    repo.hook("commit-msg").write_bytes(shim + b"\n")
    code, out, said = repo.gitgates("install-hooks", "-t", "pre-push", "-t", "commit-msg")
    hooks = f"{repo.path}/.git/hooks"
    assert (code, out, said) == (
        73,
        "",
        (
            "gitgates: another hook is in place, and an earlier one is already kept; nothing "
            "was changed:\n"
            f"  {hooks}/pre-push\n  {hooks}/{KEPT}\n"
            "  Look at both, and remove the one that you no longer need.\n"
        ),
    )
    assert repo.hook("commit-msg").read_bytes() == shim + b"\n"  # nothing at all was changed

    # Uninstalling touches neither.
    assert repo.gitgates("uninstall-hooks")[1] == (
        ".git/hooks/commit-msg: removed\n"
        f".git/hooks/pre-push: not a gitgates hook, left unchanged; so is {KEPT} next to it\n"
    )
    assert repo.gitgates("install-hooks", "-t", "pre-push", "--force")[0] == 73


def test_a_hook_that_its_manager_has_written_again_is_no_other_hook(repo: Repo) -> None:
    text = b"#!/bin/sh\n# File generated by pre-commit: https://pre-commit.com\n"
    for _ in range(2):
        repo.keep("pre-push", text)  # over ours
        code, out, _ = repo.gitgates("install-hooks", "-t", "pre-push")
        assert (code, out.partition(";")[0]) == (0, ".git/hooks/pre-push: installed")
    assert repo.hooks() == ["pre-push", KEPT]
    repo.keep("pre-push", text + b"# newer\n")
    code, _, said = repo.gitgates("install-hooks", "-t", "pre-push")
    assert code == 73
    assert "  Look at both" in said


def test_a_shim_that_somebody_removed_still_gives_the_kept_hook_back(repo: Repo) -> None:
    repo.keep("pre-push")
    repo.gitgates("install-hooks", "-t", "pre-push")
    repo.hook("pre-push").unlink()
    assert repo.gitgates("uninstall-hooks")[1] == (
        f".git/hooks/pre-push: was already removed; the previous hook was restored ({KEPT})\n"
    )
    assert state(repo.hook("pre-push")) == (FOREIGN, 0o755)


def test_hooks_that_are_not_ours_are_not_touched(repo: Repo) -> None:
    repo.keep("commit-msg", b"#!/bin/sh\n# Installed by gitgates, says another\n")
    before = state(repo.hook("commit-msg"))
    assert repo.gitgates("uninstall-hooks")[0] == 0
    assert state(repo.hook("commit-msg")) == before


def test_a_missing_hooks_folder_is_made(repo: Repo) -> None:
    subprocess.run(["rm", "-r", repo.path / ".git/hooks"], check=True)
    assert repo.gitgates("install-hooks")[0] == 0
    assert repo.hooks() == ["pre-commit", "pre-merge-commit", "pre-push"]


def test_a_hooks_folder_that_is_a_file_is_refused(repo: Repo) -> None:
    subprocess.run(["rm", "-r", repo.path / ".git/hooks"], check=True)
    (repo.path / ".git/hooks").write_text("")
    code, _, said = repo.gitgates("install-hooks")
    assert (code, said) == (
        74,
        (
            f"gitgates: {repo.path}/.git/hooks: is not a folder, so git runs no hooks\n"
            f"  Look at it with: ls -ld {repo.path}/.git/hooks\n"
        ),
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(repo: Repo) -> None:
    (repo.path / ".git/hooks").chmod(0o555)
    assert repo.gitgates("install-hooks")[0] == 73


def test_outside_a_repository_and_in_a_bare_one(repo: Repo, tmp_path: Path) -> None:
    for verb in ("install-hooks", "uninstall-hooks"):
        code, _, said = repo._replace(path=tmp_path).gitgates(verb)
        assert code == 74
        assert "not a git repository" in said
    repo.git("init", "-q", "--bare", str(tmp_path / "bare.git"))
    code, _, said = repo._replace(path=tmp_path / "bare.git").gitgates("install-hooks")
    assert code == 74
    assert "no working tree" in said


def test_from_a_folder_below_the_root(repo: Repo) -> None:
    (repo.path / "sub").mkdir()
    code, said, _ = repo._replace(path=repo.path / "sub").gitgates("install-hooks")
    assert (code, said.splitlines()[0]) == (0, ".git/hooks/pre-commit: installed")
