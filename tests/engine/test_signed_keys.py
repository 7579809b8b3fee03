"""The key of a pass: the same wherever gate and files are the same, whatever is installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import Repo

from gitgates.core.types import Event, Gate, Hook, Plan, Step, make_gate
from gitgates.engine.reuse.signed_keys import commands_for, definition_sha256, key_of
from gitgates.engine.reuse.visible_content import UnknownContentError, VisibleContent
from gitgates.git.repo import find_repo

GATE = make_gate(name="lint", command="lint-it a.txt", reuse=True)
PASSED = GATE.changed(pass_files=True, files=("*.txt",))
FILES = ("a.txt", "b.txt", "x.toml", "uv.lock", "sub/package-lock.json", "sub/c.txt")


class Machine:
    """A clone, in a folder and with an environment of its own."""

    def __init__(self, path: Path, **env: str) -> None:
        self.repo, self.env = Repo.init(path), {**os.environ, "HOME": str(path), **env}
        for file in FILES:
            self.repo.write(file, f"{file}\n")

    def key(self, gate: Gate = GATE, *paths: str) -> str:
        """Return the key of a pass of a gate on the files as they are now."""
        repo = find_repo(str(self.repo.path), self.env)
        step = Step(gate=gate, paths=paths)
        event = Event(host="manual", name="manual", root_abs=repo.root_abs)
        plan = Plan(event=event, hook=Hook("manual"), listed=(gate.name,), steps=(step,))
        commands = commands_for(plan, repo)(step._replace(paths=()))
        return key_of(step, commands, repo.root_abs, VisibleContent(repo, None))


@pytest.fixture(name="pair")
def _pair(tmp_path: Path) -> tuple[Machine, Machine]:
    others = {"PATH": f"/opt/other:{os.environ['PATH']}", "PYTHONPATH": "/opt", "TZ": "Asia/Tokyo"}
    return Machine(tmp_path / "first/clone"), Machine(tmp_path / "other/in/a/folder", **others)


GATES = {
    "whole": GATE,
    "paths": PASSED,
    "by file": PASSED.changed(reuse="by-file", inputs=("x.toml",)),
    "inputs": GATE.changed(inputs=("*.txt",)),
    "a folder": GATE.changed(working_dir="sub"),
    "the framework": GATE.changed(command=None, pre_commit=("hook",)),
}


def test_it_is_the_same_on_two_machines(pair: tuple[Machine, Machine], tmp_path: Path) -> None:
    program = tmp_path / "other/in/a/folder/bin/pre-commit"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    pair[1].env["PATH"] = f"{program.parent}:{pair[1].env['PATH']}"
    pair[1].repo.write(".git/info/exclude", "bin\n")
    keys = [[machine.key(gate, "a.txt") for gate in GATES.values()] for machine in pair]
    assert keys[0] == keys[1]
    assert len({*keys[0]}) == len(GATES)
    assert all(len(key) == 64 for key in keys[0])


def _edit(name: str, text: str = "other\n") -> Callable[[Machine], object]:
    return lambda machine: machine.repo.write(name, text)


CONTENTS: dict[str, Callable[[Machine], object]] = {
    "content": _edit("a.txt"),
    "line endings": _edit("a.txt", "a.txt\r\n"),
    "a new file": _edit("new"),
    "an executable file": lambda machine: (machine.repo.path / "b.txt").chmod(0o755),
    "a link": lambda machine: (machine.repo.path / "c").symlink_to("a.txt"),
    "a file less": lambda machine: (machine.repo.path / "x.toml").unlink(),
}


def test_it_is_another_on_other_files(pair: tuple[Machine, Machine]) -> None:
    seen = {pair[0].key()}
    for name, change in CONTENTS.items():
        change(pair[0])
        key = pair[0].key()
        assert key not in seen, name
        seen.add(key)


DEFINITIONS = {
    "option": GATE.changed(command="lint-it a.txt --fast"),
    "list": GATE.changed(command=("lint-it", "a.txt")),
    "variable": GATE.changed(env=(("A", "b"),)),
    "folder": GATE.changed(working_dir="sub"),
    "writes": GATE.changed(writes=True),
    "index": GATE.changed(git_env="clean"),
    "files": PASSED,
}


def test_it_is_another_of_another_gate(pair: tuple[Machine, Machine]) -> None:
    machine = pair[0]
    keys = {name: machine.key(gate, "a.txt") for name, gate in DEFINITIONS.items()}
    keys |= {"gate": machine.key(GATE, "a.txt"), "name": machine.key(GATE._replace(name="other"))}
    keys |= {"paths": machine.key(PASSED, "b.txt"), "more": machine.key(PASSED, "a.txt", "b.txt")}
    assert len({*keys.values()}) == len(keys)
    definitions = {definition_sha256(gate) for gate in (GATE, *DEFINITIONS.values())}
    assert len(definitions) == len(DEFINITIONS) + 1
    # What is not passed makes no difference.
    assert machine.key(GATE, "a.txt") == machine.key(GATE, "b.txt")


@pytest.mark.parametrize("uname", [("Darwin", "x86_64"), ("Linux", "aarch64")])
def test_it_is_another_on_another_system(
    pair: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch, uname: tuple[str, str]
) -> None:
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(sysname="Linux", machine="x86_64"))
    here = pair[0].key()
    sysname, machine = uname
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(sysname=sysname, machine=machine))
    assert pair[0].key() != here


def test_how_the_paths_are_split_makes_no_difference(
    pair: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = pair[0].key(PASSED, "a.txt", "b.txt")
    monkeypatch.setattr("gitgates.engine.reuse.signed_keys.argument_limit", lambda _env: 1)
    assert pair[0].key(PASSED, "a.txt", "b.txt") == expected


# Pattern of `inputs`, and folder → files that make a difference, of those that may.
INPUTS = {
    (("a.txt",), "."): {"a.txt", "uv.lock"},
    (("*.txt", "!b.txt"), "."): {"a.txt", "sub/c.txt", "uv.lock"},
    (("a.txt",), "sub"): {"a.txt", "uv.lock", "sub/package-lock.json"},
}


@pytest.mark.parametrize(("patterns", "folder"), INPUTS)
def test_of_inputs_only_those_and_lock_files_count(
    pair: tuple[Machine, Machine], patterns: tuple[str, ...], folder: str
) -> None:
    gate = GATE.changed(inputs=patterns, working_dir=folder)
    counted = set()
    for name in FILES:
        before = pair[0].key(gate)
        pair[0].repo.write(name, "other\n")
        counted |= {name} if pair[0].key(gate) != before else set()
    assert counted == INPUTS[patterns, folder]
    before = pair[0].key(gate)
    pair[0].repo.write("requirements-dev.txt", "ruff\n")
    assert pair[0].key(gate) != before


def test_by_file_it_counts_which_files_there_are(pair: tuple[Machine, Machine]) -> None:
    gate = GATES["by file"]
    before = pair[0].key(gate, "a.txt")
    pair[0].repo.write("b.txt", "other\n")
    assert pair[0].key(gate, "a.txt") == before
    pair[0].repo.write("new.txt")
    assert pair[0].key(gate, "a.txt") != before


NO_KEY: dict[str, tuple[Gate, tuple[str, ...]]] = {
    "no file matches `nothing.txt` of `inputs`": (
        GATE.changed(inputs=("a.txt", "nothing.txt")),
        (),
    ),
    "no file matches `inputs`": (GATE.changed(inputs=("!a.txt",)), ()),
    "git ignores a file that is passed": (PASSED, ("a.txt", "ignored.txt")),
}


@pytest.mark.parametrize("why", NO_KEY)
def test_what_is_about_no_known_files_has_none(pair: tuple[Machine, Machine], why: str) -> None:
    pair[0].repo.write(".git/info/exclude", "ignored.txt\n")
    pair[0].repo.write("ignored.txt")
    gate, paths = NO_KEY[why]
    with pytest.raises(UnknownContentError, match=why):
        pair[0].key(gate, *paths)
