"""Our modules are found as Python finds them, or left to Python."""

from __future__ import annotations

import compileall
import importlib.machinery
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gitgates.core.pyc_import import PycFinder, PycLoader

PACKAGE = Path(__file__).resolve().parents[2] / "gitgates"
SOURCE = '"""A module."""\nvalue = 1\n'


@pytest.fixture(name="package")
def _package(tmp_path: Path) -> Path:
    """Return a compiled package of ours: a module, and a package with a module."""
    package = tmp_path / "gitgates"
    (package / "inner").mkdir(parents=True)
    for name in ("__init__", "outer", "inner/__init__", "inner/deep"):
        (package / f"{name}.py").write_text(SOURCE)
    compileall.compile_dir(package, quiet=1)
    return package


@pytest.mark.parametrize("name", ["gitgates.outer", "gitgates.inner", "gitgates.inner.deep"])
def test_finds_what_python_finds(package: Path, name: str) -> None:
    path = [str(package.joinpath(*name.split(".")[1:-1]))]
    found = PycFinder.find_spec(name, path)
    expected = importlib.machinery.PathFinder.find_spec(name, path)
    assert found
    assert expected
    assert isinstance(found.loader, PycLoader)
    for attribute in (
        *("name", "origin", "cached", "parent", "has_location", "submodule_search_locations"),
    ):
        assert getattr(found, attribute) == getattr(expected, attribute), attribute
    assert isinstance(expected.loader, importlib.machinery.SourceFileLoader)
    assert found.loader.get_code(name) == expected.loader.get_code(name)
    assert found.loader.get_source(name) == SOURCE
    assert found.loader.is_package(name) == expected.loader.is_package(name)


def _write(package: Path) -> None:
    (package / "outer.py").write_text(SOURCE + "other = 2\n")


def _touch(package: Path) -> None:
    now = os.stat(package / "outer.py").st_mtime
    os.utime(package / "outer.py", (now + 2, now + 2))


def _by_another_version(package: Path) -> None:
    [pyc] = (package / "__pycache__").glob("outer.*.pyc")
    pyc.write_bytes(b"\0\0\0\0" + pyc.read_bytes()[4:])


def _checked_by_hash(package: Path) -> None:
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    py_compile.compile(str(package / "outer.py"), invalidation_mode=mode)


def _not_compiled(package: Path) -> None:
    shutil.rmtree(package / "__pycache__")


def _cut_off(package: Path) -> None:
    [pyc] = (package / "__pycache__").glob("outer.*.pyc")
    pyc.write_bytes(pyc.read_bytes()[:7])


def _gone(package: Path) -> None:
    (package / "outer.py").unlink()


@pytest.mark.parametrize(
    "change",
    [_write, _touch, _by_another_version, _checked_by_hash, _not_compiled, _cut_off, _gone],
)
def test_leaves_to_python_what_is_not_up_to_date(
    package: Path, change: Callable[[Path], None]
) -> None:
    assert PycFinder.find_spec("gitgates.outer", [str(package)])
    change(package)
    assert PycFinder.find_spec("gitgates.outer", [str(package)]) is None


def test_leaves_to_python_what_is_not_ours(package: Path) -> None:
    assert PycFinder.find_spec("gitgates") is None
    assert PycFinder.find_spec("email.outer", [str(package)]) is None
    assert PycFinder.find_spec("gitgates_more.outer", [str(package)]) is None
    assert PycFinder.find_spec("gitgates.missing", [str(package)]) is None
    assert PycFinder.find_spec("gitgates.outer", [str(package / "outer.py")]) is None


def run(folder: Path, program: str, *args: str) -> str:
    """Run a program with the modules of a folder; return its output."""
    argv = (sys.executable, "-S", "-c", program, *args)
    done = subprocess.run(argv, cwd=folder, env={}, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_changed_module_is_compiled_again(package: Path) -> None:
    shutil.copy(PACKAGE / "core/pyc_import.py", package)
    program = """
from gitgates import pyc_import
pyc_import.install()
from gitgates import outer
print(outer.value, type(outer.__loader__).__name__)
"""
    assert run(package.parent, program) == "1 PycLoader\n"
    (package / "outer.py").write_text("value = 22\n")
    assert run(package.parent, program) == "22 SourceFileLoader\n"
    assert run(package.parent, program) == "22 PycLoader\n"


def test_a_hook_is_imported_so() -> None:
    program = """
import os, sys
from gitgates.__main__ import main
def leave(status, leave=os._exit):
    os.write(1, type(sys.modules["gitgates.entry.githook"].__loader__).__name__.encode())
    leave(0)
os._exit = leave
main()
"""
    run(PACKAGE.parent, program, "git-hook", "shim", "no-hook")  # is compiled, if it was not
    assert run(PACKAGE.parent, program, "git-hook", "shim", "no-hook") == "PycLoader"
