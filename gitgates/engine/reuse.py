"""Reuse the passes of earlier runs: a gate that has passed on the same content need not run again.

The same is: the content that the gate can see, its command with its arguments and variables, the
programs that it starts, and what else it declares to read. Only passes count, and only where the
content was the same before and after; what cannot be told apart is run.
"""

from __future__ import annotations

import os
import stat
import time

from gitgates.core.errors import GitgatesError
from gitgates.core.record import Record
from gitgates.core.types import AUTO, BY_FILE
from gitgates.engine.command import OWN_ENVIRONMENT
from gitgates.engine.plan import AUDIT, REUSE
from gitgates.engine.surroundings import surroundings
from gitgates.engine.tools import identity, signature
from gitgates.engine.visible_content import UnknownContentError, VisibleContent
from gitgates.engine.walk import first_names
from gitgates.store import proofs
from gitgates.store.file_proofs import SIZE, FileProofs
from gitgates.store.files import lock_file, make_folder, remove_file
from gitgates.store.proofs import Proof, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from gitgates.core.types import Command, Decision, Gate, GateResult, Plan, Step
    from gitgates.engine.visible_content import FileState
    from gitgates.git.repo import Repo

# A quick linter checks a file in 100 µs; to look at one takes 5 µs.
_LOOKS_PER_PATH = 20
_ENTRY_BYTES = 100  # of an index
TOO_FEW = "not for so few files, which it checks faster than they are compared"


class Candidate(Record):
    """What is reused of a gate, and what a pass of the rest is going to prove."""

    rest: Step | None = None  # what is left to run; None: nothing
    reused: str = ""  # where the passes come from that are reused, for people
    seen: str = ""  # a digest of the content that `rest` is about; empty: its pass proves nothing
    key: str = ""  # a digest of the other conditions
    content: VisibleContent | None = None  # before it runs
    commands: tuple[Command, ...] = ()
    why_not: str = ""  # why neither is possible
    waits: bool = False  # another process is running the same; ask again
    claim: tuple[str, int] = ("", -1)  # the lock that tells others that this one does
    file_proofs: FileProofs | None = None
    shared: str = ""  # keys of the pass on any machine, where passes of others count
    maker: str = ""  # who made what is reused, or is going to make the rest; as in a Proof
    action_digest: str = ""  # what ran on a server, of the pass that is reused; empty: it ran here


