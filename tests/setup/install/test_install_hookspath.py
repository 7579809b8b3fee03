"""Where hooks are installed, for every way in which core.hooksPath can be set."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from install_support import STATE, Repo, make_repo

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow  # each starts an interpreter or two

LOCAL = "(local setting, .git/config)"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = make_repo(tmp_path / "repo", tmp_path / "home")
    repo.configure("pre-push")
    return repo


def refused(repo: Repo, said: str, *args: str, **env: str) -> None:
    before = repo.hooks()
    assert repo.gitgates("install-hooks", *args, **env) == (74, "", f"gitgates: {said}\n")
    assert repo.hooks() == before


def test_a_local_folder_is_used_and_said(repo: Repo) -> None:
    (repo.path / ".my hooks").mkdir()
    repo.git("config", "core.hooksPath", ".my hooks")
    assert repo.gitgates("install-hooks") == (
        0,
        (
            ".my hooks/pre-push: installed\n"
            f"gitgates: core.hooksPath is `.my hooks` {LOCAL}: hooks are installed there\n"
        ),
        "",
    )
    assert repo.hooks(".my hooks") == ["pre-push"]
    assert repo.hooks() == []
    assert repo.gitgates("uninstall-hooks") == (
        0,
        ".my hooks/pre-push: removed\n" + STATE.format(".git/gitgates"),
        "",
    )


def test_a_local_folder_outside_of_the_working_tree(repo: Repo, tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    repo.git("config", "core.hooksPath", hooks)
    sub = repo.path / "sub"
    sub.mkdir()
    assert repo._replace(path=sub).gitgates("install-hooks") == (
        0,
        (
            f"{hooks}/pre-push: installed\n"
            f"gitgates: core.hooksPath is `{hooks}` {LOCAL}: hooks are installed there\n"
        ),
        "",
    )


def test_what_was_installed_before_the_setting_is_taken_out_too(repo: Repo) -> None:
    repo.gitgates("install-hooks")
    (repo.path / "h").mkdir()
    repo.git("config", "core.hooksPath", "h")
    repo.gitgates("install-hooks")
    assert repo.gitgates("uninstall-hooks")[1] == (
        "h/pre-push: removed\n.git/hooks/pre-push: removed\n" + STATE.format(".git/gitgates")
    )


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_local_folder_that_is_not_there(repo: Repo, force: tuple[str, ...]) -> None:
    repo.git("config", "core.hooksPath", "no where")
    said = (
        f"core.hooksPath is `no where` {LOCAL}: that folder does not exist, so git runs no hooks"
        "\n  Unset it: git config --unset-all core.hooksPath"
    )
    refused(repo, said, *force)
    mend = said.partition("Unset it: ")[2].partition("\n")[0]
    subprocess.run(mend, shell=True, check=True, cwd=repo.path, env=repo.env)
    assert repo.gitgates("install-hooks")[:2] == (0, ".git/hooks/pre-push: installed\n")


@pytest.mark.parametrize("value", ["/dev/null", "pyproject.toml", ""])
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_path_that_is_no_folder(repo: Repo, value: str, force: tuple[str, ...]) -> None:
    repo.git("config", "core.hooksPath", value)
    refused(
        repo,
        f"core.hooksPath is `{value}` {LOCAL}: that is not a folder, so git runs no hooks"
        "\n"
        "  Unset it: git config --unset-all core.hooksPath",
        *force,
    )
    assert repo.gitgates("uninstall-hooks")[0] == 0


def test_a_global_folder_is_refused_unless_forced(repo: Repo, tmp_path: Path) -> None:
    hooks = tmp_path / "home/hooks"
    hooks.mkdir()
    repo.git("config", "--global", "core.hooksPath", "~/hooks")
    config = repo.env["GIT_CONFIG_GLOBAL"]
    where = f"core.hooksPath is `~/hooks` (global setting, {config})"
    refused(
        repo,
        f"{where}: git uses that hooks folder instead of .git/hooks, in every repository that "
        "this setting applies to"
        "\n"
        f"  Unset it: git config --file {config} --unset-all core.hooksPath\n"
        "  Or use .git/hooks for this repository: git config core.hooksPath "
        '"$(git rev-parse --path-format=absolute --git-common-dir)/hooks"\n'
        "  Or install into that folder anyway: gitgates install-hooks --force",
    )
    assert list(hooks.iterdir()) == []

    assert repo.gitgates("install-hooks", "--force") == (
        0,
        (f"{hooks}/pre-push: installed\ngitgates: {where}: hooks are installed there\n"),
        "",
    )
    assert repo.gitgates("uninstall-hooks") == (
        0,
        (
            f"gitgates: {where}: other repositories also run pre-push there\n"
            "  To remove them anyway: gitgates uninstall-hooks --force\n"
            + STATE.format(".git/gitgates")
        ),
        "",
    )
    assert (hooks / "pre-push").exists()
    assert repo.gitgates("uninstall-hooks", "--force")[:2] == (
        0,
        f"{hooks}/pre-push: removed\n" + STATE.format(".git/gitgates"),
    )


def test_a_repository_can_go_its_own_way_under_a_global_setting(repo: Repo) -> None:
    repo.git("config", "--global", "core.hooksPath", "/usr/share/hooks")
    command = repo.gitgates("install-hooks")[2].partition("for this repository: ")[2]
    subprocess.run(command.splitlines()[0], shell=True, check=True, cwd=repo.path, env=repo.env)
    assert repo.gitgates("install-hooks")[:2] == (
        0,
        (
            ".git/hooks/pre-push: installed\n"
            f"gitgates: core.hooksPath is `{repo.path}/.git/hooks` {LOCAL}: hooks are "
            "installed there\n"
        ),
    )


def test_a_setting_of_the_command_is_refused(repo: Repo, tmp_path: Path) -> None:
    env = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": str(tmp_path),
    }
    refused(
        repo,
        f"core.hooksPath is `{tmp_path}` (command setting, command line): git uses that hooks "
        "folder instead of .git/hooks, in every repository that this setting applies to"
        "\n"
        "  Unset it: remove `git -c core.hooksPath=...`, or the GIT_CONFIG_* variables that set it"
        "\n"
        "  Or use .git/hooks for this repository: git config core.hooksPath "
        '"$(git rev-parse --path-format=absolute --git-common-dir)/hooks"\n'
        "  Or install into that folder anyway: gitgates install-hooks --force",
        **env,
    )


def test_an_included_file_is_named(repo: Repo) -> None:
    repo.write("more.cfg", "[core]\n\thooksPath = gone\n")
    repo.git("config", "include.path", "../more.cfg")
    said = repo.gitgates("install-hooks")[2]
    assert "core.hooksPath is `gone` (local setting, .git/../more.cfg)" in said
    assert "git config --file .git/../more.cfg --unset-all core.hooksPath" in said


def test_a_setting_without_a_value(repo: Repo) -> None:
    with (repo.path / ".git/config").open("a") as file:
        file.write("[core]\n\thooksPath\n")
    code, _, said = repo.gitgates("install-hooks")
    assert code == 74
    assert "git config --unset-all core.hooksPath" in said
    repo.git("config", "--unset-all", "core.hooksPath")
    assert repo.gitgates("install-hooks")[0] == 0


def test_worktrees_share_their_hooks(repo: Repo, tmp_path: Path) -> None:
    assert repo.commit("pyproject.toml", (repo.path / "pyproject.toml").read_text()).returncode == 0
    subprocess.run(["rm", "-r", repo.path / ".git/hooks"], check=True)
    repo.git("worktree", "add", "-q", tmp_path / "linked")
    linked = repo._replace(path=tmp_path / "linked")
    assert linked.gitgates("install-hooks") == (
        0,
        f"{repo.path}/.git/hooks/pre-push: installed\n",
        "",
    )
    assert repo.gitgates("uninstall-hooks")[1] == (
        ".git/hooks/pre-push: removed\n" + STATE.format(".git/worktrees/linked/gitgates")
    )


def test_a_worktrees_own_setting(repo: Repo, tmp_path: Path) -> None:
    assert repo.commit("pyproject.toml", (repo.path / "pyproject.toml").read_text()).returncode == 0
    repo.git("worktree", "add", "-q", tmp_path / "linked")
    linked = repo._replace(path=tmp_path / "linked")
    linked.git("config", "extensions.worktreeConfig", "true")
    linked.git("config", "--worktree", "core.hooksPath", "own")
    config = f"{repo.path}/.git/worktrees/linked/config.worktree"
    where = f"core.hooksPath is `own` (worktree setting, {config})"
    assert linked.gitgates("install-hooks") == (
        74,
        "",
        (
            f"gitgates: {where}: that folder does not exist, so git runs no hooks\n"
            f"  Unset it: git config --file {config} --unset-all core.hooksPath\n"
        ),
    )
    (linked.path / "own").mkdir()
    assert linked.gitgates("install-hooks") == (
        0,
        (f"own/pre-push: installed\ngitgates: {where}: hooks are installed there\n"),
        "",
    )
    assert repo.gitgates("install-hooks")[1] == ".git/hooks/pre-push: installed\n"


def test_a_submodule_has_hooks_of_its_own(repo: Repo, tmp_path: Path) -> None:
    repo.commit("a")
    repo.git("init", "-q", "-b", "main", tmp_path / "outer")
    outer = repo._replace(path=tmp_path / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", repo.path, "sub")
    sub = repo._replace(path=outer.path / "sub")
    assert sub.gitgates("install-hooks", "-t", "pre-push") == (
        0,
        f"{outer.path}/.git/modules/sub/hooks/pre-push: installed\n",
        "",
    )


def test_a_bare_repository_with_a_working_tree_elsewhere(repo: Repo, tmp_path: Path) -> None:
    repo.git("init", "-q", "--bare", tmp_path / "dot.git")
    env = {"GIT_DIR": str(tmp_path / "dot.git"), "GIT_WORK_TREE": str(repo.path)}
    assert repo.gitgates("install-hooks", **env) == (
        0,
        f"{tmp_path}/dot.git/hooks/pre-push: installed\n",
        "",
    )
    assert repo.hooks() == []
    assert repo.gitgates("uninstall-hooks", **env)[1] == (
        f"{tmp_path}/dot.git/hooks/pre-push: removed\n"
        + STATE.format(tmp_path / "dot.git/gitgates")
    )
