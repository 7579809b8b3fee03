"""What every test stands on: a home of its own, and real repositories."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import forked
import plain_commit
import pytest
from hypothesis import settings

from gitgates.setup.install.githooks import render

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("busy", deadline=None, max_examples=15)
settings.register_profile("thorough", deadline=None, max_examples=60)  # of `make thorough`
settings.load_profile("busy")

# Under nohup, or in the background of a script, these are ignored, and every process started
# inherits that, as it does not inherit a handler. The tests themselves go on ignoring them.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda _number, _frame: None)

# gRPC, once it has served a test, would go on in each forked child, and abort those that close its
# descriptors, as the children do that match patterns.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

# Of whoever starts the tests: gates would import from there, and what they are would depend on it.
# So would what make tells those that it starts.
for variable in ("PYTHONPATH", "PYTHONHOME", "NODE_PATH", "MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES"):
    os.environ.pop(variable, None)

pytest_plugins = ["costs", "server_fixtures"]

SRC = Path(__file__).resolve().parents[1]
DURATION = re.compile(rb"\d+\.\d\d s")
SETTINGS = b"""[user]
    name = Test
    email = test@example.invalid
[init]
    defaultBranch = main
[advice]
    detachedHead = false
[protocol "file"]
    allow = always
# Or each commit starts two processes more, to see that there is nothing to tidy up.
[maintenance]
    auto = false
[gc]
    auto = 0
[receive]
    autogc = false
"""


def pytest_configure() -> None:
    """Put temporary folders into memory where there is room, unless TMPDIR says where to."""
    with contextlib.suppress(OSError):
        memory = os.statvfs("/dev/shm")
        has_room = memory.f_bavail * memory.f_frsize > 2**31
        if has_room and not memory.f_flag & os.ST_NOEXEC and "TMPDIR" not in os.environ:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processors: tests wait for little but what runs on them."""
    return os.cpu_count() or 1


