"""Points: commits of the memory, each with what a worktree held, and who has made it so."""

from __future__ import annotations

from gitgates.core.record import Record
from gitgates.files.look import DEFAULT, NO_DEADLINE, Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo

SESSION, PERSON, GATE, UNDO = "session", "person", "gate", "undo"


class Author(Record):
    """Who made what differs from the previous point."""

    kind: str = PERSON  # SESSION, PERSON (whoever else it was), GATE, UNDO
    name: str = ""  # of a session, its id; of a gate, its name
    agent: str = ""  # the type or the id of a sub-agent


class Facts(Record):
    """At which event a point was made."""

    event: str = ""
    prompt: int = 0  # its number in the session
    prompt_text: str = ""  # its first words
    tool: str = ""
    what: str = ""  # the first words of the command, or the file
    undoes: tuple[int, ...] = ()  # numbers of the points that were undone


NO_FACTS = Facts()


class Point(Record):
    """What a worktree held at one moment."""

    id: str  # of the commit
    number: int  # for people; counted over all worktrees
    time_s: float
    root_abs: str
    author: Author
    facts: Facts
    tree: str  # raw
    ignored: str  # a tree; empty: none
    head: str
    parent: str = ""  # the id of the previous point of this worktree; empty: none
    state: str = ""  # the blob of the rest: `state_of`


class State(Record):
    """The rest of what a point holds."""

    branch: str = ""  # the ref that HEAD names; empty where it is detached
    refs: Mapping[str, str] = {}  # branch, `refs/heads/…` → commit
    stash: tuple[tuple[str, str], ...] = ()  # commit and message of each entry, the newest first
    index: str = ""  # a blob, with the bytes of the index; empty: there is none
    entries: str = ""  # a digest of what it has, without what `lstat` said
    umask: int = 0o022
    modes: Mapping[str, int] = {}  # path → permissions that are not those of the umask
    left_out: Mapping[str, str] = {}  # path → why it is in no tree
    unseen: tuple[str, ...] = ()


def record(
    repo: Repo,
    author: Author,
    facts: Facts = NO_FACTS,
    limits: Limits = DEFAULT,
    *,
    deadline_s: float = NO_DEADLINE,
) -> Point | None:
    """Look, and record what has changed since the previous point as changed by an author.

    Return None where nothing has. The first point of a worktree has no parent: it is what was
    there, and nobody's change.

    Raises: as `look`.
    """
    raise NotImplementedError


def points(repo: Repo, *, everywhere: bool = False) -> list[Point]:
    """Return the points of this worktree, or of all, the oldest first. Raises: GitError."""
    raise NotImplementedError


def latest(repo: Repo) -> Point | None:
    """Return the last point of this worktree; None: there is none. Raises: GitError."""
    raise NotImplementedError


def state_of(repo: Repo, point: Point) -> State:
    """Return the rest of a point. Raises: StateError where it is missing or damaged."""
    raise NotImplementedError
