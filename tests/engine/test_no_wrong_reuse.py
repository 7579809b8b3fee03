"""Random changes: a pass is reused only for what has really passed, and is reused for that.

An oracle remembers all that a gate could see when it ran and passed: bytes and modes of the files
that git does not ignore, its programs, variables and definition.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from reuse_support import Checker

from gitgates.core.types import Gate

PATHS = ("a.txt", "b.txt", "src/c.txt", "src/d e.txt", "probe.toml")
GOOD = ("x\ny\n", "z\ny\n", "x\r\ny\n", "x\ny\r\n", "$Id$\n")
CONTENTS = (*GOOD, *GOOD, "BAD\n")
ATTRIBUTES = ("", "* text=auto\n", "*.txt text eol=crlf\n", "*.txt ident\n", "b.txt -text\n")
EXCLUDES = ("", "*.log\n", "*.log\nb.txt\n")
INTERPRETER = '#!/bin/sh\n# {}\nexec /bin/sh "$@"\n'
PROBE = """\
#!{bin}/interpreter
# {version}
echo "ran $*" >> "$OUT/log"
[ -z "$MEANWHILE" ] || sh -c "$MEANWHILE"
! grep -qs BAD {files}
"""
# What somebody does while the gate runs; after the last three, all looks as before.
MEANWHILE = (
    *("printf 'x\ny\n' > a.txt", "printf 'z\ny\n' > new.txt", "chmod +x b.txt; :", "rm -f b.txt"),
    "touch -d 2001-02-03 a.txt; :",
    "cp -p a.txt ../kept; printf 'z\ny\n' > a.txt; sleep 0.02; cp -p ../kept a.txt; :",
    "mv a.txt ../kept; ln -s b.txt a.txt; mv ../kept a.txt; :",
)
ALL_FILES = "$(git ls-files -co --exclude-standard | grep -v ' ')"


class World:
    """Two worktrees of a repository, and tools, that change at random."""

    def __init__(self, repo: Repo, out: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.at = Checker(repo, out)
        self.done: list[str] = [f"seed {seed}"]
        repo.git("config", "core.safecrlf", "false")
        for path in PATHS:
            repo.write(path, CONTENTS[0])
        repo.commit_all("first")
        repo.git("branch", "side")
        repo.git("worktree", "add", "-q", "-b", "other", "../other")
        self.roots = [repo, Repo(repo.path.parent / "other")]
        self.flagged = [False, False]
        self.variables = {"DECLARED": "", "OTHER": ""}
        self.arguments = ""
        self.inputs: tuple[str, ...] = ()
        self.versions = {"interpreter": 1, "probe": 1, "probe-files": 1}
        for name in self.versions:
            self.at.tool(name, self.tool_text(name))
        self.passed: set[object] = set()
        self.runs = self.reused = self.again = 0
        self.seconds = 1

    def tool_text(self, name: str) -> str:
        version = self.versions[name]
        if name == "interpreter":
            return INTERPRETER.format(version)
        files = ALL_FILES if name == "probe" else '"$@"'
        return PROBE.format(bin=self.at.bin, version=version, files=files)

    # What changes

    def change(self) -> None:
        """Change one thing."""
        number = self.random.randrange(2)
        root = self.roots[number]
        changes: list[tuple[int, Callable[[Repo], str]]] = [
            (8, self._write),
            (2, self._delete),
            (2, self._rename),
            (5, self._mode),
            (3, self._link),
            (5, self._git),
            (3, self._setting),
            (4, self._settle),
            (2, self._tool),
            (1, self._variable),
            (1, self._definition),
            (2, self._attributes),
            (1, self._excludes),
        ]
        weights = [weight for weight, _change in changes]
        (_weight, change) = self.random.choices(changes, weights)[0]
        if self.random.random() < 0.08:
            self.flagged[number] = not self.flagged[number]
            flag = "assume-unchanged" if self.flagged[number] else "no-assume-unchanged"
            done = root.ask("git", "update-index", f"--{flag}", "a.txt").returncode
            self.flagged[number] &= not done
            self.done.append(f"{number}: {flag} {done}")
        self.done.append(f"{number}: {change.__name__} {change(root)}")

    def _path(self, root: Repo) -> Path:
        return root.path / self.random.choice(PATHS)

    def _write(self, root: Repo) -> str:
        path, content = self._path(root), self.random.choice(CONTENTS).encode()
        if path.is_symlink() or self.random.random() < 0.3:
            path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return f"{path.name} {content!r}"

    def _delete(self, root: Repo) -> str:
        path = self._path(root)
        path.unlink(missing_ok=True)
        return path.name

    def _rename(self, root: Repo) -> str:
        one, two = self._path(root), self._path(root)
        if os.path.lexists(one) and two.parent.exists():
            one.rename(two)
        return f"{one.name} {two.name}"

    def _mode(self, root: Repo) -> str:
        path = self._path(root)
        if path.exists() and not path.is_symlink():
            path.chmod(path.stat().st_mode ^ 0o111)
        return path.name

    def _link(self, root: Repo) -> str:
        path = self._path(root)
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(self.random.choice(("a.txt", "b.txt")))
        return path.name

    def _git(self, root: Repo) -> str:
        path = self.random.choice(PATHS)
        commands = (
            *(("add", "-A"), ("add", "-A"), ("commit", "-qam", "c"), ("reset", "-q", "--hard")),
            *(("reset", "-q"), ("stash", "-q"), ("stash", "pop", "-q"), ("checkout", "--", path)),
            *(("checkout", "-q", "--detach", branch) for branch in ("main", "side", "other")),
            *(("branch", "-qf", "side"), ("rm", "-qf", path), ("rm", "-q", "--cached", path)),
        )
        command = self.random.choice(commands)
        return f"{command} {root.ask('git', *command).returncode}"

    def _setting(self, root: Repo) -> str:
        values = {"core.autocrlf": ("true", "input", "false"), "core.fileMode": ("true", "false")}
        name = self.random.choice([*values])
        value = self.random.choice(values[name])
        root.git("config", name, value)
        return f"{name} {value}"

    def _settle(self, root: Repo) -> str:
        """Have git trust a file without reading it; it does not trust what is a second old."""
        path = self._path(root)
        if self.random.random() < 0.5:
            root.ask("git", "checkout", "-f", "--", str(path))
        if path.is_file() and not path.is_symlink():
            self.seconds += 1
            os.utime(path, (self.seconds, self.seconds))
            root.ask("git", "add" if self.random.random() < 0.5 else "status", "--", str(path))
        return path.name

    def _tool(self, _root: Repo) -> str:
        name = self.random.choice([*self.versions])
        self.versions[name] = 3 - self.versions[name]
        path = self.at.bin / name
        before = path.stat()
        if self.random.random() < 0.5:
            path.write_text(self.tool_text(name))
        else:
            path = self.at.tool(name, self.tool_text(name))
        older = self.random.choice((0, 10**9))
        os.utime(path, ns=(before.st_mtime_ns - older, before.st_mtime_ns - older))
        return name

    def _variable(self, _root: Repo) -> str:
        name = self.random.choice([*self.variables])
        self.variables[name] = self.random.choice(("", "1"))
        return name

    def _definition(self, _root: Repo) -> str:
        self.arguments = self.random.choice(("", " x"))
        self.inputs = self.random.choice(((), ("src/",)))
        return f"{self.arguments!r} {self.inputs}"

    def _attributes(self, root: Repo) -> str:
        text = self.random.choice(ATTRIBUTES)
        place = self.random.choice((root.path / ".gitattributes", self._common("attributes")))
        place.write_text(text)
        return f"{place} {text!r}"

    def _excludes(self, _root: Repo) -> str:
        self._common("exclude").write_text(self.random.choice(EXCLUDES))
        return ""

    def _common(self, name: str) -> Path:
        return self.roots[0].path / ".git/info" / name

    # What a gate sees

    def files(self, root: Repo) -> dict[str, tuple[str, bytes]]:
        """Return path → kind and bytes of all files that git does not ignore."""
        listed = root.ask("git", "ls-files", "-coz", "--exclude-standard").stdout
        files = {}
        for path in filter(None, listed.decode().split("\0")):
            place = root.path / path
            if place.is_symlink():
                files[path] = "link", os.readlink(place).encode()
            elif place.is_file():
                mode = "x" if place.stat().st_mode & 0o100 else "-"
                files[path] = mode, place.read_bytes()
        return files

    def conditions(self, tool: str) -> tuple[object, ...]:
        tools = tuple((self.at.bin / name).read_bytes() for name in ("interpreter", tool))
        return (tool, tools, self.variables["DECLARED"], self.arguments)

    # Runs

    def whole(self, root: Repo) -> bool:
        """Run the gate about all files; return whether a further run is to reuse its pass."""
        gate = Gate(
            name="whole",
            command=f"probe{self.arguments}",
            reuse=True,
            inputs=self.inputs,
            env_inputs=("DECLARED",),
        )
        files = self.files(root)
        seen = {path: now for path, now in files.items() if path.startswith(self.inputs or "")}
        # Where `inputs` are fewer than what it reads, its verdict is about these all the same.
        state = (*self.conditions("probe"), self.inputs, *sorted(seen.items()))
        are_there = all(files.get(name, ("link", b""))[0] != "link" for name in ("a.txt", "b.txt"))
        meanwhile = ""
        if are_there and self.random.random() < 0.15:
            meanwhile = self.random.choice(MEANWHILE)
        variables = {**self.variables, "MEANWHILE": meanwhile}
        (result,) = self.at.run(gate, root=root.path, **variables)  # type: ignore[arg-type]
        was_reused = [*self.at.log()] == []
        if meanwhile and not was_reused and not self.inputs:  # what is written is none of those
            self.done.append(f"{result.status} with {meanwhile}")
            return False  # it has seen more than one content
        has_passed = self._judge(state, result.status, was_reused=was_reused)
        return has_passed and (bool(seen) or not self.inputs)  # what names no file is a mistake

    def _judge(self, state: object, status: str, *, was_reused: bool) -> bool:
        self.runs += 1
        self.done.append(f"{status} {'reused' if was_reused else 'ran'}")
        if was_reused:
            self.reused += 1
            assert status == "passed", self.done
            assert state in self.passed, self.done
        elif status == "passed":
            self.passed.add(state)
        return status == "passed"

    def by_file(self, root: Repo) -> bool:
        """Run the gate about each file."""
        gate = Gate(
            name="by-file",
            command=("probe-files", *self.arguments.split()),
            reuse="by-file",
            files=("*.txt",),
            exclude=("d e.txt",),
            pass_files=True,
            inputs=("probe.toml",),
            env_inputs=("DECLARED",),
        )
        files = self.files(root)
        paths = tuple(path for path in files if path.endswith(".txt") and " " not in path)
        if not paths:
            return False
        shared = (*self.conditions("probe-files"), files.get("probe.toml"), *sorted(files))
        (result,) = self.at.run(gate, root=root.path, paths=paths, **self.variables)
        passed = {name for line in self.at.log() for name in line.split()}
        rest = [path for path in paths if path in passed]
        self.runs += 1
        self.reused += len(rest) < len(paths)
        self.done.append(f"by file: {result.status} {rest} of {paths}")
        for path in paths:
            place = root.path / path  # of a link, where it leads
            content = place.read_bytes() if place.is_file() else b""
            state = (path, files[path], content, *shared)
            if path not in rest:
                assert state in self.passed, self.done
            elif result.status == "passed":
                self.passed.add(state)
        return result.status == "passed" and all(files[path][0] != "link" for path in paths)

    def step(self, run: Callable[[Repo], bool]) -> None:
        """Change something, and run a gate; sometimes again, which is to reuse its pass."""
        for _ in range(self.random.randint(1, 2)):
            self.change()
        number = self.random.randrange(2)
        self.done.append(f"run in {number}")
        has_passed = run(self.roots[number])
        if has_passed and self.random.random() < 0.4:
            before, self.again = self.reused, self.again + 1
            run(self.roots[number])
            assert self.reused == before + 1, self.done


def walk(repo: Repo, out: Path, *, seed: int, steps: int) -> None:
    world = World(repo, out, seed)
    for _ in range(steps):
        world.step(world.random.choice((world.whole, world.by_file)))
    # A walk that never reuses shows nothing.
    assert world.again > steps / 40
    assert world.reused > world.again + steps / 40, (world.reused, world.again)


@pytest.mark.slow
@pytest.mark.samples(1, "nightly")
@pytest.mark.parametrize("seed", range(3))
def test_no_wrong_reuse(repo: Repo, out: Path, seed: int) -> None:
    walk(repo, out, seed=seed, steps=100)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 140))
def test_no_wrong_reuse_in_many_steps(repo: Repo, out: Path, seed: int) -> None:
    walk(repo, out, seed=seed, steps=250)


class Processes(World):
    """The same by `gitgates run` in processes of their own, with a hook's configuration."""

    def whole(self, root: Repo) -> bool:
        text = (
            "[tool.gitgates.gates.whole]\nreuse = true\nenv_inputs = ['DECLARED']\n"
            f"command = 'probe{self.arguments}'\n[tool.gitgates.hooks.manual]\ngates = ['whole']\n"
        )
        root.write("pyproject.toml", text)
        files = self.files(root)
        state = (*self.conditions("probe"), *sorted(files.items()))
        path = f"{self.at.bin}{os.pathsep}{os.environ['PATH']}"
        program = (sys.executable, "-m", "gitgates", "run")
        done = root.ask(*program, env={"PATH": path, **self.variables})
        assert done.returncode in (0, 1), (done.stdout, done.stderr, self.done)
        status = "failed" if done.returncode else "passed"
        return self._judge(state, status, was_reused=[*self.at.log()] == [])


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(200, 204))
def test_no_wrong_reuse_by_processes(repo: Repo, out: Path, seed: int) -> None:
    world: Any = Processes(repo, out, seed)
    for _ in range(50):
        world.step(world.whole)
    assert world.reused > 3
