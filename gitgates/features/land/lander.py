"""Work on the queue: stack what waits, test it, land what passed, eject what is at fault.

The links of the chain are each built on the one before, the first on the target. A commit that
passes lands with all below it. Of those that fail, the lowest is searched for: its branch is at
fault.

With free slots, further batches are tested on those that are under way. Nothing here is remembered:
whoever goes on after a kill builds the chain again, and what is proved for its trees does not run
again.
"""

from __future__ import annotations

import json
import os
import sys
import time

from gitgates.config.load import table_of
from gitgates.core.errors import ConfigError, GitgatesError, Interrupted, StateError
from gitgates.core.policy import providers
from gitgates.core.record import Record
from gitgates.core.types import Command, Config
from gitgates.features.land.candidate import BarredError, build, check_policies, describe_conflict
from gitgates.features.land.landed import write_notes
from gitgates.features.land.queue import LANDED, LANDING, NOTHING, WAITING
from gitgates.features.land.trial import PUSH, LandTrial, TrialOutcome, read
from gitgates.git.forward import ForwardBranch, HeldError, MovedError
from gitgates.git.merging import ConflictError, is_ancestor
from gitgates.git.settings import counted_in
from gitgates.proc.processes import Capture, Group, SignalPipe
from gitgates.proc.resources import Wait
from gitgates.proc.watchdog import Watchdog
from gitgates.store.files import make_folder, read_state, remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gitgates.features.land.queue import Landing, Queue
    from gitgates.git.repo import Repo
    from gitgates.proc.processes import Child
    from gitgates.report.text import Console
    from gitgates.store.turn import WorkTurn


_POLL_S = 0.2
_HELD_S = 1.0  # until a landing that was refused is tried again
_LIMIT_S = 24 * 3600.0  # gates have limits of their own
_KEPT_BYTES = 16 << 10
_SHORT = 7


class LandSettings(Record):
    """The table `[tool.gitgates.land]`."""

    target: str = "main"
    method: str = "merge"
    hook: str = PUSH
    batch: int = 4
    push: bool = False
    remote: str = "origin"
    conflicts: bool = True


def settings_at(repo: Repo, commit: str) -> tuple[Config, LandSettings]:
    """Return the configuration in a commit, and what it says of landing."""
    try:
        place = {commit: f"in {commit[:_SHORT]}"}
        config = counted_in(repo, repo.as_stored.git, place, None)[commit].config or Config()
    except ConfigError:
        config = Config()  # what lands may mend it
    settings = table_of(config, "land", LandSettings)
    return config, settings._replace(batch=max(settings.batch, 1))


def slots_of(config: Config) -> int:
    """Return how many candidates are tested at once."""
    return config.jobs or os.cpu_count() or 1


