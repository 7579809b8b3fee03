"""An observed gate: whether its last pass is reused, and what its next pass depends on."""

from __future__ import annotations

import os
import time

from gitgates.core.record import lazy
from gitgates.engine.plan.match import matches, parse
from gitgates.observed.command import found_program, observed, why_not, why_not_here
from gitgates.observed.environment import (
    ANY,
    INDEX,
    environment_difference,
    environment_state,
    temporary_folders,
)
from gitgates.observed.runs import ObservedRun, ObservedRuns, keep_digests, read_digests
from gitgates.observed.state import Reader, is_index
from gitgates.observed.unchanged import CHANGES, first_difference, states_before
from gitgates.proc.traced import STRACE
from gitgates.store.files import make_folder, open_state, remove_file
from gitgates.store.proofs import FOLDER, age, definition, digest
from gitgates.worktree.locks import is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.core.types import Command, Gate
    from gitgates.git.repo import Repo
    from gitgates.observed.unchanged import Dependencies

_NO_LONGER_S = 86_400.0  # after which a gate that could not be observed is observed again
_MOST_FILES = 50_000  # that have passed by file, in all their versions
_MOST_TICK_S, _POLL_S = 0.02, 0.001  # of the clock of the file system
_HOME = "~/"  # begins the patterns of `scratch` there


