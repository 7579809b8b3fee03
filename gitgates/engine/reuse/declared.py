"""Passes on what a gate is declared to read, if it cannot be observed.

That is the tree, or `inputs`; the variables of `env_inputs`; and the files of `reads`.
"""

from __future__ import annotations

import os
import time

from gitgates.core.record import Record
from gitgates.engine.plan.walk import first_names
from gitgates.engine.reuse.visible_content import UnknownContentError
from gitgates.observed.state import Reader
from gitgates.store import proofs
from gitgates.store.proofs import definition, digest
from gitgates.worktree.lock_files import LOCK_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from gitgates.core.types import Command, Gate, Step
    from gitgates.engine.reuse.visible_content import VisibleContent
    from gitgates.git.repo import Repo
    from gitgates.store.proofs import Proof


class Declaration(Record):
    """What a gate is about to see, by what is declared."""

    seen: str  # a digest of the content
    key: str  # a digest of the other conditions; empty: only the content is compared
    content: VisibleContent  # before it runs
    commands: tuple[Command, ...]


class Declarations:
    """The declarations of the gates of one run. `remote`: see engine/run/remote.py."""

    def __init__(self, repo: Repo, checkout: Repo | None, remote: Any) -> None:  # noqa: ANN401 - of a feature
        self._repo, self._checkout, self._remote = repo, checkout, remote

    def of(self, step: Step, commands: list[Command], content: VisibleContent) -> Declaration:
        """Return what a step is about to see. Raises: GitgatesError or OSError."""
        key = digest(repr([*self._conditions(step.gate, commands)]))
        seen = content.identity_of(seen_paths(step, content))
        return Declaration(seen, key, content, tuple(commands))

    @staticmethod
    def of_content(step: Step, content: VisibleContent) -> Declaration:
        """Return only the content, to be compared. Raises: GitgatesError or OSError."""
        return Declaration(content.identity_of(seen_paths(step, content)), "", content, ())

    def find(self, gate: Gate, declared: Declaration) -> Proof | None:
        """Return the newest pass that may be reused."""
        state_abs = self._repo.shared_state_abs
        proof = proofs.find_pass(state_abs, gate.name, declared.seen, declared.key)
        if (
            proof
            and gate.reuse.max_age_s
            and not 0 <= time.time() - proof.time_s <= gate.reuse.max_age_s
        ):
            return None
        return proof

    def difference(self, step: Step, before: Declaration, content: VisibleContent) -> str:
        """Return what differs from before a gate ran; empty if nothing does.

        Raises: GitgatesError or OSError.
        """
        contents = before.content, content
        old, new = (_states(each, seen_paths(step, each)) for each in contents)
        changed = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
        if changed:
            return f"{first_names(changed)} changed while it ran"
        if before.key and before.key != self.of(step, [*before.commands], content).key:
            return "its variables, or the files of `reads`, changed while it ran"
        return ""

    def _conditions(self, gate: Gate, commands: Sequence[Command]) -> Iterator[str]:
        """Yield everything that a result depends on, except the content."""
        root_abs = (self._checkout or self._repo).root_abs
        system = os.uname()
        yield f"{system.sysname} {system.machine}"
        yield repr(definition(gate))
        for command in commands:
            yield repr((command.argv, os.path.relpath(command.cwd_abs, root_abs)))
        env = commands[0].env
        for name in sorted({*_named(gate.reuse.env_inputs, env)}):
            yield f"{name}={env.get(name)!r}"
        reader = Reader(os.path.realpath(root_abs), {}, ())
        for path in gate.reuse.reads:
            for place_abs in self._places(path, root_abs):
                yield from _states_below(place_abs, reader)
        if gate.remote.allowed and self._remote:
            yield self._remote.conditions(gate)

    def _places(self, path: str, root_abs: str) -> Iterator[str]:
        """Yield the declared files; `../NAME` is one in any folder above the root."""
        if path.startswith("~/"):
            yield f"{self._repo.env.get('HOME', '')}/{path[2:]}"
        elif path.startswith("../"):
            folder_abs = root_abs
            while (above_abs := os.path.dirname(folder_abs)) != folder_abs:
                folder_abs = above_abs
                yield os.path.join(folder_abs, path[3:])
        else:
            yield path


def seen_paths(step: Step, content: VisibleContent) -> tuple[str, ...]:
    """Return the files that a step is about. Raises: GitgatesError or OSError."""
    if any(path not in content.states for path in step.paths):
        raise UnknownContentError("git ignores a file that is passed")  # no content has it
    if not (inputs := step.gate.reuse.inputs):
        return tuple(content.states)
    for pattern in inputs:
        if not (pattern.startswith("!") or content.select((pattern,))):
            # A misspelt pattern would leave out what it was meant to name.
            raise UnknownContentError(f"no file matches `{pattern}` of `inputs`")
    if not (content.select(inputs) or step.paths):  # as for `!docs/` alone
        raise UnknownContentError("no file matches `inputs`")
    folder = step.gate.program.working_dir
    folders = ("/",) if folder == "." else ("/", f"/{folder}/")
    locks = tuple(f"{folder}{name}" for folder in folders for name in LOCK_FILES)
    return tuple(sorted({*content.select((*inputs, *locks)), *step.paths}))


def _states(content: VisibleContent, paths: tuple[str, ...]) -> dict[str, Any]:
    return {path: content.states[path] for path in paths if path in content.states}


def _states_below(place_abs: str, reader: Reader) -> Iterator[str]:
    """Yield the states of a file, or of all that is in a folder."""
    yield f"{place_abs} {reader.state(place_abs, names=True)}"
    for folder_abs, folders, names in os.walk(place_abs):
        folders.sort()
        for name in sorted(names):
            path_abs = f"{folder_abs}/{name}"
            yield f"{path_abs} {reader.state(path_abs)}"


def _named(names: tuple[str, ...], env: Mapping[str, str]) -> Iterator[str]:
    """Yield the variables that are named; `RUFF_*` names all that begin so."""
    for name in names:
        if name.endswith("*"):
            yield from (variable for variable in env if variable.startswith(name[:-1]))
        else:
            yield name
