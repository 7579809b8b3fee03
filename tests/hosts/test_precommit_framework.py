"""Our hooks under the real pre-commit and the real prek.

Each builds one environment with our package for all tests, which takes seven seconds; `make test`
has the same hooks without one, and test_precommit_host.py the rest as values. Each start of
pre-commit costs a third of a second, so a test keeps only the hooks that it is about.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest
from install_support import BIN, ROOT, Repo, make_repo

pytestmark = pytest.mark.slow  # each starts pre-commit several times

STAGES = ("pre-commit", "commit-msg", "pre-push")
FIRED = (*STAGES, "post-commit")
# Builds our package without its build system and what only verbs need: that takes ten seconds.
PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "gitgates"
version = "0"
"""
BACKEND = """\
import pathlib, zipfile
INFO = {
    "METADATA": "Metadata-Version: 2.1\\nName: gitgates\\nVersion: 0\\n",
    "WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    "entry_points.txt": "[console_scripts]\\ngitgates = gitgates.__main__:main\\n",
    "RECORD": "",
}
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "gitgates-0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        for path in pathlib.Path("gitgates").rglob("*.*"):
            wheel.write(path)
        for file, text in INFO.items():
            wheel.writestr(f"gitgates-0.dist-info/{file}", text)
    return name
"""
CONFIG = """\
[tool.gitgates.gates.no-bad]
command = "env >$LOG; pwd >>$LOG; printf '<%s>\\n' \\"$@\\" >>$LOG; ! grep -n ^BAD \\"$@\\""
pass_files = true
[tool.gitgates.hooks]
pre-commit.gates = ["no-bad"]
commit-msg.gates = ["no-bad"]
pre-push.gates = ["no-bad"]
post-commit.gates = ["no-bad"]
manual.gates = ["no-bad"]
"""


class Tool(NamedTuple):
    """One framework, a repository of our package to build, if any, and what it is started with."""

    name: str
    source: Path | None
    env: dict[str, str]

    @property
    def argv0(self) -> str:
        return str(BIN / self.name)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return a folder for all workers of this test run: an environment is built once for all."""
    base = tmp_path_factory.getbasetemp()
    return (base if worker_id == "master" else base.parent) / "frameworks"


def publish(shared: Path, folder: Path, name: str, *files: str) -> Path:
    """Return a repository of our package as it is now, built as `files` of it say, or by us."""
    made = make_repo(folder / name, shared / "home")
    made.write("pyproject.toml", PROJECT)
    made.write("backend.py", BACKEND)
    for file in (".pre-commit-hooks.yaml", *files):
        shutil.copy(ROOT / file, made.path)
    ignored = shutil.ignore_patterns("__pycache__", "protos.binpb")
    shutil.copytree(ROOT / "gitgates", made.path / "gitgates", ignore=ignored)
    made.git("add", "-A")
    same = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2025-01-01T00:00:00Z")
    made.git("commit", "-qm", "as it is now", **same)
    with contextlib.suppress(OSError):  # another worker was first, and made the same
        made.path.rename(shared / name)
    return shared / name


@pytest.fixture(scope="session")
def source(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(shared, tmp_path_factory.mktemp("source"), "gitgates")


# prek downloads uv to build an environment; without one, test_precommit_gate.py starts it, too.
@pytest.fixture(
    scope="session",
    params=[
        "pre-commit, nothing built",
        pytest.param("pre-commit", marks=pytest.mark.thorough),
        pytest.param("prek", marks=pytest.mark.thorough),
    ],
)
def tool(request: pytest.FixtureRequest, shared: Path) -> Tool:
    persons = shared / "persons"
    (persons / "bin").mkdir(parents=True, exist_ok=True)
    (persons / "pyvenv.cfg").write_text("")
    env = {
        "PRE_COMMIT_HOME": str(shared / "pre-commit"),
        "PREK_HOME": str(shared / "prek"),
        "PIP_CACHE_DIR": str(shared / "pip"),
        "PIP_NO_COMPILE": "1",
        "VIRTUALENV_OVERRIDE_APP_DATA": str(shared / "virtualenv"),
        "VIRTUALENV_NO_PERIODIC_UPDATE": "1",  # downloads, in the background
        "UV_CACHE_DIR": str(shared / "uv"),
        "VIRTUAL_ENV": str(persons),
        "PATH": f"{persons}/bin:{BIN}:{os.environ['PATH']}",
    }
    name, _, unbuilt = request.param.partition(", ")
    return Tool(name, None if unbuilt else request.getfixturevalue("source"), env)


def configured(path: Path, home: Path, tool: Tool) -> Repo:
    made = make_repo(path, home)
    made.env.update(tool.env, LOG=str(home.parent / "log"))
    made.write("pyproject.toml", CONFIG)
    made.write("a b", "fine\n")
    return made


@pytest.fixture
def repo(tool: Tool, tmp_path: Path) -> Repo:
    made = configured(tmp_path / "repo", tmp_path / "home", tool)
    made.git("add", "-A")
    made.git("commit", "-qm", "start")
    return made


def published(tool: Tool, made: Repo) -> str:
    rev = made.git("-C", str(tool.source), "rev-parse", "HEAD")
    ids = "".join(f"  - id: gitgates-{stage}\n" for stage in (*FIRED, "manual"))
    return f"repos:\n- repo: {tool.source}\n  rev: {rev}\n  hooks:\n{ids}"


def local() -> str:
    """Return our hooks as they are published, but for the gitgates in the PATH."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    hooks = textwrap.indent(text.replace("language: python", "language: system"), "  ")
    return f"repos:\n- repo: local\n  hooks:\n{hooks}"


