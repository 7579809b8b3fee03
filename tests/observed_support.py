"""Runs of commands under strace, one after the other, as the engine makes them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gitgates.core.types import Command
from gitgates.observed.command import observed
from gitgates.observed.reads import read_output
from gitgates.observed.settled import dependencies
from gitgates.observed.state import Reader
from gitgates.observed.unchanged import Dependencies, first_difference, states_before

needs_strace = pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")


def command_of(*argv: str, cwd: Path, env: dict[str, str] | None = None) -> Command:
    return Command(argv=argv, cwd_abs=str(cwd), env=env or dict(os.environ), stdin_abs="")


class Observer:
    """Observes commands in one root. `outside` is where it writes what it needs itself."""

    def __init__(self, root: Path, outside: Path, scratch: str = "") -> None:
        self.root, self.scratch = root, scratch
        self._output = outside / "strace.out"
        self._digests: dict[str, str] = {}
        self._before: dict[str, str] = {}
        self.status = 0
        self.stdout = b""

    def reader(self, root: Path | None = None) -> Reader:
        temporary = (os.environ.get("TMPDIR", "/tmp"), str(self._output.parent / "tmp"))
        scratch = (lambda path: path == self.scratch) if self.scratch else None
        return Reader(str(root or self.root), self._digests, temporary, scratch)

    def run(
        self, *argv: str, cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> Dependencies:
        self._output.unlink(missing_ok=True)
        self._output.touch()
        began_ns = self._output.stat().st_mtime_ns
        command = observed(command_of(*argv, cwd=cwd or self.root, env=env), str(self._output))
        ended = subprocess.run(
            command.argv, cwd=command.cwd_abs, env=command.env, stdout=subprocess.PIPE, check=False
        )
        self.status, self.stdout = ended.returncode, ended.stdout
        with self._output.open(encoding="ascii", errors="surrogateescape") as lines:
            seen = read_output(lines, command.cwd_abs)
        reader = self.reader()
        found = dependencies(seen, reader, self._before, began_ns)
        self._before = states_before(found, reader)
        return found

    def settled(self, *argv: str) -> Dependencies:
        """Run it until it may be reused, at most twice."""
        first = self.run(*argv)
        found = self.run(*argv) if first.unreusable else first
        assert (found.unreusable, found.spoilt) == ("", "")
        return found

    def difference(self, was: Dependencies, root: Path | None = None) -> str:
        return first_difference(was, self.reader(root))