@pytest.hookimpl(tryfirst=True)  # before `-m` is heeded
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave all cases but the first of `samples(N)` to `make thorough`; put slow files first.

    Those of `samples(N, "nightly")`, and those with real clients, are left to `make nightly`.

    So no worker is left with a slow test at the end.
    """
    cases = Counter[str]()
    for item in items:
        marker = item.get_closest_marker("samples")
        if marker and not item.get_closest_marker("thorough"):
            name = item.nodeid.partition("[")[0]
            cases[name] += 1
            if cases[name] > marker.args[0]:
                is_late = "nightly" in marker.args or "e2e" in item.path.parts
                item.add_marker(pytest.mark.nightly if is_late else pytest.mark.thorough)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a path for each home; pytest would read a folder of thousands to number each."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(scope="session", autouse=True)
def _no_server_stays() -> Iterator[None]:
    yield
    forked.stop()


@pytest.fixture(scope="session", autouse=True)
def _blank(tmp_path_factory: pytest.TempPathFactory) -> None:
    blank = Repo.blank = tmp_path_factory.mktemp("blank")
    init = ["git", "-c", "init.templateDir=", "init", "-q", "-b", "main", str(blank)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(init, check=True, env=env)
    Repo.folders = [".git", ".git/hooks", ".git/info"]
    for path in sorted((blank / ".git").rglob("*")):
        name = str(path.relative_to(blank))
        if path.is_file():
            Repo.files[name] = path.read_bytes()
        elif name not in Repo.folders:
            Repo.folders.append(name)


@pytest.fixture(autouse=True)
def _own_home(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    home = next(_homes)
    home.mkdir()
    config = home / "gitconfig"
    config.write_bytes(SETTINGS)
    for name in list(os.environ):
        if name.startswith(("CLAUDE", "GIT", "PRE_COMMIT", "SKIP", "VIRTUAL_ENV")):
            monkeypatch.delenv(name)
    monkeypatch.delenv("CI", raising=False)  # or what gates pass would count as made by CI
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_EDITOR", "true")
    monkeypatch.setenv("GITGATES_POOL", "0")  # tests run side by side, and wait for no other
    bin_dir = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", f"{bin_dir}{os.pathsep}{os.environ['PATH']}")


class Repo:
    """A real repository in a temporary folder."""

    blank: ClassVar[Path]  # as `git init` makes one; what is in it costs a hundredth of that
    folders: ClassVar[list[str]] = []
    files: ClassVar[dict[str, bytes]] = {}

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def init(cls, path: Path) -> Repo:
        path.mkdir(parents=True, exist_ok=True)
        for name in cls.folders:
            os.mkdir(f"{path}/{name}")
        for name, content in cls.files.items():
            (path / name).write_bytes(content)
        return cls(path)

    def ask(
        self, *args: str, env: dict[str, str] | None = None, stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program in the working tree; return what it answered."""
        return subprocess.run(
            args,
            cwd=self.path,
            env={**os.environ, **(env or {})},
            input=stdin,
            capture_output=True,
            check=False,
            timeout=60,
        )

    def git(self, *args: str, env: dict[str, str] | None = None) -> str:
        """Run git; fail the test where it fails."""
        done = self.ask("git", *args, env=env)
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def gitgates(
        self,
        *args: str,
        env: dict[str, str] | None = None,
        stdin: bytes = b"",
        stdout: int = subprocess.PIPE,
        process: bool = False,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run gitgates in the working tree. `stdout`: a descriptor that it is to write to.

        `process`: in one of its own, for a test of what a process is, and how it ends.
        """
        whole = {**os.environ, **(env or {})}
        return forked.run(args, str(self.path), whole, stdin, stdout, process=process)

    def write(self, name: str, content: str | bytes = "") -> Path:
        """Write a file of the working tree."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def config(self, text: str) -> None:
        """Write [tool.gitgates]; `text` names its tables without that prefix."""
        whole = re.sub(r"(?m)^(\[+)", r"\1tool.gitgates.", text)
        self.write("pyproject.toml", f"[tool.gitgates]\n{whole}")

    def shim(self, *hooks: str) -> None:
        """Put our shim into the hooks folder, as install-hooks does."""
        folder = self.path / self.git("rev-parse", "--git-path", "hooks")
        folder.mkdir(exist_ok=True)
        for hook in hooks:
            path = folder / hook
            path.write_bytes(render(hook))
            path.chmod(0o755)

    def commit(self, message: str = "change", *args: str) -> subprocess.CompletedProcess[bytes]:
        """Commit what is staged; return what git answered."""
        return self.ask("git", "commit", "-m", message, *args)

    def commit_all(self, message: str, *, no_verify: bool = False) -> None:
        """Stage everything and commit it, which takes no git where nothing is special."""
        config = self.files[".git/config"]
        if not plain_commit.commit(self.path, message, config, SETTINGS, no_verify=no_verify):
            self.git("add", ".")
            self.git("commit", "-qm", message, *(("--no-verify",) if no_verify else ()))

    def add_origin(self) -> None:
        """Make a remote of that name, and push main to it."""
        self.git("init", "-q", "--bare", "../origin.git")
        self.git("remote", "add", "origin", "../origin.git")
        self.git("push", "-q", "origin", "main")

    def head(self) -> str:
        """Return the id of HEAD."""
        git = self.path / ".git"
        try:
            head = (git / "HEAD").read_text()
            branch = head.removeprefix("ref: ").strip()
            return (git / branch).read_text().strip() if branch != head.strip() else branch
        except OSError:  # it is packed, or another worktree's
            return self.git("rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.init(tmp_path / "repo")


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder $OUT, outside the repository, where gates write what they were given."""
    folder = tmp_path / "out"
    folder.mkdir()
    monkeypatch.setenv("OUT", str(folder))
    return folder


def timeless(output: bytes) -> str:
    """Return output with each duration replaced, so it can be compared whole."""
    return DURATION.sub(b"0.00 s", output).decode("utf-8", "replace")