@pytest.fixture(scope="session")
def prepared(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with the framework's own hooks, which run ours, to be copied."""
    folder = tmp_path_factory.mktemp(tool.name)
    made = configured(folder / "repo", folder / "home", tool)
    made.write(".pre-commit-config.yaml", published(tool, made) if tool.source else local())
    made.git("add", "-A")
    made.git("commit", "-qm", "configure")
    types = [arg for stage in FIRED for arg in ("-t", stage)]
    done = made.run(tool.argv0, "install", "--install-hooks", *types)
    assert done.returncode == 0, done.stdout + done.stderr
    return made.path


@pytest.fixture
def installed(tool: Tool, prepared: Path, tmp_path: Path) -> Repo:
    made = configured(tmp_path / "repo", tmp_path / "home", tool)
    shutil.copytree(prepared, made.path, dirs_exist_ok=True)
    return made


def only(repo: Repo, stage: str) -> Repo:
    """Leave one hook of the framework's, so no other one takes time."""
    for other in FIRED:
        if other != stage:
            repo.hook(other).unlink()
    return repo


def log(repo: Repo) -> tuple[dict[str, str], list[str]]:
    """Return the environment of the gate that ran last, and its folder and arguments."""
    lines = Path(repo.env["LOG"]).read_text().splitlines()
    Path(repo.env["LOG"]).unlink()
    start = next(n for n, line in enumerate(lines) if line == str(repo.path))
    return dict(line.split("=", 1) for line in lines[:start] if "=" in line), lines[start:]


@pytest.mark.thorough
def test_the_manifest_is_valid(tool: Tool, repo: Repo) -> None:
    done = repo.run(tool.argv0, "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml"))
    assert done.returncode == 0, done.stdout


