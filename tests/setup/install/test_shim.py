"""The installed hook, fired by real git: which interpreter, which earlier hook, and no loops."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from case_support import mixed
from install_support import Repo, make_repo

from gitgates.setup.install.githooks import render

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow  # each makes commits

REFUSES = '[tool.gitgates.gates.g]\ncommand = "echo gate ran >>gate.log; exit 1"\n'
PASSES = '[tool.gitgates.gates.g]\ncommand = "echo gate ran >>gate.log"\n'


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make_repo(tmp_path / "repo", tmp_path / "home")


@pytest.fixture
def awkward(tmp_path: Path) -> Repo:
    """Return a repository whose path needs quoting everywhere."""
    return make_repo(tmp_path / 'it\'s a "$HOME" `repo`', tmp_path / "home")


def install(repo: Repo, *hooks: str, gate: str = PASSES) -> None:
    repo.configure(*hooks, gate=gate)
    code, _, said = repo.gitgates("install-hooks")
    assert (code, said) == (0, "")


def log(repo: Repo) -> list[str]:
    path = repo.path / "gate.log"
    return path.read_text().splitlines() if path.exists() else []


def break_interpreter(repo: Repo, hook: str = "pre-commit") -> None:
    path = repo.hook(hook)
    python = shlex.quote(sys.executable)
    path.write_text(path.read_text().replace(f"python={python}", "python='/no such/python'"))


def path_with(tmp_path: Path, gitgates: str = "") -> str:
    """Return a PATH with git and sh, and a `gitgates` of this text."""
    folder = tmp_path / "bin"
    folder.mkdir()
    if gitgates:
        (folder / "gitgates").write_text(gitgates)
        (folder / "gitgates").chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_a_gate_refuses_and_passes(repo: Repo) -> None:
    install(repo, "pre-commit", gate=REFUSES)
    done = repo.commit("a")
    assert done.returncode == 1
    assert "gitgates pre-commit: blocked" in done.stderr
    install(repo, "pre-commit", gate=PASSES)
    assert repo.commit("b").returncode == 0


def test_paths_that_need_quoting(awkward: Repo, tmp_path: Path) -> None:
    awkward.keep("pre-commit", b"#!/bin/sh\necho kept >>gate.log\n")
    install(awkward, "pre-commit")
    done = awkward.commit("a")
    assert (done.returncode, log(awkward)) == (0, ["kept", "gate ran"])
    break_interpreter(awkward)
    awkward.env["PATH"] = path_with(tmp_path)
    done = awkward.commit("b")
    assert (done.returncode, log(awkward)[2:]) == (1, ["kept"])
    assert done.stderr.startswith(GONE)


GONE = (
    "gitgates pre-commit: nothing was checked: the gitgates that this hook was installed with is "
    "gone\n"
)


def test_an_interpreter_whose_path_needs_quoting(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "it's $(touch bad) \"`python`\n"
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    repo.configure("pre-commit", gate=REFUSES)
    repo.keep("pre-commit", render("pre-commit"))
    repo.env["PATH"] = path_with(tmp_path)
    assert "gitgates pre-commit: blocked" in repo.commit("a").stderr
    assert not (repo.path / "bad").exists()


def test_a_hooks_folder_that_needs_quoting(repo: Repo) -> None:
    (repo.path / "my 'own' hooks").mkdir()
    repo.git("config", "core.hooksPath", "my 'own' hooks")
    repo.write("my 'own' hooks/pre-commit", "#!/bin/sh\necho kept >>gate.log\n", 0o755)
    install(repo, "pre-commit")
    assert repo.commit("a").returncode == 0
    assert log(repo) == ["kept", "gate ran"]


def test_without_its_interpreter_the_gitgates_of_the_path_runs(repo: Repo, tmp_path: Path) -> None:
    install(repo, "pre-commit", gate=REFUSES)
    break_interpreter(repo)
    here = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gitgates "$@"\n'
    repo.write("a", "x")
    repo.git("add", "a")
    done = repo.run("git", "commit", "-qm", "a", PATH=path_with(tmp_path, here))
    assert (done.returncode, log(repo)) == (1, ["gate ran"])
    assert "gitgates pre-commit: blocked" in done.stderr


@pytest.mark.samples(2)
@pytest.mark.parametrize("on_path", ["", "#!/no/such/interpreter\n", "#!/bin/sh\nexit 9\n"])
def test_without_any_gitgates_nothing_is_decided(repo: Repo, tmp_path: Path, on_path: str) -> None:
    install(repo, "pre-commit")
    break_interpreter(repo)
    path = path_with(tmp_path, on_path)
    hook = repo.run(".git/hooks/pre-commit", PATH=path)
    assert (hook.returncode, hook.stdout, hook.stderr) == (
        69,
        "",
        (
            f"{GONE}"
            f"  (/no such/python, {HOME})\n"
            "  Install gitgates again and run: gitgates install-hooks\n"
            "  Or leave the gates out this once: GITGATES=0 git ...\n"
            "  Or take the hook out for good: rm '.git/hooks/pre-commit'\n"
        ),
    )
    repo.write("a", "x")
    repo.git("add", "a")
    assert repo.run("git", "commit", "-qm", "a", PATH=path).returncode == 1
    assert repo.run("git", "commit", "-qm", "a", PATH=path, GITGATES="0").returncode == 0
    assert log(repo) == []


def test_without_any_gitgates_no_command_of_git_is_broken_too_late(
    repo: Repo, tmp_path: Path
) -> None:
    install(repo, "post-checkout")
    break_interpreter(repo, "post-checkout")
    hook = repo.run(".git/hooks/post-checkout", PATH=path_with(tmp_path))
    assert hook.returncode == 0
    assert hook.stderr.startswith("gitgates post-checkout: nothing was checked: ")


HOME = subprocess.run(
    [sys.executable, "-c", "import gitgates,os;print(os.path.dirname(gitgates.__path__[0]))"],
    capture_output=True,
    text=True,
    check=True,
).stdout.strip()


def test_the_off_switch_leaves_the_earlier_hook_on(repo: Repo) -> None:
    repo.keep("pre-commit", b"#!/bin/sh\necho kept >>gate.log\n[ ! -e fail ]\n")
    install(repo, "pre-commit", gate=REFUSES)
    repo.write("a", "x")
    repo.git("add", "a")
    assert repo.run("git", "commit", "-qm", "a", GITGATES="0").returncode == 0
    assert log(repo) == ["kept"]
    repo.write("fail", "")
    again = ("git", "commit", "-q", "--allow-empty", "-m", "b")
    assert repo.run(*again, GITGATES="0").returncode == 1


@pytest.mark.parametrize("mode", [0o755, 0o644])
def test_an_earlier_hooks_failure_counts_and_the_gates_still_run(repo: Repo, mode: int) -> None:
    repo.keep("pre-commit", b"#!/bin/sh\necho kept >>gate.log\nexit 3\n", mode)
    install(repo, "pre-commit")
    done = repo.commit("a")
    if mode == 0o644:
        assert (done.returncode, log(repo)) == (0, ["gate ran"])
        return
    assert (done.returncode, log(repo)) == (1, ["kept", "gate ran"])
    assert "gitgates: pre-commit.before-gitgates failed (exit status 3)\n" in done.stderr


def test_an_earlier_hook_without_a_first_line_runs_as_git_runs_it(repo: Repo) -> None:
    repo.keep("pre-commit", b"echo kept >>gate.log\n")
    install(repo, "pre-commit")
    assert repo.commit("a").returncode == 0
    assert repo.run("git", "commit", "-qm", "b", "--allow-empty", GITGATES="0").returncode == 0
    assert log(repo) == ["kept", "gate ran", "kept"]


@pytest.mark.samples(3)
@pytest.mark.parametrize(
    ("first", "off"),
    mixed(
        (
            "#!/bin/sh -e",
            "#! /usr/bin/env -S bash -e -u",
            "#!/bin/bash",
            "#!/bin/sh",
            "#!/usr/bin/env sh",
        ),
        ("", "0"),
    ),
)
def test_an_earlier_hook_of_a_shell_has_its_own_name(repo: Repo, first: str, off: str) -> None:
    # As husky's do: what runs is what the name of the hook says, in a file beside it.
    repo.keep("commit-msg", f'{first}\nwith=it\n. "$(dirname "$0")/h"\n'.encode())
    script = 'echo "$(basename "$0") $# ${1##*/} $-" >>gate.log; exit 3\n'
    repo.keep("h", script.encode(), 0o644)
    install(repo, "commit-msg")
    repo.write("a", "x")
    repo.git("add", "a")
    done = repo.run("git", "commit", "-qm", "a", GITGATES=off)
    assert done.returncode == 1
    said, *gates = log(repo)
    assert said.startswith("commit-msg 1 COMMIT_EDITMSG ")
    assert {flag[1:] for flag in first.split() if flag in ("-e", "-u")} <= set(said.split()[-1])
    assert gates == ([] if off else ["gate ran"])


@pytest.mark.samples(3)
@pytest.mark.parametrize(
    ("script", "off"),
    mixed(
        (
            # Each needs the path of its own file, and gets it: it is executed as it is.
            '[ "$0" = "$BASH_SOURCE" ] && echo main >>gate.log',
            "readlink",  # through a link to a folder of scripts
            '[ "$again" ] || { export again=1; exec "$0" "$@"; }\necho main >>gate.log',
            'tail -n 1 "$0" | cut -d: -f2 >>gate.log; exit\n:main',
        ),
        ("", "0"),
    ),
)
def test_an_earlier_hook_that_opens_itself(repo: Repo, script: str, off: str) -> None:
    repo.keep("pre-commit", f"#!/bin/bash\n{script}\n".encode())
    if "readlink" in script:
        repo.write(
            "scripts/it/pre-commit",
            '#!/bin/bash\ncd "$(dirname "$(readlink -f "$0")")"\nsh ../aside\n',
            0o755,
        )
        repo.write("scripts/aside", f"echo main >>'{repo.path}/gate.log'\n")
        repo.hook("pre-commit").unlink()
        repo.hook("pre-commit").symlink_to("../../scripts/it/pre-commit")
    install(repo, "pre-commit")
    repo.write("a", "x")
    repo.git("add", "a")
    assert repo.run("git", "commit", "-qm", "a", GITGATES=off).returncode == 0
    assert log(repo)[0] == "main"


@pytest.mark.samples(1)
@pytest.mark.parametrize("name", ["pre-commit", "prek"])
def test_the_framework_that_runs_us_is_not_started_again(repo: Repo, name: str) -> None:
    install(repo, "pre-commit")
    head = {"pre-commit": "pre-commit: https://pre-commit.com", "prek": "prek: https://x"}[name]
    variable = f"{name.upper().replace('-', '_')}_RUNNING_LEGACY"
    repo.write(f".git/hooks/{KEPT}", f"#!/bin/sh\n# File generated by {head}\nexit 1\n", 0o755)
    assert repo.run(".git/hooks/pre-commit").returncode == 1
    assert repo.run(".git/hooks/pre-commit", **{variable: "1"}).returncode == 0
    assert repo.run(".git/hooks/pre-commit", **{variable: "1"}, GITGATES="0").returncode == 0
    # Any other hook that was there before is run.
    repo.write(f".git/hooks/{KEPT}", "#!/bin/sh\nexit 1\n", 0o755)
    assert repo.run(".git/hooks/pre-commit", **{variable: "1"}).returncode == 1


KEPT = "pre-commit.before-gitgates"


def test_an_earlier_hook_gets_arguments_input_and_environment(repo: Repo, tmp_path: Path) -> None:
    script = b'#!/bin/sh\n{ echo "$@"; cat; echo "$MINE/$GIT_PREFIX"; } >>gate.log\n'
    repo.keep("pre-push", script)
    repo.git("init", "-q", "--bare", tmp_path / "far.git")
    install(repo, "pre-push")
    assert repo.commit("a").returncode == 0
    tip = repo.git("rev-parse", "HEAD")
    far = str(tmp_path / "far.git")
    zeros = "0" * 40
    expected = [f"{far} {far}", f"refs/heads/main {tip} refs/heads/main {zeros}", "mine/"]
    done = repo.run("git", "push", far, "main", MINE="mine")
    assert (done.returncode, log(repo)) == (0, [*expected, "gate ran"]), done.stderr
    # Also without gates, and without gitgates: the earlier hook is as it was.
    repo.git("push", "-q", "--no-verify", far, ":main")
    assert repo.run("git", "push", far, "main", MINE="mine", GITGATES="0").returncode == 0
    assert log(repo)[4:] == expected
    break_interpreter(repo, "pre-push")
    repo.git("push", "-q", "--no-verify", far, ":main")
    path = path_with(tmp_path)
    done = repo.run("git", "push", far, "main", MINE="mine", PATH=path)
    assert (done.returncode, log(repo)[7:]) == (1, expected)


def test_an_earlier_hook_that_does_not_read_a_long_input(repo: Repo) -> None:
    repo.keep("pre-push", b"#!/bin/sh\nexit 0\n")
    install(repo, "pre-push")
    repo.commit("a")
    tip = repo.git("rev-parse", "HEAD")
    lines = "".join(f"refs/heads/b{n} {tip} refs/heads/b{n} {tip}\n" for n in range(3000))
    done = repo.run(".git/hooks/pre-push", "origin", "url", stdin=lines)
    assert (done.returncode, log(repo)) == (0, ["gate ran"])


@pytest.mark.samples(4)
@pytest.mark.parametrize(
    ("back", "how"),
    mixed(
        (
            "gitgates git-hook x pre-commit",
            ".git/hooks/pre-commit",
            "cd .git/hooks && ./pre-commit",
            'exec "$(pwd)/.git/hooks/pre-commit"',
            "exec .git/hooks/pre-commit",
            "cd .git/hooks && sh pre-commit",
        ),
        ("on", "off", "gone"),
    ),
)
def test_an_earlier_hook_that_calls_us_back(
    repo: Repo, tmp_path: Path, back: str, how: str
) -> None:
    script = f"#!/bin/sh\ncd {repo.path}\necho kept >>gate.log\n{back}\n"
    repo.keep("pre-commit", script.encode())
    install(repo, "pre-commit")
    off = {"GITGATES": "0"} if how == "off" else {}
    here = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gitgates "$@"\n'
    if how == "gone":
        break_interpreter(repo)
        here = "#!/bin/sh\nexit 9\n"
    repo.write("a", "x")
    repo.git("add", "a")
    done = repo.run("git", "commit", "-qm", "a", PATH=path_with(tmp_path, here), **off)
    assert done.returncode == (1 if how == "gone" else 0), done.stderr
    assert log(repo).count("gate ran") == (1 if how == "on" else 0)
    assert 1 <= log(repo).count("kept") <= 3


def test_another_manager_that_renames_the_shim(repo: Repo) -> None:
    repo.keep("pre-commit", b"#!/bin/sh\necho kept >>gate.log\n")
    install(repo, "pre-commit")
    repo.hook("pre-commit").rename(repo.hook("pre-commit.legacy"))
    repo.keep("pre-commit", b'#!/bin/sh\nexec "$0.legacy" "$@"\n')
    assert repo.commit("a").returncode == 0
    assert log(repo) == ["kept", "gate ran"]


def test_a_linked_worktree_and_a_bare_repository(repo: Repo, tmp_path: Path) -> None:
    install(repo, "pre-commit")
    assert repo.run("git", "commit", "-qm", "a").returncode == 0
    repo.git("worktree", "add", "-q", tmp_path / "linked")
    linked = repo._replace(path=tmp_path / "linked")
    assert linked.commit("b").returncode == 0
    assert log(linked) == ["gate ran"]

    repo.git("init", "-q", "--bare", tmp_path / "dot.git")
    env = {"GIT_DIR": str(tmp_path / "dot.git"), "GIT_WORK_TREE": str(linked.path)}
    assert linked.gitgates("install-hooks", **env)[0] == 0
    linked.git("add", "b", "pyproject.toml", **env)
    assert linked.run("git", "commit", "-qm", "b", **env).returncode == 0
    assert log(linked) == ["gate ran", "gate ran"]


def test_a_merge_runs_the_gates_of_pre_commit(repo: Repo) -> None:
    repo.commit("a")
    repo.git("switch", "-qc", "side")
    repo.commit("b")
    repo.git("switch", "-q", "main")
    repo.commit("c")
    install(repo, "pre-commit", gate=REFUSES)
    repo.git("commit", "-qnm", "gate")
    done = repo.run("git", "merge", "-q", "--no-edit", "side")
    assert (done.returncode, log(repo)) == (1, ["gate ran"])
    assert "gitgates pre-merge-commit: blocked" in done.stderr


@pytest.mark.parametrize("shell", ["dash", "bash --posix"])
def test_shells_find_no_fault_with_it(repo: Repo, shell: str) -> None:
    install(repo, "pre-commit")
    subprocess.run([*shell.split(), "-n", repo.hook("pre-commit")], check=True)
