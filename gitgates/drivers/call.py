"""The context of an agent's event while it is handled; each fact is computed once.

The session's journal is read and folded once. Later entries, ours or others', are folded in as they
come. The beginning of a long journal is read only if its entries are needed: the state that it was
folded into is kept beside it.
"""

from __future__ import annotations

import os
import time
import zlib

from gitgates.core.agent_types import WorktreeState
from gitgates.core.errors import GitError, GitgatesError
from gitgates.core.record import Record, lazy
from gitgates.core.types import Config, Hook
from gitgates.drivers.trust import absolute
from gitgates.engine.plan.hooks import hook_at
from gitgates.git.repo import find_repo
from gitgates.hosts import DEFAULT_AGENT, agent_host
from gitgates.journal.entries import SESSION, NoteEntry, RoundEntry, Session, fold
from gitgates.journal.journal import fact_of, stamp_of
from gitgates.proc.alarm import process_start_time, set_alarm
from gitgates.store.files import length_of
from gitgates.store.log import FOLDER, Journal, git_dir_of, session_journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from gitgates.core.agent_types import Payload
    from gitgates.core.errors import ConfigError
    from gitgates.core.types import Decision, Verdict
    from gitgates.engine.plan.listener import Listener
    from gitgates.files.looked import Look
    from gitgates.git.repo import Repo
    from gitgates.hosts.agent import AgentHost
    from gitgates.journal.journal import Fact, Projection

    _T = TypeVar("_T")

# Before the host gives up.
_ANSWER_S = 1.0
_ALMOST = 0.9
_START_S = 1.0  # the most that our own start may have taken of it
_MOST_DEFERRED = 3  # a prompt
_LONG = 32 << 10  # bytes of a journal that are folded again at each event


class EventFiles(Record):
    """The files of an event."""

    paths: tuple[str, ...] | None  # None: it is not about files
    deleted: tuple[str, ...] = ()
    note: str = ""  # on how they were determined
    error: str = ""  # why they are not those since the first snapshot


