"""The options of a headless run, and its possible results."""

from __future__ import annotations

from gitgates.core.record import Record
from gitgates.worktree.setup import WorktreeSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.headless.resume import Conversation
    from gitgates.hosts.headless import Client

HOOK = "headless"
# Outcome of a run → exit status, and description.
OUTCOMES: dict[str, tuple[int, str]] = {
    "passed": (0, "all gates passed"),
    "warned": (0, "passed with a warning"),
    "unchanged": (1, "the agent changed nothing in two turns"),
    "agent-failed": (1, "the agent's client failed twice"),
    "exhausted": (1, "the gates still failed when no retry was left"),
    "not-converging": (1, "the same failures recurred"),
    "breaker": (1, "too many blocks"),
    "cannot-fix": (1, "the agent reported that it cannot fix the failures"),
    "could-not-run": (1, "a gate could not run in two attempts"),
    "stopped": (1, "a gate stopped the run"),
    "terminal": (1, "a gate with `terminal = true` did not pass"),
    "denied": (1, "the agent changed files that `deny` matches in two attempts"),
    "unsettled": (1, "the gates passed, but changed files each time"),
    "unchecked": (1, "no gate applied to the changes, so nothing was checked"),
    "moved": (1, "a gate moved HEAD or changed the branch"),
    "interrupted": (130, "interrupted by a signal"),
    "over-cost": (1, "the cost limit of the run was reached"),
    "out-of-time": (1, "the time limit of the run was reached"),
}


class HeadlessOptions(Record):
    """The task and the options of a run."""

    task: str
    client: Client
    message: str = ""
    budget_s: float = 3600.0
    branch: str = ""  # a new one, for the commit
    in_place: bool = False
    uncommitted: bool = False  # begin with the working tree's current state as a commit
    earlier: Conversation | None = None  # to continue
    worktree: WorktreeSettings = WorktreeSettings()  # what its worktree needs


class Ended(Record):
    """The result of a run."""

    outcome: str  # a key of OUTCOMES
    why: str = ""  # details
    commit: str = ""  # its id
    branch: str = ""  # of the commit
    failed_ref: str = ""  # holds the agent's work
    attempts: int = 0
    rolled_back: bool = False  # the working tree has none of the changes
    notes: tuple[str, ...] = ()
