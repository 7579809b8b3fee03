"""Real tools: a pass is recorded when it has settled, and any change that matters is found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from observed_support import Observer, needs_strace

pytestmark = [needs_strace, pytest.mark.thorough]

BIN = Path(sys.executable).parent
CONFIG = """\
[tool.pytest.ini_options]
pythonpath = ["."]
[tool.mypy]
files = ["pkg", "tests"]
"""


class Project:
    """A package with its tests, and a folder for temporary files."""

    def __init__(self, top: Path) -> None:
        self.root = top / "root"
        self.own, self.temporary = top / "own", top / "own" / "tmp"
        for folder in (self.root / "pkg", self.root / "tests", self.temporary):
            folder.mkdir(parents=True)
        self.write("pyproject.toml", CONFIG)
        self.write("pkg/__init__.py", "")
        self.write("pkg/m.py", "def f(x: int) -> int:\n    return x\n")
        self.write("tests/test_m.py", "from pkg.m import f\n\n\ndef test_f() -> None:\n    f(1)\n")

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def append(self, name: str, text: str) -> None:
        with (self.root / name).open("a") as file:
            file.write(text)


TOOLS = {
    "ruff": ("ruff", "check"),
    "mypy": ("mypy",),
    "pytest": ("pytest", "-q", "-p", "no:xdist", "-p", "no:hypothesispytest"),
}
CHANGES: dict[str, Callable[[Project], object]] = {
    "a module": lambda p: p.append("pkg/m.py", "\n\nX = 1\n"),
    "a test": lambda p: p.append("tests/test_m.py", "\n\nX = 1\n"),
    "a new module": lambda p: p.write("tests/test_n.py", ""),
    "settings": lambda p: p.append("pyproject.toml", "\n"),
    "a cache": lambda p: [
        path.write_bytes(b"")
        for path in p.root.glob(".*_cache/**/*")
        if path.is_file() and path.name not in ("CACHEDIR.TAG", ".gitignore", "README.md")
    ],
    "settings above": lambda p: p.write("../ruff.toml", ""),
}
# What these do not read.
INDIFFERENT = {("mypy", "settings above"), ("pytest", "settings above")}


@pytest.mark.parametrize("tool", TOOLS)
def test_what_a_tool_reads(tmp_path: Path, tool: str) -> None:
    project = Project(tmp_path.resolve())
    observer = Observer(project.root, project.own)
    argv = (str(BIN / TOOLS[tool][0]), *TOOLS[tool][1:])
    observer.run(*argv)
    for change, make in CHANGES.items():
        found = observer.settled(*argv)
        assert observer.status == 0, observer.stdout
        assert observer.difference(found) == ""
        make(project)
        assert bool(observer.difference(found)) is ((tool, change) not in INDIFFERENT), change


def test_temporary_folders_of_pytest_need_not_settle(tmp_path: Path) -> None:
    project = Project(tmp_path.resolve())
    project.write("tests/test_m.py", "def test_m(tmp_path): (tmp_path / 'a').write_text('x')\n")
    observer = Observer(project.root, project.own)
    env = {"TMPDIR": str(project.temporary), "PATH": "/usr/bin:/bin", "USER": "me"}
    argv = (str(BIN / "pytest"), *TOOLS["pytest"][1:])
    for _ in range(5):  # pytest removes all but three
        found = observer.run(*argv, env=env)
        assert observer.status == 0, observer.stdout
    assert (found.unreusable, observer.difference(found)) == ("", "")


def test_pytest_reads_what_failed_last(tmp_path: Path) -> None:
    project = Project(tmp_path.resolve())
    observer = Observer(project.root, project.own)
    argv = (str(BIN / "pytest"), *TOOLS["pytest"][1:], "--lf")
    found = observer.settled(*argv)
    project.append("tests/test_m.py", "\n\ndef test_g() -> None:\n    assert 0\n")
    assert observer.run(*argv).unreusable.endswith("lastfailed, which it has read")
    assert observer.status == 1
    assert observer.difference(found) != ""
