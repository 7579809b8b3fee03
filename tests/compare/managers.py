"""The hook managers that are compared: how each is set up, and how to find it among processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
FRAMEWORK = """\
default_install_hook_types: [pre-commit, pre-push]
repos:
- repo: local
  hooks:
  - {{id: gate, name: gate, entry: sh {gate}, language: system, always_run: true,
     pass_filenames: false, verbose: true, stages: [pre-commit, pre-push]}}
"""
LEFTHOOK = """\
pre-commit: {{jobs: [{{name: gate, run: sh {gate}}}]}}
pre-push: {{jobs: [{{name: gate, run: sh {gate}}}]}}
"""
GITGATES = """\
[tool.gitgates.gates.gate]
command = "sh {gate}"
[tool.gitgates.hooks.pre-commit]
gates = ["gate"]
[tool.gitgates.hooks.pre-push]
gates = ["gate"]
"""


class Manager(NamedTuple):
    """One hook manager, as a project sets it up."""

    name: str
    file: str
    text: str
    install: tuple[str, ...]
    version: tuple[str, ...]
    mark: str  # what the name of its program, or else its command line, has

    def is_it(self, pid: int) -> bool:
        """Return whether a process is the manager itself, not a shell that started it."""
        try:
            program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            return False
        if program == self.mark:
            return True
        return program.startswith("python") and self.mark in words

    def says_version(self) -> str:
        """Return its name and version."""
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(self.version, env=env, capture_output=True, text=True, check=True)
        words = done.stdout.split()
        return f"{self.name} {next(word for word in words if word[0].isdigit())}"


def program(name: str) -> str:
    """Return where a program of the development environment is."""
    return str(Path(sys.executable).parent / name)


MANAGERS = (
    Manager(
        "pre-commit",
        ".pre-commit-config.yaml",
        FRAMEWORK,
        (program("pre-commit"), "install"),
        (program("pre-commit"), "--version"),
        "-mpre_commit",
    ),
    Manager(
        "prek",
        ".pre-commit-config.yaml",
        FRAMEWORK,
        (program("prek"), "install"),
        (program("prek"), "--version"),
        "prek",
    ),
    Manager(
        "lefthook",
        "lefthook.yml",
        LEFTHOOK,
        (program("lefthook"), "install"),
        (program("lefthook"), "version"),
        "lefthook",
    ),
    Manager(
        "gitgates",
        "pyproject.toml",
        GITGATES,
        (sys.executable, "-m", "gitgates", "install-hooks"),
        (sys.executable, "-m", "gitgates", "--version"),
        "git-hook",
    ),
)