@pytest.mark.nightly
def test_try_repo(
    tool: Tool, repo: Repo, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As it is published, built by its own build system, with all that it depends on."""
    files = ("README.md", "LICENSE", "pyproject.toml", "hatch_build.py")
    source = publish(shared, tmp_path_factory.mktemp("source"), "published", *files)
    repo.write("a b", "BAD\n")
    args = ("try-repo", str(source), "gitgates-pre-commit", "--hook-stage", "pre-commit")
    assert_blocked(repo.run(tool.argv0, *args, "--all-files"), "pre-commit")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "stage",
    STAGES,
)
def test_a_stage_by_hand(tool: Tool, installed: Repo, stage: str) -> None:
    installed.write("message", "BAD\n")
    installed.write("a b", "BAD\n")
    about = {
        "pre-commit": ("--all-files",),
        "commit-msg": ("--commit-msg-filename", "message"),
        "pre-push": ("--files", "a b"),
    }
    args = ("run", f"gitgates-{stage}", "--hook-stage", stage, *about[stage])
    assert_blocked(installed.run(tool.argv0, *args), stage)


def assert_blocked(done: subprocess.CompletedProcess[str], stage: str) -> None:
    assert done.returncode == 1, done.stderr
    assert f"gitgates {stage}: blocked by `no-bad`" in done.stdout
    assert "BAD" in done.stdout


def test_before_a_commit(installed: Repo) -> None:
    only(installed, "pre-commit")
    done = installed.commit("c d", "fine\nBAD\n")
    assert done.returncode == 1
    assert "| 2:BAD" in done.stderr
    assert "gitgates pre-commit: blocked by `no-bad`" in done.stderr
    env, args = log(installed)
    assert args == [str(installed.path), "<c d>"]
    assert env["VIRTUAL_ENV"] == installed.env["VIRTUAL_ENV"]
    folders = [folder for folder in env["PATH"].split(":") if not folder.endswith("git-core")]
    assert ":".join(folders) == installed.env["PATH"]
    assert "GIT_INDEX_FILE" not in env

    # What is staged counts: the rest is hidden by the framework, and comes back.
    installed.write("c d", "fine\n")
    installed.git("add", "c d")
    installed.write("c d", "fine\nBAD, but not staged\n")
    done = installed.run("git", "commit", "-qm", "c")
    assert done.returncode == 0, done.stderr
    assert (installed.path / "c d").read_text() == "fine\nBAD, but not staged\n"


@pytest.mark.nightly
def test_a_fixer_that_does_not_say_so(installed: Repo) -> None:
    only(installed, "pre-commit")
    gate = "[tool.gitgates.gates.fix]\ncommand = 'sed -i s/BAD/good/ *.txt'\n"
    hook = "[tool.gitgates.hooks.pre-commit]\ngates = ['fix']\n"
    installed.write("pyproject.toml", gate + hook)
    installed.git("commit", "-qam", "configure", "--no-verify")
    done = installed.commit("c.txt", "BAD\n")
    assert done.returncode == 1
    assert "it changed 1 file: c.txt; gates that fix" in done.stderr
    assert "files were modified by this hook" in done.stderr
    assert (installed.path / "c.txt").read_text() == "good\n"
    installed.git("add", "c.txt")
    assert installed.run("git", "commit", "-qm", "c").returncode == 0
    # The same bytes anew are no change.
    assert installed.run("git", "commit", "-qm", "c", "--amend").returncode == 0


@pytest.mark.thorough
def test_a_commit_that_only_deletes(installed: Repo) -> None:
    only(installed, "pre-commit")
    gate = "[tool.gitgates.gates.whole]\ncommand = 'test -e \"a b\"'\nfiles = ['a b']\n"
    hook = "[tool.gitgates.hooks.pre-commit]\ngates = ['whole']\n"
    installed.write("pyproject.toml", gate + hook)
    installed.git("commit", "-qam", "configure", "--no-verify")
    installed.git("rm", "-q", "a b")
    done = installed.run("git", "commit", "-qm", "gone")
    assert done.returncode == 1
    assert "gitgates pre-commit: blocked by `whole`" in done.stderr


@pytest.mark.nightly
def test_a_message(installed: Repo) -> None:
    only(installed, "commit-msg")
    commit = ("git", "commit", "-q", "--allow-empty", "-m")
    done = installed.run(*commit, "BAD message")
    assert done.returncode == 1
    assert "| 1:BAD message" in done.stderr
    assert log(installed)[1] == [str(installed.path), "<.git/COMMIT_EDITMSG>"]
    assert installed.run(*commit, "fine").returncode == 0


@pytest.mark.nightly
def test_a_push(installed: Repo, tmp_path: Path) -> None:
    only(installed, "pre-push")
    far = str(tmp_path / "far.git")
    installed.git("init", "-q", "--bare", far)
    installed.git("remote", "add", "origin", far)
    done = installed.run("git", "push", "origin", "main")
    assert done.returncode == 0, done.stderr
    assert log(installed)[1][1:] == ["<.pre-commit-config.yaml>", "<a b>", "<pyproject.toml>"]
    installed.write("bad", "BAD\n")
    installed.git("add", "bad")
    installed.git("commit", "-qm", "bad", "--no-verify")
    done = installed.run("git", "push", "origin", "main")
    assert done.returncode == 1
    assert "gitgates pre-push: blocked by `no-bad`" in done.stdout
    assert log(installed)[1][1:] == ["<bad>"]


def test_a_push_tells_gates_what_git_told(tool: Tool, installed: Repo, tmp_path: Path) -> None:
    only(installed, "pre-push")
    config = CONFIG.replace("env >$LOG", "cat >$LOG.stdin; env >$LOG")
    installed.write("pyproject.toml", config.replace("pass_files", "pass_hook_input"))
    installed.git("commit", "-qam", "ask for the input", "--no-verify")
    far = str(tmp_path / "far.git")
    installed.git("init", "-q", "--bare", far)
    installed.git("remote", "add", "origin", far)
    stdin = Path(installed.env["LOG"] + ".stdin")
    old = "0" * 40
    for name in ("first", "second") if tool.source else ("first",):
        installed.git("commit", "-q", "--no-verify", "--allow-empty", "-m", name)
        new = installed.git("rev-parse", "HEAD")
        installed.git("push", "-q", "origin", "main")
        assert log(installed)[1][1:] == ["<origin>", f"<{far}>"]
        assert stdin.read_text() == f"refs/heads/main {new} refs/heads/main {old}\n"
        old = new


def test_after_a_commit(installed: Repo) -> None:
    only(installed, "post-commit")
    installed.write("c", "BAD\n")
    installed.git("add", "c")
    done = installed.run("git", "commit", "-qm", "c")
    assert done.returncode == 0, done.stderr
    assert (
        "gitgates post-commit: too late to block: gate `no-bad` failed (exit status 1)"
        in done.stderr
    )
    assert log(installed)[1][1:] == ["<c>"]


@pytest.mark.thorough
def test_all_files(tool: Tool, installed: Repo) -> None:
    done = installed.run(tool.argv0, "run", "--all-files")
    assert done.returncode == 0, done.stdout
    listed = ["<.pre-commit-config.yaml>", "<a b>", "<pyproject.toml>"]
    assert log(installed)[1][1:] == listed
    done = installed.run(tool.argv0, "run", "--all-files", "--hook-stage", "manual")
    assert done.returncode == 0, done.stdout
    assert log(installed)[1][1:] == listed


@pytest.mark.thorough
def test_very_many_files_come_in_several_runs(tool: Tool, installed: Repo) -> None:
    config = CONFIG.replace("! grep", "echo $# >>$LOG.counts; ! grep")
    installed.write("pyproject.toml", config)
    for number in range(600):
        installed.write(f"{'long' * 60}/{number}", "")
    installed.git("add", "-A")
    done = installed.run(tool.argv0, "run", "--all-files")
    assert done.returncode == 0, done.stdout
    counts = Path(installed.env["LOG"] + ".counts").read_text().split()
    assert len(counts) > (1 if tool.name == "pre-commit" else 0)
    assert sum(map(int, counts)) == 603


@pytest.mark.thorough
def test_a_linked_worktree(installed: Repo, tmp_path: Path) -> None:
    only(installed, "pre-commit")
    installed.git("worktree", "add", "-q", tmp_path / "linked")
    linked = installed._replace(path=tmp_path / "linked")
    done = linked.commit("c", "BAD\n")
    assert done.returncode == 1
    assert "gitgates pre-commit: blocked" in done.stderr
    assert log(linked)[1] == [str(linked.path), "<c>"]


@pytest.mark.thorough
def test_the_off_switch(installed: Repo) -> None:
    only(installed, "pre-commit")
    installed.write("c", "BAD\n")
    installed.git("add", "c")
    assert installed.run("git", "commit", "-qm", "BAD", GITGATES="0").returncode == 0
    assert not Path(installed.env["LOG"]).exists()
