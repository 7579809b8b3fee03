"""The identity of programs: it changes with whatever they run, and with nothing else."""

from __future__ import annotations

import itertools
import os
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from gitgates.core.types import Command
from gitgates.engine.tools import ToolError, identity, signature


class Place:
    """A folder of programs, one of a project, and a home."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.root, self.home = (folder / name for name in ("bin", "root", "home"))
        for path in (self.bin, self.root, self.home):
            path.mkdir()
        self.env = {"PATH": str(self.bin), "HOME": str(self.home)}

    def program(self, path: str, text: str = "#!/bin/sh\n") -> Path:
        place = self.bin / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(0o755)
        return place

    def identity(self, command: str | tuple[str, ...], folder: str = ".") -> list[str]:
        is_shell = isinstance(command, str)
        argv = ("/bin/sh", "-c", command, "gate") if isinstance(command, str) else command
        cwd_abs = os.path.normpath(self.root / folder)
        asked = Command(argv=argv, cwd_abs=cwd_abs, env=self.env, shell=is_shell)
        return identity(asked, str(self.root), signature)


@pytest.fixture(name="place")
def _place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def same_size(path: Path) -> None:
    """Write other bytes of the same size; leave mtime as it was."""
    before = path.stat()
    path.write_text(path.read_text().swapcase())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def older(path: Path) -> None:
    """Put an older file of the same size and mode in the place of a newer one."""
    new = path.with_name("new")
    new.write_text(path.read_text())
    new.chmod(0o755)
    os.utime(new, (1, 1))
    new.rename(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "same size and time": same_size,
    "older": older,
    "gone": Path.unlink,
    "not executable": lambda path: path.chmod(0o644),
}


COMMANDS: tuple[str | tuple[str, ...], ...] = (
    *("check", ("check", "x"), "true && (check --x)|cat", "A=check"),
    *(("sh", "-c", "true; check x"), "cd $BIN && ./check", "(cd ../bin; true) && ${BIN}/check"),
    "~/../bin/check",
)


def test_another_program(place: Place) -> None:
    place.env["BIN"] = str(place.bin)
    for command, (name, change) in itertools.product(COMMANDS, CHANGES.items()):
        path = place.program("check")
        before = place.identity(command)
        assert place.identity(command) == before, command
        place.program(f"other-{name}")
        assert place.identity(command) == before, command
        change(path)
        assert place.identity(command) != before, (command, name)


def test_a_program_earlier_in_the_path(place: Place, tmp_path: Path) -> None:
    place.program("check")
    first = tmp_path / "first"
    place.env["PATH"] = f"{first}{os.pathsep}{place.bin}"
    before = place.identity("check")
    first.mkdir()
    assert place.identity("check") == before
    place.program("../first/check")
    assert place.identity("check") != before


def test_a_program_behind_links(place: Place) -> None:
    real = place.program("../lib/check-2")
    (place.bin / "check").symlink_to("../lib/current")
    (place.bin.parent / "lib/current").symlink_to("check-2")
    before = place.identity("check")
    same_size(real)
    assert (second := place.identity("check")) != before
    place.program("../lib/check-3")
    (place.bin.parent / "lib/current").unlink()
    (place.bin.parent / "lib/current").symlink_to("check-3")
    assert place.identity("check") != second


@pytest.mark.parametrize("line", ["#!{}/interpreter", "#!/usr/bin/env interpreter", "#! {}/outer"])
def test_an_interpreter(place: Place, line: str) -> None:
    interpreter = place.program("interpreter")
    place.program("outer", f"#!{interpreter}\n")
    place.program("check", line.format(place.bin) + " -x\n")
    before = place.identity("check")
    same_size(interpreter)
    assert place.identity("check") != before


def test_a_script_that_is_its_own_interpreter(place: Place) -> None:
    place.program("check", f"#!{place.bin}/check\n")
    assert place.identity("check")


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("name", "folder"),
    [(".venv", "."), ("venv", "sub/deep"), (".venv", "sub/deep"), ("venv", ".")],
)
def test_packages_of_the_project(place: Place, name: str, folder: str) -> None:
    (place.root / "sub/deep").mkdir(parents=True)
    place.program("uv")
    record = place.root / name / "lib/python3.11/site-packages/ruff-1.dist-info/RECORD"
    record.parent.mkdir(parents=True)
    record.write_text("1")
    (place.root / name / "pyvenv.cfg").write_text("")
    before = place.identity("uv run ruff", folder)
    same_size(record)
    assert (second := place.identity("uv run ruff", folder)) != before
    (record.parent.parent / "other-1.dist-info").mkdir()
    assert (third := place.identity("uv run ruff", folder)) != second
    (record.parent.parent / "editable.pth").write_text("")
    assert place.identity("uv run ruff", folder) != third


def test_packages_of_a_program_in_an_environment(place: Place) -> None:
    place.program("../tools/bin/mypy", f"#!{place.bin.parent}/tools/bin/python\n")
    place.program("../tools/bin/python")
    (place.bin.parent / "tools/pyvenv.cfg").write_text("")
    record = place.bin.parent / "tools/lib/python3.11/site-packages/mypy-1.dist-info/RECORD"
    record.parent.mkdir(parents=True)
    record.write_text("1")
    (place.bin / "mypy").symlink_to("../tools/bin/mypy")  # as pipx does
    before = place.identity("mypy")
    same_size(record)
    assert (second := place.identity("mypy")) != before
    (place.bin.parent / "tools/bin/python").unlink()
    assert place.identity("mypy") != second


@pytest.mark.parametrize(
    ("settings", "counts"),
    [
        ("home = /usr/bin\ninclude-system-site-packages = false\n", False),
        ("include-system-site-packages = true\n", True),
    ],
)
def test_packages_beside_the_interpreter_of_an_environment(
    place: Place, settings: str, *, counts: bool
) -> None:
    place.program("python3")
    place.program("../tools/bin/mypy", f"#!{place.bin.parent}/tools/bin/python\n")
    (place.bin.parent / "tools/bin/python").symlink_to(place.bin / "python3")
    (place.bin.parent / "tools/pyvenv.cfg").write_text(settings)
    before, by_path = place.identity("../tools/bin/mypy"), place.identity("python3 -m mypy")
    record = place.bin.parent / "lib/python3.11/site-packages/mypy-1.dist-info/RECORD"
    record.parent.mkdir(parents=True)
    record.write_text("1")
    assert (place.identity("../tools/bin/mypy") != before) is counts
    assert place.identity("python3 -m mypy") != by_path


def test_packages_of_the_person(place: Place) -> None:
    place.program("python3")
    place.program("mypy", f"#!{place.bin}/python3\n")
    before = place.identity("mypy")
    record = place.home / ".local/lib/python3.11/site-packages/mypy-1.dist-info/RECORD"
    record.parent.mkdir(parents=True)
    record.write_text("1")
    assert place.identity("mypy") != before


@pytest.mark.parametrize("launcher", ["uv", "poetry", "pdm"])
def test_a_launcher_without_an_environment(place: Place, launcher: str) -> None:
    place.program(launcher)
    with pytest.raises(ToolError):
        place.identity(f"{launcher} run mypy")
    environment = place.home / "environment"
    environment.mkdir()
    (environment / "pyvenv.cfg").write_text("")
    place.env["VIRTUAL_ENV"] = str(environment)
    assert place.identity(f"{launcher} run mypy")


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        ("uv run --group dev mypy", ".venv/bin"),
        (("uv", "run", "mypy"), ".venv/bin"),
        ("true; npx mypy", "node_modules/.bin"),
        ("pnpm exec mypy", "node_modules/.bin"),
    ],
)
def test_what_a_launcher_starts_comes_before_the_path(
    place: Place, command: str | tuple[str, ...], folder: str
) -> None:
    place.env["PATH"] += f":{place.program('../pyenv/shims/mypy').parent}"
    for launcher in ("uv", "npx", "pnpm"):
        place.program(launcher)
    (place.root / ".venv").mkdir()
    (place.root / ".venv/pyvenv.cfg").write_text("")
    place.program("../root/node_modules/.package-lock.json")
    with pytest.raises(ToolError):
        place.identity(command)
    program = place.program(f"../root/{folder}/mypy")
    before = place.identity(command)
    same_size(program)
    assert place.identity(command) != before
    with pytest.raises(ToolError):
        place.identity("uv run true && mypy")  # the shell starts this one


def test_the_environment_of_poetry(place: Place) -> None:
    place.program("poetry")
    # `generate_env_name` of poetry
    mark = urlsafe_b64encode(sha256(os.fsencode(os.path.realpath(place.root))).digest())[:8]
    folder = place.home / f".cache/pypoetry/virtualenvs/a-{mark.decode()}-py3.11"
    record = folder / "lib/python3.11/site-packages/a-1.dist-info/RECORD"
    record.parent.mkdir(parents=True)
    with pytest.raises(ToolError):
        place.identity("poetry run mypy")
    (folder / "pyvenv.cfg").write_text("")
    before = place.identity("poetry run mypy")
    record.write_text("1")
    assert place.identity("poetry run mypy") != before
    place.env["POETRY_VIRTUALENVS_PATH"] = "/else/where"
    with pytest.raises(ToolError):
        place.identity("poetry run mypy")
    del place.env["POETRY_VIRTUALENVS_PATH"]
    (place.root / "poetry.toml").write_text('[virtualenvs]\npath = "/else/where"\n')
    with pytest.raises(ToolError):
        place.identity("poetry run mypy")


def test_the_environment_of_uv(place: Place) -> None:
    place.program("uv")
    (place.root / ".venv").mkdir()
    (place.root / ".venv/pyvenv.cfg").write_text("")
    assert place.identity("uv run mypy")
    place.env["UV_PROJECT_ENVIRONMENT"] = ".venv-gitgates"
    with pytest.raises(ToolError):
        place.identity("uv run mypy")  # it is made by the run
    record = place.root / ".venv-gitgates/lib/python3.11/site-packages/a-1.dist-info/RECORD"
    record.parent.mkdir(parents=True)
    record.write_text("1")
    (place.root / ".venv-gitgates/pyvenv.cfg").write_text("")
    before = place.identity("uv run mypy")
    same_size(record)
    record.unlink()
    assert place.identity("uv run mypy") != before


@pytest.mark.samples(5)
@pytest.mark.parametrize(
    ("name", "folder"),
    [
        (".package-lock.json", "web"),
        (".package-lock.json", "."),
        (".modules.yaml", "."),
        (".yarn-state.yml", "."),
        (".yarn-integrity", "."),
        (".modules.yaml", "web"),
        (".yarn-state.yml", "web"),
        (".yarn-integrity", "web"),
    ],
)
def test_packages_of_node(place: Place, name: str, folder: str) -> None:
    (place.root / "web").mkdir()
    place.program("npx")
    with pytest.raises(ToolError):
        place.identity("npx eslint", folder)  # it would fetch one, or use a cached one
    (place.root / "node_modules").mkdir()
    marker = place.root / "node_modules" / name
    marker.write_text("a")
    with pytest.raises(ToolError):
        place.identity("npx --yes eslint", folder)  # is another package than those
    place.program("../root/node_modules/.bin/eslint")
    before = place.identity("npx eslint", folder)
    same_size(marker)
    assert place.identity("npx eslint", folder) != before
    assert place.identity("eslint", folder)


def test_bun_leaves_no_list_of_what_it_has_installed(place: Place) -> None:
    place.program("bun")
    (place.root / "node_modules").mkdir()
    with pytest.raises(ToolError):
        place.identity("bun run test")


@pytest.mark.parametrize("path", ["../pyenv/shims/mypy", "mise", "../volta/bin/volta-shim"])
def test_one_of_several_versions(place: Place, path: str) -> None:
    real = place.program(path)
    place.env["PATH"] += os.pathsep + str(real.parent)
    if real.name != "mypy":
        (place.bin / "mypy").symlink_to(real)
    with pytest.raises(ToolError):
        place.identity("mypy")


def test_toolchains(place: Place) -> None:
    rustup = place.program("rustup")
    (place.bin / "cargo").symlink_to(rustup)
    before = place.identity("cargo fmt")
    hashes = place.home / ".rustup/update-hashes"
    hashes.mkdir(parents=True)
    (hashes / "stable").write_text("a")
    assert (second := place.identity("cargo fmt")) != before
    same_size(hashes / "stable")
    assert (third := place.identity("cargo fmt")) != second
    (hashes.parent / "settings.toml").write_text("a")
    assert (fourth := place.identity("cargo fmt")) != third
    place.env["RUSTUP_TOOLCHAIN"] = "nightly"
    assert place.identity("cargo fmt") != fourth


def test_the_signature_of_a_folder_is_of_the_files_in_it(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    before = signature(str(tmp_path))
    (tmp_path / "a").write_text("a")
    assert (second := signature(str(tmp_path))) != before
    same_size(tmp_path / "a")
    assert (third := signature(str(tmp_path))) != second
    (tmp_path / "below").mkdir()
    (tmp_path / "below/b").write_text("b")
    assert signature(str(tmp_path)) != third
    assert signature(f"{tmp_path}/none") == f"{tmp_path}/none -"
