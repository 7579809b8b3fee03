"""A gate that looks at what its arguments name, and a world of files that change at random."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

# The gate: it does what its arguments say, in the current folder, and prints what it has seen.
GATE = """
import os, stat, subprocess, sys

def read(path):
    with open(path) as file:
        return file.read()

def look(how, path):
    if how == "read":
        return read(path)
    if how == "follow":
        return read(os.path.join(os.path.dirname(path), read(path)[:2]))
    if how in ("stat", "lstat"):
        found = getattr(os, how)(path)
        size = found.st_size if stat.S_ISREG(found.st_mode) else 0
        return f"{found.st_mode:o} {size}"
    if how == "link":
        return os.readlink(path)
    if how == "list":
        with os.scandir(path) as entries:
            return str(sorted((e.name, e.is_symlink(), e.is_file()) for e in entries))
    if how == "may":
        return str(os.access(path, os.R_OK))
    if how == "run":
        return subprocess.run([os.path.abspath(path)], stdout=-1, stderr=-1).stdout.decode()
    if how == "up":
        folder = os.path.abspath(".")
        for up in range(3):
            folder = os.path.dirname(folder)
            if os.path.exists(os.path.join(folder, path)):
                return f"{up} {read(os.path.join(folder, path))}"
        return "nowhere"
    if how == "enter":
        before = os.getcwd()
        os.chdir(path)
        try:
            return str(sorted(os.listdir("."))) + look("stat", "..")
        finally:
            os.chdir(before)
    if how == "cache":
        os.makedirs(".cache", exist_ok=True)
        for name, text in (("CACHEDIR.TAG", "x"), (path.replace("/", "_"), read(path))):
            try:
                same = read(f".cache/{name}") == text
            except OSError:
                same = False
            if not same:
                with open(f".cache/{name}", "w") as file:
                    file.write(text)
        return read(f".cache/{path.replace('/', '_')}")
    raise AssertionError(how)

def see(steps):
    seen = []
    for how, path in steps:
        try:
            seen.append(look(how, path))
        except OSError as error:
            seen.append(type(error).__name__)
    return "\\n".join(map(repr, seen))

if __name__ == "__main__":
    words = sys.argv[1:]
    print(see(list(zip(words[::2], words[1::2]))))
"""
HOWS = ("read", "follow", "stat", "lstat", "link", "list", "may", "run", "up", "enter", "cache")
NAMES = ("f1", "f2", "d1", "d2", "l1", "s1", "no")
FOLDERS = ("", "d1/", "d2/", "d1/d2/", "../out/", "../out/d1/", "l1/", "d1/../")
CONTENTS = ("f1", "f2", "d1", "abc\n", "abd\n", "")


class World:
    """Two worktrees in which files change, and `out` beside them."""

    def __init__(self, roots: tuple[Path, ...], seed: int) -> None:
        self.random = random.Random(seed)
        self.roots = roots
        (roots[0].parent / "out").mkdir(exist_ok=True)
        for _ in range(60):
            self.change()

    def path(self) -> str:
        return self.random.choice(FOLDERS) + self.random.choice(NAMES)

    def steps(self) -> list[tuple[str, str]]:
        """Return what a gate looks at, and how."""
        return [(self.random.choice(HOWS), self.path()) for _ in range(self.random.randint(1, 5))]

    def change(self) -> str:
        """Change something at random; return what."""
        root = self.random.choice(self.roots[:2])
        path = os.path.join(root, self.path())
        do: Callable[[str], None] = self.random.choice(
            (
                *(self.write, self.write, self.keep_times, self.remove, self.folder, self.link),
                *(self.mode, self.script, self.move),
            )
        )
        try:
            do(path)
        except OSError:
            return ""
        return f"{do.__name__} {path}"

    def write(self, path: str) -> None:
        with open(path, "w") as file:
            file.write(self.random.choice(CONTENTS))

    def keep_times(self, path: str) -> None:
        before = os.stat(path)
        with open(path, "r+") as file:
            old = file.read()
            file.seek(0)
            file.write(old[::-1])
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def remove(self, path: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def folder(self, path: str) -> None:
        if os.path.isfile(path):
            os.unlink(path)
        os.mkdir(path)

    def link(self, path: str) -> None:
        if os.path.islink(path) or os.path.isfile(path):
            os.unlink(path)
        os.symlink(self.random.choice(("f1", "d1", "../out", "../out/f1", "no", "d1/d2")), path)

    def mode(self, path: str) -> None:
        os.chmod(path, self.random.choice((0o755, 0o700, 0o744)))

    def script(self, path: str) -> None:
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\ncat {self.random.choice(NAMES)}\n")
        os.chmod(path, 0o755)

    def move(self, path: str) -> None:
        os.rename(path, os.path.join(os.path.dirname(path), self.random.choice(NAMES)))


def see(root: Path, steps: list[tuple[str, str]]) -> str:
    """Return what a gate would see now, without a process of its own."""
    namespace: dict[str, Callable[[list[tuple[str, str]]], str]] = {}
    exec(GATE, namespace)
    looks = [("read", path) if how == "cache" else (how, path) for how, path in steps]
    folder = os.getcwd()
    os.chdir(root)
    try:
        return namespace["see"](looks)
    finally:
        os.chdir(folder)
