"""Find what else checks a change: other hook managers, and CI for hints."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from gitgates.core.lifecycle import GIT_HOOKS
from gitgates.core.record import Record
from gitgates.proc.call import find_runner
from gitgates.setup.discover.candidates import GateCandidate
from gitgates.setup.discover.folder import KNOWN, ProjectFolder
from gitgates.setup.install.framework import FILE, read_hooks, stages_of
from gitgates.setup.task_files import table

_PREK = "prek.toml"
_HOOKS = frozenset(point.name for point in GIT_HOOKS)
_FRAMEWORK_HOOKS = ("pre-commit", "pre-push", "commit-msg", "prepare-commit-msg")
_FEW_HINTS = 5
_LONGEST = 100  # of a command in a hint
_RUN = re.compile(r"(?P<indent>[ ]*(?:- )?)(?:run|command|script|before_script):[ ]*(?P<text>.*)")
_COMMAND = re.compile(r"(?:\./)?[A-Za-z][\w./-]*(?: |$)")
_CHECKS = re.compile(KNOWN["ci"]["words"].strip(), re.IGNORECASE)
_INSTALLS = re.compile(
    r"\b(?:install|sync|restore|upload|download|apt|echo|cd|cache)\b|^(?:if|for|git|gh) "
)


class HookManager(Record):
    """A hook manager that is in use, other than pre-commit and prek."""

    name: str
    file: str  # its settings


class FrameworkGate(Record):
    """The gate that runs all hooks of pre-commit or prek, and the git hooks in which it runs."""

    runner: str
    source: str
    hooks: tuple[str, ...]
    missing: str = ""  # why it cannot start

    @property
    def candidate(self) -> GateCandidate:
        """Return the candidate to try: all its hooks, on all files."""
        command = f"{self.runner} run --all-files"
        return GateCandidate("format", command, self.source, framework=self.runner)

    def table(self) -> dict[str, object]:
        """Return the gate's keys."""
        keys = {"description": f"The hooks of {self.source}", "pre-commit": True, "timeout": "5m"}
        return {**keys, "runner": "prek"} if self.runner == "prek" else keys


def find_framework(root: ProjectFolder, env: Mapping[str, str]) -> FrameworkGate | None:
    """Return the gate for pre-commit or prek; None if neither is used, or if it runs gitgates."""
    source = root.find(FILE, _PREK)
    settings = root.table(source)
    hooks = read_hooks(settings)
    if not hooks or any("gitgates" in str(hook.get("id")) for hook in hooks):
        return None
    stages = [stages_of(hook, settings) or ("pre-commit", "pre-push") for hook in hooks]
    names = {name for each in stages for name in each}
    run = [hook for hook in _FRAMEWORK_HOOKS if hook in names]
    run += ["manual"] if "pre-commit" in run else []
    runners = ("prek",) if source == _PREK else ("pre-commit", "prek")
    present = [name for name in runners if os.access(find_runner(name, env)[0], os.X_OK)]
    runner = (*present, *runners)[0]
    return FrameworkGate(runner, source, tuple(run), "" if present else f"{runner} is not found")


def managed_hooks(root: ProjectFolder) -> dict[str, HookManager]:
    """Return the git hooks that other hook managers run: hook → manager."""
    managed: dict[str, HookManager] = {}
    for row in KNOWN["managers"]:
        patterns = row["files"].split()
        if "paths" not in row:
            # In `.husky/_`, husky has a stub for every hook.
            folder = os.path.dirname(patterns[0])
            own = [name for name in sorted(root.files) if os.path.dirname(name) == folder]
            scripts = [name for name in own if fnmatchcase(name, patterns[0])]
            managed |= {os.path.basename(name): HookManager(row["name"], name) for name in scripts}
        elif name := root.find(*patterns):
            for path in row["paths"].split():
                keys = table(root.table(name), *(key for key in path.split(".") if key))
                managed |= dict.fromkeys(keys, HookManager(row["name"], name))
    return {hook: manager for hook, manager in managed.items() if hook in _HOOKS}


def ci_hints(root: ProjectFolder, commands: Iterable[str]) -> list[str]:
    """Return what CI runs in addition to some commands, as `file:line: command`."""
    patterns, proposed = KNOWN["ci"]["files"].split(), {*commands}
    hints: dict[str, str] = {}
    for file in sorted(root.files):
        is_of_ci = any(fnmatchcase(file, pattern) for pattern in patterns)
        for number, text in _ci_commands(root.text(file)) if is_of_ci else ():
            is_check = _COMMAND.match(text) and _CHECKS.search(text)
            if is_check and not _INSTALLS.search(text) and text not in proposed:
                hints.setdefault(text, f"{file}:{number}: {text[:_LONGEST]}")
    more = len(hints) - _FEW_HINTS
    return [*hints.values()][:_FEW_HINTS] + ([f"and {more} more"] if more > 0 else [])


def _ci_commands(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of scripts in a CI file, with their numbers."""
    indent = -1  # of the key whose script follows
    for number, line in enumerate(text.split("\n"), 1):
        depth = len(line) - len(line.lstrip())
        is_item = depth == indent and line.lstrip().startswith("- ")
        if indent >= 0 and (not line.strip() or depth > indent or is_item):
            yield number, line.strip().removeprefix("- ").strip("'\"")
            continue
        indent = -1
        if match := _RUN.fullmatch(line):
            is_block = match["text"] in ("", "|", "|-", ">", ">-", "|+", ">+")
            indent = len(match["indent"]) if is_block else -1
            if not is_block:
                yield number, match["text"].strip().strip("'\"")
