"""A gate that runs the hooks of .pre-commit-config.yaml, through the real pre-commit and prek."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest
from install_support import BIN, Repo, make_repo

pytestmark = pytest.mark.slow  # each starts pre-commit

HOOK = (
    "{{id: {id}, name: {id}, language: system, entry: ./hook {id}, require_serial: true, "
    "stages: [{stages}]}}"
)
# Notes its arguments and what it finds in the working tree, and fails where a file says BAD.
SCRIPT = """\
#!/bin/sh
{ printf '<%s>' "$@"; cat unstaged 2>/dev/null || echo; } >>"$LOG"
shift
! grep -n ^BAD "$@"
"""
STAGES = "pre-commit, commit-msg, pre-push"


with_prek = pytest.mark.parametrize(
    "runner",
    [pytest.param("pre-commit", marks=pytest.mark.thorough), "prek"],
    indirect=True,
)


@pytest.fixture(params=["prek", "pre-commit"])  # the second starts Python
def runner(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = make_repo(tmp_path / "repo", tmp_path / "home")
    repo.env["LOG"] = str(tmp_path / "log")
    repo.env["PATH"] = os.pathsep.join(
        folder for folder in os.environ["PATH"].split(":") if Path(folder) != BIN
    )
    repo.write("hook", SCRIPT, 0o755)
    repo.write("unstaged", "as committed\n")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "start")
    return repo


def configure(
    repo: Repo, runner: str, *hooks: str, gate: str = "true", stages: str = STAGES
) -> None:
    repo.write(
        ".pre-commit-config.yaml", "repos: [{repo: local, hooks: [\n" + ",\n".join(hooks) + "]}]\n"
    )
    settings = f'[tool.gitgates.gates.g]\npre-commit = {gate}\nrunner = "{runner}"\n'
    repo.configure(*stages.split(", "), gate=settings)
    repo.git("add", "-A")
    repo.git("commit", "-qm", "configure")
    assert repo.gitgates("install-hooks")[0] == 0
    repo.write("unstaged", "not staged\n")


def log(repo: Repo) -> list[str]:
    path = Path(repo.env["LOG"])
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


@pytest.mark.samples(1)
@pytest.mark.parametrize("runner", ["pre-commit", "prek"], indirect=True)
def test_hooks_run_on_what_is_committed(repo: Repo, runner: str) -> None:
    configure(repo, runner, HOOK.format(id="one", stages=STAGES))
    done = repo.commit("c d", "BAD\n")
    assert done.returncode == 1
    assert log(repo) == ["<one><c d>as committed"]
    assert "gitgates pre-commit: blocked by `g`" in done.stderr
    assert "1:BAD" in done.stderr
    assert (repo.path / "unstaged").read_text() == "not staged\n"
    assert repo.commit("c d", "fine\n").returncode == 0
    assert log(repo) == ["<one><c d>as committed", "<one><.git/COMMIT_EDITMSG>not staged"]


@pytest.mark.samples(1)
def test_a_message(repo: Repo, runner: str) -> None:
    configure(repo, runner, HOOK.format(id="one", stages="commit-msg"), stages="commit-msg")
    done = repo.run("git", "commit", "-q", "--allow-empty", "-m", "BAD message")
    assert done.returncode == 1
    assert "1:BAD message" in done.stderr
    assert log(repo) == ["<one><.git/COMMIT_EDITMSG>not staged"]
    assert (repo.path / "unstaged").read_text() == "not staged\n"


@with_prek
def test_a_message_in_a_linked_worktree(repo: Repo, runner: str, tmp_path: Path) -> None:
    configure(repo, runner, HOOK.format(id="one", stages="commit-msg"), stages="commit-msg")
    repo.git("worktree", "add", "-q", tmp_path / "linked")
    linked = repo._replace(path=tmp_path / "linked")
    done = linked.run("git", "commit", "-q", "--allow-empty", "-m", "BAD message")
    assert (done.returncode, "1:BAD message" in done.stderr) == (1, True)


@pytest.mark.samples(1)
def test_a_push(repo: Repo, runner: str, tmp_path: Path) -> None:
    configure(repo, runner, HOOK.format(id="one", stages="pre-push"), stages="pre-push")
    far = str(tmp_path / "far.git")
    repo.git("init", "-q", "--bare", far)
    repo.git("push", "-q", "--no-verify", far, "main")
    repo.git("remote", "add", "origin", far)
    repo.git("fetch", "-q", "origin")
    assert repo.commit("bad", "BAD\n").returncode == 0
    done = repo.run("git", "push", "origin", "main")
    assert done.returncode == 1
    assert log(repo) == ["<one><bad>not staged"]
    assert "gitgates pre-push: blocked by `g`" in done.stderr


@with_prek
def test_only_the_named_hooks_run(repo: Repo, runner: str) -> None:
    hooks = [HOOK.format(id=name, stages=STAGES) for name in ("one", "two", "three")]
    configure(repo, runner, *hooks, gate='["three", "one"]', stages="pre-commit")
    assert repo.commit("c", "fine\n").returncode == 0
    assert log(repo)[:2] == ["<three><c>as committed", "<one><c>as committed"]
    repo.write("c", "BAD\n")
    repo.git("add", "c")
    assert repo.run("git", "commit", "-qm", "c").returncode == 1


@with_prek
def test_a_commit_of_everything(repo: Repo, runner: str) -> None:
    configure(repo, runner, HOOK.format(id="one", stages="pre-commit"), stages="pre-commit")
    repo.write("hook2", "BAD\n")
    repo.git("add", "-N", "hook2")
    done = repo.run("git", "commit", "-qam", "all")
    assert (done.returncode, log(repo)) == (1, ["<one><hook2><unstaged>not staged"])


@pytest.mark.samples(1)
def test_a_configuration_that_holds_our_own_hook(repo: Repo, runner: str) -> None:
    gitgates = shlex.quote(str(Path(sys.executable)))
    own = (
        f"{{id: own, name: own, language: system, verbose: true, stages: [pre-commit], "
        f"entry: {gitgates} -m gitgates pre-commit-hook pre-commit}}"
    )
    configure(repo, runner, own, HOOK.format(id="one", stages="pre-commit"), stages="pre-commit")
    repo.write("c", "BAD\n")
    repo.git("add", "c")
    done = repo.run("git", "commit", "-qm", "c")
    assert done.returncode == 1
    assert log(repo) == ["<one><c>as committed"]
    assert "gitgates: pre-commit is already running here\n" in done.stderr
    # The other way round: the framework runs us, and our gate leaves its hooks to it.
    done = repo.run(BIN / runner, "run", "--files", "c")
    assert done.returncode == 1
    assert log(repo) == ["<one><c>not staged"]


@pytest.mark.samples(1)
def test_without_a_configuration_of_the_framework(repo: Repo, runner: str) -> None:
    configure(repo, runner, HOOK.format(id="one", stages=STAGES))
    repo.git("rm", "-q", "--cached", ".pre-commit-config.yaml")
    (repo.path / ".pre-commit-config.yaml").unlink()
    done = repo.commit("c", "fine\n")
    assert done.returncode == 1
    assert ".pre-commit-config.yaml" in done.stderr
    assert "blocked by `g`" in done.stderr