class ObserverContext:
    """What the observers of one run share."""

    def __init__(self, repo: Repo, checkout: Repo | None) -> None:
        self.root_abs = os.path.realpath((checkout or repo).root_abs)
        self.folder_abs = f"{repo.shared_state_abs}/{FOLDER}/observed"
        self.outputs_abs = f"{repo.state_abs}/strace"
        self._known = 0

    @lazy
    def digests(self) -> dict[str, str]:
        """Return what is known of files, to which readers add."""
        digests = read_digests(self.folder_abs)
        self._known = len(digests)
        return digests

    @lazy
    def agents_variables(self) -> frozenset[str]:
        """Return the variables that agents set for what they start, and their own secrets."""
        from gitgates.hosts import AGENTS, agent_host  # a dozen modules, only if something differs

        each = [agent_host(agent).ENVIRONMENT for agent in AGENTS]
        return frozenset(
            name
            for one in each
            for name in (*one.of_a_session, *one.secrets, one.project, one.cloud)
        )

    def close(self) -> None:
        """Keep the digests of files for the next run."""
        if "digests" in self.__dict__ and len(self.digests) != self._known:
            try:
                keep_digests(self.folder_abs, self.digests)
            except OSError:
                return  # they are read again

    def new_output(self) -> str:
        """Return a new file for the output of strace. Raises: OSError."""
        make_folder(self.outputs_abs)
        for name in os.listdir(self.outputs_abs):
            if not is_alive(int(name.partition("-")[0])):  # it was killed
                remove_file(f"{self.outputs_abs}/{name}")
        path_abs = f"{self.outputs_abs}/{os.getpid()}-{time.monotonic_ns()}"
        os.close(open_state(path_abs, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        before_ns, until = os.stat(path_abs).st_mtime_ns, time.monotonic() + _MOST_TICK_S
        # A change just before the gate begins must have an earlier time than one that it makes.
        while os.stat(path_abs).st_mtime_ns == before_ns and time.monotonic() < until:
            time.sleep(_POLL_S)
            os.utime(path_abs)
        return path_abs


class GateObserver:
    """One gate with the commands that it would run; by file: without the paths."""

    def __init__(self, gate: Gate, commands: Sequence[Command], place: ObserverContext) -> None:
        self.gate, self._place = gate, place
        root_abs, command = place.root_abs, commands[0]
        words = [(each.argv, os.path.relpath(each.cwd_abs, root_abs)) for each in commands]
        # strace itself looks up the program, so the folders without it are not seen.
        program = found_program(command).removeprefix(f"{root_abs}/")
        conditions = program, os.geteuid(), os.getegid()
        self.key = digest(
            gate.name, repr((definition(gate), gate.reuse.scratch, words, conditions))
        )
        self._environment = environment_state(command.env, root_abs, repr(gate.program.command))
        self._temporary = temporary_folders(command.env)
        self._runs = ObservedRuns(place.folder_abs, self.key)
        self._outputs: list[tuple[str, str]] = []  # file, and the folder of its command
        self._began_ns = 0
        self._last: ObservedRun | None = None  # of this worktree
        self._before: dict[str, str] = {}
        self.difference = ""  # why no run is reused
        self._env = command.env
        self.why_not = next(filter(None, map(why_not, commands)), "")
        if STRACE in command.env:
            self.why_not = "it runs inside a gate that is observed itself"
        self._passed: ObservedRun | None = None  # one that holds

    def _reader(self) -> Reader:
        scratch = self.gate.reuse.scratch
        patterns = [parse(name) for name in scratch if not name.startswith(_HOME)]
        at_home = [parse(name[1:]) for name in scratch if name.startswith(_HOME)]
        home_abs = f"{self._env.get('HOME', '').rstrip('/')}/"

        def is_scratch(path: str) -> bool:
            is_at_home = path.startswith(home_abs)
            return (is_at_home and matches(path.removeprefix(home_abs), at_home)) or (
                not path.startswith("/") and matches(path, patterns)
            )

        return Reader(
            self._place.root_abs,
            self._place.digests,
            self._temporary,
            is_scratch if scratch else None,
        )

    def find(self) -> ObservedRun | None:
        """Return the newest run whose dependencies are all unchanged."""
        reader, self._passed, self._last, self.difference = self._reader(), None, None, ""
        for _name, run in self._runs.newest_first():
            if self._last is None and run.depends.root_abs == self._place.root_abs:
                self._last = run
                if 0 <= time.time() - run.time_s < _NO_LONGER_S:
                    self.why_not = self.why_not or run.why_not_again
            difference = self._difference(run, reader)
            if not difference:
                self._passed = run
                return run
            self.difference = self.difference or difference
        return None

    def _difference(self, run: ObservedRun, reader: Reader) -> str:
        if not run.is_reusable:
            return run.depends.spoilt or run.depends.unreusable
        most_s = self.gate.reuse.max_age_s
        if most_s and not 0 <= time.time() - run.time_s <= most_s:
            return f"its pass of {age(run.time_s)} is too old"
        different = environment_difference(run.environment, self._environment, self._ignored)
        return different or first_difference(run.depends, reader)

    def _ignored(self) -> list[str]:
        """Return the variables of agents, except for those that the command names."""
        command = repr(self.gate.program.command)
        return [name for name in self._place.agents_variables if name not in command]

    def passed_files(self, paths: Sequence[str]) -> frozenset[str]:
        """Return the files that have passed in their present state, by the run that was found."""
        files = self._passed.files if self._passed else ()
        reader = self._reader()
        return frozenset(path for path in paths if _file(path, reader.again(path, "")) in files)

    def traced(self, command: Command) -> tuple[Command, str]:
        """Return the command as it is started now, and the file that strace writes.

        Raises: OSError if nothing can be written.
        """
        output_abs = self._place.new_output()
        if not self._outputs:
            self._began_ns = os.stat(output_abs).st_mtime_ns
            if self._last:
                self._before = states_before(self._last.depends, self._reader())
        self._outputs.append((output_abs, command.cwd_abs))
        # Shells look at this folder, whatever it is.
        env = {**command.env, STRACE: output_abs, "PWD": command.cwd_abs}
        return observed(command._replace(env=env), output_abs), output_abs

    def is_traced(self) -> bool:
        """Return whether a command of it was started under strace."""
        return bool(self._outputs)

    def why_not_here(self) -> str:
        """Return why nothing can be observed here, by an attempt; empty: it can be."""
        return why_not_here(self._env)

    def depends(self) -> Dependencies:
        """Return what the run that has just ended depended on; remove the output of strace."""
        from gitgates.observed.reads import joined, read_output  # after a gate has run only
        from gitgates.observed.settled import dependencies

        observations = []
        for output_abs, cwd_abs in self._outputs:
            with open(output_abs, encoding="utf-8", errors="surrogateescape") as lines:
                observations.append(read_output(lines, cwd_abs))
        self.discard()
        return dependencies(joined(observations), self._reader(), self._before, self._began_ns)

    def discard(self) -> None:
        """Remove the output of strace."""
        for output_abs, _cwd_abs in self._outputs:
            remove_file(output_abs)
        self._outputs = []

    def keep(self, run: ObservedRun, paths: Sequence[str] = ()) -> str:
        """Keep a run that has passed, or cannot be reused; return a message about it for people.

        `paths`: by file, those that it was about. Raises: OSError.
        """
        reader, changed = self._reader(), run.depends.changed
        known = run.depends.states  # what it has read: it may be something else by now
        files = frozenset(_file(path, known.get(path) or reader.again(path, "")) for path in paths)
        alone = {*paths} - {*changed}
        states = {key: state for key, state in run.depends.states.items() if key not in alone}
        if paths and (passed := self._passed) and run.is_reusable:
            is_here = passed.depends.root_abs == self._place.root_abs
            if is_here and not first_difference(passed.depends, reader):
                states = {**passed.depends.states, **states}
                files |= passed.files if len(passed.files) < _MOST_FILES else frozenset()
                run = run._replace(maker=run.maker or passed.maker)  # an agent's remain its own
        depends = run.depends._replace(states=states)
        no_index = {} if any(map(is_index, states)) else {INDEX: ANY}
        environment = {**self._environment, **no_index}
        self._runs.add(run._replace(depends=depends, environment=environment, files=files))
        why = depends.spoilt or depends.unreusable
        is_first = self._last is None or self._last.is_reusable
        return "" if why.startswith(CHANGES) and is_first else why

    def has_failed(self, paths: Sequence[str] = ()) -> None:
        """Forget what has passed and fails now; `paths`: by file, those that it ran on.

        Raises: OSError.
        """
        reader = self._reader()
        failed = {_file(path, reader.again(path, "")) for path in paths}
        for name, run in self._runs.newest_first():
            if not self._difference(run, reader) and (not paths or run.files & failed):
                self._runs.remove(name)
                if paths:
                    self._runs.add(run._replace(files=run.files - failed))


def _file(path: str, state: str) -> str:
    return f"{path}\0{state}"