class Lander:
    """Lands what is queued for one target, as long as the turn is ours."""

    def __init__(
        self, repo: Repo, queue: Queue, turn: WorkTurn, console: Console, *, target: str
    ) -> None:
        self._repo, self._queue, self._turn, self._console = repo.as_stored, queue, turn, console
        self._target = ForwardBranch(self._repo, target)
        self._config, self._settings, self._slots = Config(), LandSettings(), 1
        self._base = self._tip = ""  # the chain is built on the first; what the branch was at then
        self._links: list[Link] = []
        self._deferred: set[int] = set()  # entries that conflict with one in the chain
        self._running: dict[int, tuple[Link, Child]] = {}  # by process
        self._said, self._held, self._again_s = "", "", 0.0
        self._batch = sys.maxsize  # after a failure 1: where many fail, each is found faster alone

    def work(self, is_wanted: Callable[[list[Landing]], bool]) -> None:
        """Work until nothing is queued, nobody wants it any more, or the turn is lost.

        Raises: Interrupted; GitgatesError, after which all is queued that has not ended.
        """
        self._watch = Watchdog()  # ends the tests where we are killed
        folder_abs = f"{self._queue.folder_abs}/trials"
        for name in os.listdir(folder_abs) if os.path.isdir(folder_abs) else ():
            remove_file(f"{folder_abs}/{name}")  # of somebody who was killed
        try:
            with SignalPipe() as signals, Group(signals, self._tick) as group:
                self._group = group
                while self._turn.is_ours and is_wanted(entries := self._queue.entries()):
                    live = [e for e in entries if e.is_live and e.target == self._target.name]
                    if not live:
                        return
                    self._step(live)
                    if group.handle_signals():
                        raise Interrupted("interrupted; what was queued stays queued")
        finally:
            self._watch.close()

    def _tick(self) -> None:
        self._turn.beat()
        self._console.tick()

    def _step(self, live: list[Landing]) -> None:
        numbers = {entry.number for entry in live}
        is_stale = any(link.entry.number not in numbers for link in self._links)
        if is_stale or self._target.tip() != self._tip:
            self._begin(live)
            return
        self._extend(live)
        states = [link.state for link in self._links]
        batch, free = min(self._batch, self._settings.batch), self._slots - len(self._running)
        for at in due(states, batch=batch, free=free):
            self._start(self._links[at])
        names = ", ".join(f"`{link.entry.branch}`" for link in self._links)
        if names not in ("", self._said):
            about = Wait("", left_s=self._queue.expected_s(1)).text
            self._console.phase(f"testing {names} on `{self._target.name}`{about}")
            self._said = names
        if child := self._group.wait(_POLL_S):
            self._ended(child)
        self._settle()

    def _begin(self, live: list[Landing]) -> None:
        """Forget the chain; look where the target is, and what has landed there already."""
        self._drop()
        tip = self._target.tip()
        self._config, self._settings = settings_at(self._repo, tip)
        self._slots = slots_of(self._config)
        remote = self._settings.remote if self._settings.push else ""
        self._target = ForwardBranch(self._repo, self._target.name, remote)
        self._base = self._target.base()
        for entry in (entry for entry in live if entry.state == LANDING):  # somebody was killed
            if entry.commit and is_ancestor(self._repo, entry.commit, self._base):
                self._end([entry])
            else:
                self._queue.update([entry.number], state=WAITING)
        self._tip = tip

    # The chain

    def _drop(self) -> None:
        """Forget all links, and end their tests."""
        for link in self._links:
            self._stop(link)
        self._links.clear()
        self._deferred.clear()

    def _stop(self, link: Link) -> None:
        for other, child in self._running.values():
            if other is link:
                self._group.end(child)
                link.state = UNTESTED

    def _extend(self, live: list[Landing]) -> None:
        """Add waiting entries, as many as can be tested at once."""
        chained = {link.entry.number for link in self._links} | self._deferred
        room = self._settings.batch * self._slots - len(self._links)
        for entry in [entry for entry in live if entry.number not in chained][:room]:
            self._add(entry)

    def _add(self, entry: Landing) -> None:
        top = self._links[-1].commit if self._links else self._base
        commit = base = top
        try:
            for base in dict.fromkeys((self._base, top)):
                commit = build(self._repo, base, entry, self._settings.method)
            check_policies(self._repo, self._config, top, commit, entry.tip)
        except ConflictError as error:
            if base == self._base:
                text = describe_conflict(self._repo, base, entry, error)
                self._eject(entry, error.message, text)
            else:
                self._deferred.add(entry.number)  # what it conflicts with may be ejected yet
        except BarredError as error:
            what = f"`{entry.branch}` cannot land on `{entry.target}`"
            self._eject(entry, error.message, f"{what}: {error.full_message}")
        else:
            if commit != top:
                self._links.append(Link(entry, commit))
            elif self._links:
                self._deferred.add(entry.number)
            else:
                self._queue.update([entry.number], state=NOTHING, base=self._base)

    def _eject(self, entry: Landing, why: str, text: str, **fields: Any) -> None:  # noqa: ANN401 - of a Landing
        self._queue.eject(entry, why, text, base=self._base, **fields)
        self._console.message(f"`{entry.branch}` was ejected: {why}")

    # Tests

    def _start(self, link: Link) -> None:
        result_abs = self._result_abs(link)
        make_folder(os.path.dirname(result_abs))
        remove_file(result_abs)
        target, hook = self._target.name, self._settings.hook
        trial = json.dumps(LandTrial(link.commit, self._base, target, hook, result_abs))
        argv = (sys.executable, "-m", "gitgates", "land", f"--trial={trial}")
        command = Command(argv, self._repo.root_abs, dict(self._repo.env))
        child = self._group.start(command, _LIMIT_S, Capture(_KEPT_BYTES))
        if isinstance(child, str):
            raise StateError(child)
        self._watch.add(child.pid)
        link.state = TESTING
        self._running[child.pid] = link, child

    def _result_abs(self, link: Link) -> str:
        return f"{self._queue.folder_abs}/trials/{os.getpid()}-{link.commit}"

    def _ended(self, child: Child) -> None:
        """Take note of how a test has ended. Raises: GitgatesError if it could not be made."""
        link, _child = self._running.pop(child.pid)
        self._watch.remove(child.pid)
        outcome = read(read_state(self._result_abs(link)))
        remove_file(self._result_abs(link))
        if link.state != TESTING:
            return  # nobody waits for it any more
        if outcome is None or outcome.error:
            output = child.capture.captured()[0].decode("utf-8", "replace").strip().splitlines()
            why = outcome.why if outcome else "; ".join(output[-3:]) or "it was ended"
            hint = "What was queued stays queued: run `gitgates land` again."
            error = GitgatesError(f"`{link.entry.branch}` could not be tested: {why}", hint)
            error.exit_status = outcome.error if outcome else error.exit_status
            raise error
        link.outcome, link.state = outcome, GREEN if outcome.passed else RED

    def _settle(self) -> None:
        """Land what has passed; eject what has failed on what is good."""
        states = [link.state for link in self._links]
        at = landable(states, batch=self._settings.batch)
        if at >= 0:
            if time.monotonic() >= self._again_s:
                self._land(self._links[: at + 1])
        elif RED in states:
            red = states.index(RED)
            for link in self._links[red + 1 :]:
                self._stop(link)  # it is built on what has failed
            if red == 0:
                link, out = self._links[0], self._links[0].outcome
                self._batch = 1
                self._drop()
                what = f"`{link.entry.branch}` was not landed on `{self._target.name}`."
                text = f"{what}\n{out.feedback}"
                self._eject(link.entry, out.why, text, tested=link.commit, gates=out.gates)

    # Landing

    def _land(self, links: list[Link]) -> None:
        """Land links, the last of which has passed."""
        tested, out = links[-1].commit, links[-1].outcome
        fields: dict[str, Any] = {"gates": out.gates, "weakened": out.weakened, "tested": tested}
        fields |= {"state": LANDING, "why": self._held, "base": self._base}
        landing = [each.entry._replace(commit=each.commit, **fields) for each in links]
        if not self._queue.replace(landing):
            return  # one was cancelled: the next step sees it
        try:
            self._target.move(self._base, tested)
        except (MovedError, HeldError) as error:
            is_held = isinstance(error, HeldError)
            why = error.message if is_held else ""
            self._queue.update([e.number for e in landing], state=WAITING, why=why)
            if not is_held:
                self._tip = ""  # look again
            elif why != self._held:
                names = ", ".join(f"`{entry.branch}`" for entry in landing)
                self._console.message(f"{names}: the landing waits: {why}")
            self._held, self._again_s = why, time.monotonic() + _HELD_S
            return
        self._base, self._tip, self._held, self._again_s = tested, self._target.tip(), "", 0.0
        del self._links[: len(links)]
        self._batch += len(links)
        self._deferred.clear()
        self._end(landing)

    def _end(self, entries: list[Landing]) -> None:
        """Note what has landed: in git, then in the queue, so that a kill between is seen."""
        if trouble := write_notes(self._repo, entries):
            self._console.message(trouble)
        self._queue.update([entry.number for entry in entries], state=LANDED, why="")
        remote = self._settings.remote if self._settings.push else ""
        commits, say = [entry.commit for entry in entries], self._console.message
        for publish in providers(self._config, "publish_landed"):
            publish(self._repo, self._config, commits, remote=remote, say=say)
        for weakened in {entry.weakened for entry in entries if entry.weakened}:
            say(f"what has landed weakens the checks: {weakened}")
        for entry in entries:
            place = f"`{entry.target}` as {entry.commit[:_SHORT]}"
            self._console.message(f"`{entry.branch}` landed on {place}")


UNTESTED, TESTING, GREEN, RED = "untested", "testing", "green", "red"


class Link:
    """One candidate."""

    def __init__(self, entry: Landing, commit: str) -> None:
        self.entry, self.commit = entry, commit
        self.state = UNTESTED
        self.outcome = TrialOutcome(passed=False)


def due(states: Sequence[str], *, batch: int, free: int) -> list[int]:
    """Return the links to test now, in `free` slots: ends of batches, or what tells who fails."""
    if RED in states:
        below = [at for at in range(states.index(RED)) if states[at] == UNTESTED]
        if len(below) <= free:
            return below
        return [below[(number + 1) * len(below) // (free + 1)] for number in range(free)]
    last = max((at for at, state in enumerate(states) if state != UNTESTED), default=-1)
    ends = [
        min(end, len(states) - 1) for end in range(last + batch, len(states) + batch - 1, batch)
    ]
    return ends[: max(free, 0)]


def landable(states: Sequence[str], *, batch: int) -> int:
    """Return the highest link that may land; -1: none. With `batch` 1, each below has passed."""
    green = [at for at, state in enumerate(states) if state == GREEN]
    if batch == 1:
        green = [at for at in green if {*states[:at]} <= {GREEN}]
    return max(green, default=-1)