class Reuse:
    """What one run may reuse, and what it proves for later ones."""

    _makers: tuple[str, ...] = ("",)  # whose passes of files are told apart, the own last
    remote: Any = None  # the server that gates may run on: see engine/remote.py

    def __init__(
        self,
        plan: Plan,
        repo: Repo,
        checkout: Repo | None,
        say: Callable[[str], None],
    ) -> None:
        self._hook, self._repo, self._checkout, self._say = plan.event.name, repo, checkout, say
        self._looks_anyway = any(step.gate.reuse not in (False, AUTO) for step in plan.steps)
        self._content = self._look()
        self._packages: dict[str, list[str]] = {}  # by environment, as long as nothing has run
        self._is_stale = False  # whether a gate has run since the content was looked at
        self._passed: list[tuple[Candidate, GateResult]] = []  # to be recorded
        self._is_audit = repo.env.get(REUSE) == AUDIT
        self._awaited: dict[str, tuple[str, float]] = {}  # gate → lock of another run, until when
        self._overdue: set[str] = set()  # gates that were waited for long enough
        self._explained: set[str] = set()  # gates whose passes cannot be reused

    def look_up(self, step: Step, make_commands: Callable[[Step], list[Command]]) -> Candidate:
        """Return which passes there are already, and what is left to run.

        Where another process is running the same, its result is waited for, as long as the gate
        may take.
        """
        if step.gate.reuse == AUTO and not self._is_worthwhile(step):
            return Candidate(rest=step)
        self.record()  # whoever waits for those may be the one that is waited for
        if self._is_awaited(step.gate):
            return Candidate(rest=step, waits=True)
        candidate = self._find(step, make_commands)
        if candidate.rest is None or not candidate.seen or step.gate.name in self._overdue:
            return candidate
        try:
            lock_abs = self._lock_abs(candidate)
            is_new = not os.path.exists(lock_abs)
            lock_fd = lock_file(lock_abs)
        except OSError:
            return candidate
        if lock_fd < 0:
            self._awaited[step.gate.name] = lock_abs, time.monotonic() + step.gate.timeout_s
            return Candidate(rest=step, waits=True)
        claimed = candidate._replace(claim=(lock_abs, lock_fd))
        # Who held the lock a moment ago may have recorded a pass.
        if not is_new and (candidate := self._find(step, make_commands)).rest is None:
            self.give_up(claimed)
            return candidate
        return claimed

    def give_up(self, candidate: Candidate) -> None:
        """Release the lock of a candidate that does not run now; look at the content again."""
        self._is_stale = True
        _release(candidate)

    def ended(self, candidate: Candidate | None, result: GateResult) -> None:
        """Take note of a gate that has run: its pass is recorded with the next look."""
        self._is_stale = True
        if not (candidate and candidate.seen):
            return
        if result.status != "passed" or result.changed_paths:
            _release(candidate)
            return
        self._passed.append((candidate, result))

    def record(self) -> None:
        """Record the passes of gates that have ended, where content and tools are as before."""
        if not self._is_stale:
            return
        self._content = self._look(self._content)
        self._packages = {}
        self._is_stale = False
        passed, self._passed = self._passed, []
        for candidate, result in passed:
            try:
                if rest := candidate.rest:
                    why_not = self._difference(candidate, rest)
                    self._explain(rest.gate, "was not recorded for reuse", why_not)
                    if not why_not:
                        self._write(candidate, rest, result)
            except OSError as error:
                text = f"the pass of {result.gate} was not recorded for reuse: {error.strerror}"
                self._say(text)
            except GitgatesError:
                continue  # the next look-up explains it
            finally:
                _release(candidate)

    def finished(self, decision: Decision) -> Decision:
        """Return the decision of the run with what others may know of its passes."""
        return decision

    def _look(self, earlier: VisibleContent | None = None) -> VisibleContent:
        return VisibleContent(self._repo, self._checkout, earlier)

    def preview(self, step: Step, make_commands: Callable[[Step], list[Command]]) -> str:
        """Return what a look-up finds now, for people: what is reused, or why nothing is."""
        if step.gate.reuse == AUTO and not self._is_worthwhile(step):
            return TOO_FEW
        candidate = self._find(step, make_commands)
        if candidate.reused or candidate.why_not:
            return candidate.reused or f"impossible: {candidate.why_not}"
        others = proofs.of_content(self._repo.shared_state_abs, candidate.seen)
        if any(other.gate == step.gate.name and other.status == "passed" for other in others):
            return "no, it passed with another command, program, package or variable"
        return "no pass yet with these files"

    def _is_awaited(self, gate: Gate) -> bool:
        """Return whether another process still runs the same."""
        lock_abs, until = self._awaited.pop(gate.name, ("", 0.0))
        if not lock_abs:
            return False
        lock_fd = lock_file(lock_abs, flags=os.O_RDWR)
        if lock_fd < 0 and os.path.exists(lock_abs) and time.monotonic() < until:
            self._awaited[gate.name] = lock_abs, until
            return True
        if lock_fd < 0 and time.monotonic() >= until:
            self._overdue.add(gate.name)
        if lock_fd >= 0:
            os.close(lock_fd)
        self._is_stale = True
        self.record()
        return False

    def _is_worthwhile(self, step: Step) -> bool:
        """Return whether to look at all files may take less time than to run a quick gate."""
        if self._looks_anyway:
            return True
        try:
            index_bytes = os.stat(f"{self._repo.git_dir_abs}/index").st_size
        except OSError:
            return True
        return index_bytes // _ENTRY_BYTES <= _LOOKS_PER_PATH * len(step.paths)

    def _lock_abs(self, candidate: Candidate) -> str:
        folder_abs = f"{self._repo.shared_state_abs}/{proofs.FOLDER}/running"
        make_folder(folder_abs)
        return f"{folder_abs}/{digest(candidate.seen, candidate.key)}"

    def _find(self, step: Step, make_commands: Callable[[Step], list[Command]]) -> Candidate:
        try:
            if is_by_file(step):
                return self._by_file(step, make_commands(step._replace(paths=())))
            return self._whole(step, make_commands(step))
        except (GitgatesError, OSError) as error:
            why_not = error.message if isinstance(error, GitgatesError) else str(error)
            self._explain(step.gate, "cannot be reused", why_not)
            return Candidate(rest=step, why_not=why_not)

    def _explain(self, gate: Gate, what: str, why_not: str) -> None:
        """Say once why passes of a gate are not reused, if it asked for that."""
        if not why_not or gate.name in self._explained:
            return
        from gitgates.config.file_tools import file_tool  # seldom needed

        self._explained.add(gate.name)
        if file_tool(gate.command) is None:  # of others, passes are reused without anybody asking
            self._say(f"the pass of {gate.name} {what}: {why_not}")

    def _difference(self, candidate: Candidate, rest: Step) -> str:
        """Return what is not as it was before a gate ran; empty if all is."""
        contents = candidate.content or self._content, self._content
        before, after = (
            _of(content.states, self._seen_paths(rest, content)) for content in contents
        )
        changed = {path for path in before | after if before.get(path) != after.get(path)}
        if candidate.file_proofs:  # which files there are counts as well
            changed |= contents[0].states.keys() ^ contents[1].states.keys()
        if changed:
            return f"{first_names(changed)} changed while it ran"
        if candidate.key != digest(repr([*self._conditions(rest.gate, candidate.commands)])):
            return "its programs, packages or variables changed while it ran"
        return ""

    def _write(self, candidate: Candidate, rest: Step, result: GateResult) -> None:
        if candidate.file_proofs:
            if result.action_digest:
                return  # nothing about them says that it was there
            candidate.file_proofs.add(self._file_digests(rest.paths).values())
            return
        proof = Proof(
            gate=result.gate,
            content=candidate.seen,
            key=candidate.key,
            status=result.status,
            time_s=time.time(),
            duration_s=result.duration_s,
            hook=self._hook,
            root_abs=self._repo.root_abs,
            shared=candidate.shared,
            maker=candidate.maker,
            action_digest=result.action_digest,
        )
        proofs.append(self._repo.shared_state_abs, [proof])

    def _seen_paths(self, step: Step, content: VisibleContent) -> tuple[str, ...]:
        """Return the files that a step is about. Raises: GitgatesError or OSError."""
        if any(path not in content.states for path in step.paths):
            raise UnknownContentError("git ignores a file that is passed")  # to any content
        if is_by_file(step):
            return (*self._configuration(step.gate, content), *step.paths)
        if inputs := step.gate.inputs:
            for pattern in inputs if step.gate.reuse is True else ():
                if not (pattern.startswith("!") or content.select((pattern,))):
                    # A misspelt one would hide what it was to name.
                    raise UnknownContentError(f"no file matches `{pattern}` of `inputs`")
            if not (seen := (*content.select(inputs), *step.paths)):  # as for `!docs/` alone
                raise UnknownContentError("no file matches `inputs`")
            return seen
        return tuple(content.states)

    def _configuration(self, gate: Gate, content: VisibleContent) -> tuple[str, ...]:
        """Return the files that the verdict on each file depends on, beside that file.

        Those of `inputs`; if there are none, all that the gate is not about.
        """
        if gate.inputs and (paths := content.select(gate.inputs)):
            return paths
        about = {*content.select(gate.files, gate.exclude)}
        return tuple(path for path in content.states if path not in about)

    def _file_digests(self, paths: tuple[str, ...]) -> dict[str, bytes]:
        """Return path → digest of the files that can pass on their own: links lead to others."""
        states = self._content.states
        return {
            path: states[path][1][:SIZE]
            for path in paths
            if path in states and not stat.S_ISLNK(states[path][0][0])
        }

    def _whole(self, step: Step, commands: list[Command]) -> Candidate:
        gate, content = step.gate, self._content
        seen = content.identity_of(self._seen_paths(step, content))
        for key_of in (self._users_key, self._key):
            if not (key := key_of(gate, commands)):
                continue
            proof = proofs.find_pass(self._repo.shared_state_abs, gate.name, seen, key)
            if not proof or (
                gate.max_age_s and not 0 <= time.time() - proof.time_s <= gate.max_age_s
            ):
                continue
            place = f" in {proof.root_abs}" if proof.root_abs != self._repo.root_abs else ""
            reused = f"{proof.hook}{place}, {proofs.age(proof.time_s)}"
            return Candidate(
                rest=step if self._is_audit else None,
                reused=reused,
                shared=proof.shared,
                maker=proof.maker,
                action_digest=proof.action_digest,
            )
        return Candidate(rest=step, seen=seen, key=key, content=content, commands=tuple(commands))

    def _by_file(self, step: Step, commands: list[Command]) -> Candidate:
        """Leave out the files that have passed with the same configuration."""
        gate, content = step.gate, self._content
        # A linter of imports looks whether a module is there, not what is in it.
        configuration = content.identity_of(self._configuration(gate, content))
        rest, digests = step.paths, self._file_digests(step.paths)
        makers: set[str] = set()
        for key_of in (self._users_key, self._key):
            if not rest or not (key := key_of(gate, commands)):
                continue
            for maker in self._makers:
                conditions = digest(configuration, content.names, key, *([maker] if maker else ()))
                file_proofs = FileProofs(self._repo.shared_state_abs, gate.name, conditions)
                passed, before = file_proofs.read(), rest
                rest = tuple(path for path in rest if digests.get(path) not in passed)
                makers |= {maker} if rest != before else set()
        maker = next((each for each in ("agent", "", "ci") if each in makers), "")
        total, passes = len(step.paths), len(step.paths) - len(rest)
        reused = f"{passes} of {total} files" if passes else ""
        if not rest or self._is_audit:
            return Candidate(rest=step if self._is_audit else None, reused=reused, maker=maker)
        rest_step = step._replace(paths=rest)
        return Candidate(
            rest=rest_step,
            reused=reused,
            seen=content.identity_of(self._seen_paths(rest_step, content)),
            key=key,
            content=content,
            commands=tuple(commands),
            file_proofs=file_proofs,
            maker=maker,
        )

    def _key(self, gate: Gate, commands: Sequence[Command]) -> str:
        return digest(repr([*self._conditions(gate, commands)]))

    def _users_key(self, gate: Gate, commands: Sequence[Command]) -> str:
        """Return the key in the working tree: what has passed there counts in a checkout, too.

        Empty: this is no checkout, or the programs cannot be told.
        """
        if not self._checkout:
            return ""
        try:
            return self._key(gate, [*map(self._as_for_users, commands)])
        except GitgatesError:
            return ""

    def _as_for_users(self, command: Command) -> Command:
        env = {**command.env}
        for name, own in OWN_ENVIRONMENT.items():
            if env.get(name) == own:
                del env[name]
                env |= {name: self._repo.env[name]} if name in self._repo.env else {}
        return command._replace(env=env)

    def _conditions(self, gate: Gate, commands: Sequence[Command]) -> Iterator[str]:
        """Yield all that a result depends on, but the content."""
        root_abs = (self._checkout or self._repo).root_abs
        system = os.uname()
        yield f"{system.sysname} {system.machine}"
        yield repr((gate.env, gate.git_env, gate.writes))
        for command in commands:
            yield repr((command.argv, os.path.relpath(command.cwd_abs, root_abs)))
        first = commands[0]

        def describe(program_abs: str) -> str:
            return self._of_content(program_abs) or signature(program_abs)

        yield from identity(first, root_abs, describe, known=self._packages)
        # Many tools leave out what git does, tracked or not.
        yield signature(f"{self._repo.common_dir_abs}/info/exclude")
        yield from surroundings(gate, first, self._repo, self._checkout)
        if gate.remote and self.remote:
            if gate.name not in self._packages:
                self._packages[gate.name] = [self.remote.conditions(gate)]
            yield from self._packages[gate.name]

    def _of_content(self, program_abs: str) -> str:
        """Return a line about a program of the repository by its content; empty for another."""
        root_abs = os.path.realpath((self._checkout or self._repo).root_abs)
        path = program_abs.removeprefix(f"{root_abs}/")
        state = self._content.states.get(path)
        return f"{path} {state[1].hex()}" if state else ""


def is_by_file(step: Step) -> bool:
    """Return whether passes of a step are reused for each file. No age is known of those."""
    gate = step.gate
    return gate.reuse in (BY_FILE, AUTO) and bool(step.paths) and not gate.max_age_s


def _of(states: dict[str, FileState], paths: tuple[str, ...]) -> dict[str, FileState]:
    return {path: states[path] for path in paths if path in states}


def _release(candidate: Candidate) -> None:
    lock_abs, lock_fd = candidate.claim
    if lock_fd >= 0:
        remove_file(lock_abs)
        os.close(lock_fd)