class Call:
    """An event while it is handled: payload, repository, configuration, session state."""

    def __init__(
        self,
        payload: Payload,
        repo: Repo,
        *,
        raw: bytes = b"",
        say: Callable[[str], None] = lambda _text: None,
        is_dry: bool = False,
        look_of: Callable[[Call], Look | None] | None = None,
    ) -> None:
        self.payload = payload
        self.kind = payload.kind
        self.raw = raw  # the payload as received, for gates that ask for it
        self.repo = repo
        self.env = repo.env
        self.is_dry = is_dry  # a verb asks, and no event: nothing is written, and no gate runs
        self.explanations: dict[
            str, Any
        ] = {}  # policy → what its verdict rests on, for such a verb
        self.say = say  # to whoever reads the host's debug log
        self.config = Config()  # the settings of policies in it are those in force
        self.written_config: Config | None = None  # as the files have it now
        self.config_error: ConfigError | None = None
        self.journal: Journal = session_journal(repo.state_abs, payload.session)
        self.began = process_start_time()  # by the wall clock
        # The folder of the run that its gates are an attempt of; empty: a new one.
        self.run_abs = ""
        self.has_limit = not is_dry  # False: no host gives up waiting
        self.is_alone = False  # nobody but the session's agents changes files in the worktree
        self.by_hand = False  # a verb runs the gates, and no event
        self.until_s = float("inf")  # by `time.monotonic`: when the host's answer is due
        self.listener: Listener | None = None  # gets the progress of the gates
        self.decision: Decision | None = None  # of the gates, once saved
        self.more_s = 0.0  # what policies may take beside the gates
        self._look_of = look_of  # of the recorder, as long as no gate has written
        self.last_before = ""  # the key of the event before this one
        self._folded_to = 0  # bytes of the journal that a kept state stands for
        self._new: list[Fact] = []  # the entries after them
        self.session = Session()  # what they say: attempts and prompts
        self._states: dict[int, tuple[Any, Any, int]] = {}
        self.damaged = 0  # entries that are left out

    # The session's journal.

    def read(self) -> None:
        """Read the journal, or the entries appended since.

        Raises: OSError if it cannot be read.
        """
        journal = self.journal
        is_first = not journal.read_to
        if is_first and length_of(journal.path_abs) > _LONG:
            from gitgates.journal.folded import recall  # few sessions are so long

            if state := recall(journal):
                self._folded_to = journal.read_to
                self._states[id(SESSION)] = state, None, 0
                vars(self).pop("entries", None)
        self.take(journal.read_new())
        self.damaged += journal.torn
        if is_first and journal.read_to - self._folded_to > _LONG:
            from gitgates.journal.folded import remember  # once in hundreds of events

            remember(journal, self._states[id(SESSION)][0])

    @lazy
    def entries(self) -> list[Fact]:
        """Return the entries of the journal, in order."""
        if not self._folded_to:
            return self._new
        return [*Journal(self.journal.path_abs).read_beginning(self._folded_to), *self._new]

    def record(self, *entries: Any) -> None:  # noqa: ANN401 - of any kind
        """Append to the journal at once, and read what others have appended.

        A dry call keeps them to itself.

        Raises: OSError if that cannot be written.
        """
        facts = map(fact_of, entries)
        if self.is_dry:
            self.take([{"t": time.time(), **fact} for fact in facts])
        elif entries:
            self.take(self.journal.append_and_read(*facts))

    def take(self, entries: Iterable[Fact]) -> None:
        """Take in entries of the journal, in order."""
        facts = [*entries]
        self._new += facts
        if self._folded_to and "entries" in vars(self):
            self.entries += facts
        self.session = self.state(SESSION)

    def note(self, text: str) -> None:
        """Report a problem, and record it in the journal if possible."""
        self.say(text)
        try:
            self.record(NoteEntry(text))
        except OSError as error:
            self.say(f"{self.journal.path_abs}: cannot be written: {error.strerror}")

    def round(self, gates: str, outcome: str, **more: Any) -> RoundEntry:  # noqa: ANN401 - its fields
        """Return the entry that gates, or a policy, have decided on this event."""
        fields = {"hook": self.payload.event, "agent": self.payload.agent.id, "prompt": self.prompt}
        return RoundEntry(**{**fields, "gates": gates, "outcome": outcome, **more})

    def state(self, part: Projection[_T]) -> _T:
        """Return the current state of one projection of the journal."""
        entries = self._new if part is SESSION else self.entries
        state, frozen, at = self._states.get(id(part)) or (part.new(), None, 0)
        if frozen is None or at < len(entries):
            damaged = part.take(state, entries[at:])
            self.damaged += damaged if part is SESSION else 0
            frozen = part.freeze(state)
            self._states[id(part)] = state, frozen, len(entries)
        record: _T = frozen
        return record

    def state_everywhere(self, part: Projection[_T]) -> _T:
        """Return the state of one projection of all journals of the session."""
        if not self.elsewhere:
            return self.state(part)
        return part.fold(sorted((*self.entries, *self.entries_elsewhere), key=stamp_of))

    @lazy
    def elsewhere(self) -> dict[str, list[Fact]]:
        """Git folder → the entries of the session's journal in another worktree of it."""
        name = os.path.basename(self.journal.path_abs)
        journals = [
            Journal(f"{state_abs}/{FOLDER}/{name}") for state_abs in self.repo.states_abs[1:]
        ]
        by_folder = {git_dir_of(journal.path_abs): journal.read() for journal in journals}
        return {folder: entries for folder, entries in by_folder.items() if entries}

    @property
    def entries_elsewhere(self) -> list[Fact]:
        """The entries of all those journals."""
        return [entry for entries in self.elsewhere.values() for entry in entries]

    @property
    def blocks(self) -> tuple[int, int]:
        """How often the agent was blocked in all worktrees: in this prompt, and in the session."""
        session, prompt_id = self.session, self.payload.prompt.id
        others = [fold(entries) for entries in self.elsewhere.values()]
        in_others = sum(
            [other.blocks(prompt) for other in others if (prompt := other.prompt_of(prompt_id))]
        )
        in_prompt = session.blocks(self.prompt) + in_others
        return in_prompt, session.blocks() + sum([other.blocks() for other in others])

    @property
    def prompt(self) -> str:
        """The person's prompt that this event belongs to."""
        session, payload = self.session, self.payload
        if payload.ending.again and session.rounds and payload.prompt.id not in session.prompts:
            return session.rounds[-1].prompt  # the host's own id for our reason, as a new prompt
        return session.prompt_of(payload.prompt.id)

    # The event.

    @lazy
    def host(self) -> AgentHost:
        """Return the event's agent."""
        return agent_host(self.payload.host or DEFAULT_AGENT)

    @lazy
    def key(self) -> str:
        """Return the key that identifies this event in its session.

        Without an id of its own, that is its content: two equal events have the same key.
        """
        payload = self.payload
        if payload.tool.id:
            return f"{payload.event}:{payload.tool.id}"
        tool, prompt = payload.tool, payload.prompt
        about = (tool.name, tool.command, *tool.paths, *map(str, tool.edits))
        content = (prompt.source, prompt.text, payload.ending.message, payload.agent.type, *about)
        if payload.event_id:  # a time, which two that are fired at once may have in common
            content = (payload.event_id, *content)
        mark = zlib.crc32("\0".join(content).encode("utf-8", "replace"))
        again = "again" if payload.ending.again else ""
        return f"{payload.event}:{payload.prompt.id}:{payload.agent.id}:{again}:{mark:08x}"

    @lazy
    def hook(self) -> Hook:
        """Return the hook that is configured for this event."""
        has_batches = self.kind != "after-tool" or self.host.has("after-batch")
        return hook_at(self.config, self.payload.event, has_batches=has_batches)

    @lazy
    def edited_paths(self) -> tuple[str, ...] | None:
        """Return the files that a tool works on, from the root; None if it names none.

        Links are followed: what is written through one is another file. Paths outside of the
        repository are left out, and so is what is not a file, unless the tool may write it.
        """
        if not self.payload.tool.paths:
            return None
        root_abs = os.path.realpath(self.repo.root_abs)
        paths = []
        for path in self.payload.tool.paths:
            path_abs = absolute(path, self.payload.cwd_abs)
            if self.payload.kind != "before-tool" and not os.path.isfile(path_abs):
                continue
            relative = os.path.relpath(path_abs, root_abs)
            if relative != ".." and not relative.startswith("../"):
                paths.append(relative)
        return tuple(dict.fromkeys(paths))

    @lazy
    def is_elsewhere(self) -> bool:
        """Whether the agent itself is in another repository or worktree than its event."""
        cwd_abs = self.payload.cwd_abs
        if cwd_abs == self.repo.root_abs or not os.path.isdir(cwd_abs):
            return False
        try:
            return find_repo(cwd_abs, self.env).git_dir_abs != self.repo.git_dir_abs
        except GitError:
            return True

    @property
    def agents_at_work(self) -> bool:
        """Whether sub-agents are still at work."""
        tasks = self.payload.ending.background
        return any(task.kind == "subagent" and task.status == "running" for task in tasks)

    @property
    def ends_work(self) -> bool:
        """Whether this ends a turn: no compaction, not in plan mode, not deferred."""
        payload = self.payload
        is_summary = payload.kind == "subagent-end" and not payload.agent.type
        return not (is_summary or payload.agent.mode == "plan" or self.is_deferred)

    @lazy
    def is_deferred(self) -> bool:
        """Whether this stop is put off: sub-agents are at work, and a later stop follows."""
        payload = self.payload
        if payload.kind != "turn-end" or payload.agent.mode == "plan" or not self.agents_at_work:
            return False
        return self.session.deferred.count(self.prompt) < _MOST_DEFERRED

    def end_within(self, limit_s: float) -> None:
        """Set a deadline before the host's own, so the host gets an answer."""
        if not self.has_limit:
            return
        limit_s = min(limit_s, self.host.SETTINGS.times.most_s.get(self.kind, limit_s))
        gone_s = min(time.time() - self.began, _START_S)
        left_s = max(limit_s - _ANSWER_S, limit_s * _ALMOST) - gone_s
        self.until_s = time.monotonic() + left_s
        set_alarm(left_s)

    def encode(self, verdict: Verdict) -> str:
        """Return what the host receives."""
        return self.host.encode(self.payload, verdict).decode("ascii")

    # The working tree.

    @lazy
    def snapshot(self) -> Look:
        """Return the snapshot, taken at most once; its tree is empty if that fails.

        Raises: GitError, StateError, but only if a verb asks.
        """
        from gitgates.files.looked import Look  # most events take none
        from gitgates.files.stored import look_as_stored

        try:
            return look_as_stored(self.repo, self._look_of(self) if self._look_of else None)
        except GitgatesError as error:
            if self.is_dry:
                raise
            return Look(tree="", unseen=(error.message,))

    @property
    def snapshot_error(self) -> str:
        """Why the snapshot failed; empty if it did not, or none was needed."""
        taken: Look | None = vars(self).get("snapshot")
        return taken.unseen[0] if taken and not taken.tree else ""

    def forget_snapshot(self) -> None:
        """Drop the cached snapshot, because files may have been written since; note its error."""
        if self.snapshot_error:
            self.note(self.snapshot_error)
        vars(self).pop("snapshot", None)
        self._look_of = None

    @property
    def point(self) -> WorktreeState:
        """The present state; its tree is empty if no snapshot can be taken."""
        return WorktreeState(tree=self.snapshot.tree, head=self.snapshot.head)

    @property
    def tree(self) -> str:
        """The present tree; empty if it does not have all content."""
        return self.snapshot.tree if self.snapshot.is_whole else ""

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing has changed since the session began, untracked content included."""
        beginning, now = self.session.beginning, self.snapshot
        return bool(now.tree) and (now.tree, now.doubts) == (beginning.tree, beginning.not_seen)

    @lazy
    def changed_files(self) -> EventFiles:
        """Return the session's changed files that exist, and notes."""
        from gitgates.git.object_store import reading_git  # most often, nothing has changed
        from gitgates.git.paths import changed_paths, tree_paths

        session, now, missing = self.session, self.snapshot.tree, ""
        if session.beginning.tree and now:
            try:
                difference = tree_paths(reading_git(self.repo), session.beginning.tree, now)
                return EventFiles(*difference, note=session.beginning.why_not)
            except GitError as error:
                missing = f"the first snapshot of the session is missing: {error.message}"
        why = session.beginning.why_not or "snapshot not found"
        note = f"{why}; compared with HEAD instead"
        return EventFiles(*changed_paths(self.repo.git), note=note, error=missing)
