"""Where a plan runs, for how long at most, and who hears of it."""

from __future__ import annotations

import time

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from gitgates.git.repo import Repo
    from gitgates.git.run import Git
    from gitgates.types import GateResult, Plan

    class Listener(Protocol):
        """Who wants to know how a run goes on."""

        def planned(self, plan: Plan) -> None:
            """Hear what is going to run."""

        def started(self, gate: str) -> None:
            """Hear that a gate starts."""

        def ended(self, result: GateResult, plan: Plan) -> None:
            """Hear how a gate ended."""

        def tick(self) -> None:
            """Be called now and then while something runs."""

        def said(self, text: str) -> None:
            """Hear something that a person should know at once."""


class Silent:
    """The listener that wants to know nothing."""

    def planned(self, plan: Plan) -> None:
        """Ignore it."""

    def started(self, gate: str) -> None:
        """Ignore it."""

    def ended(self, result: GateResult, plan: Plan) -> None:
        """Ignore it."""

    def tick(self) -> None:
        """Ignore it."""

    def said(self, text: str) -> None:
        """Ignore it."""


class Deadline(Record):
    """The end of the time that all gates of an event have together."""

    at: float  # of the monotonic clock
    limit_s: float  # what it was in the beginning, for people

    def left_s(self) -> float:
        """Return how much of it is left; 0 where it is over."""
        return max(self.at - time.monotonic(), 0.0)


class World(Record):
    """Where a plan runs."""

    repo: Repo
    git: Git  # in the root, with the environment that the host gave us
    env: Mapping[str, str]  # what gates start from
    listener: Listener
    wants_ticks: bool = False
    is_nested: bool = False  # another run here is waiting for this one
    in_checkout: bool = False  # `git` works in a private checkout, with a repository of its own
    deadline: Deadline | None = None
    logs_abs: str = ""  # where the gates' logs go; empty: into a new run
    began_ns: int = 0  # when the event came, by the wall clock; 0: that does not matter
    earlier: Mapping[tuple[str, int], GateResult] = {}  # results that stand already

    def say(self, text: str) -> None:
        """Tell the person something at once."""
        self.listener.said(text)
