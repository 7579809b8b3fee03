"""Points: commits in the memory, each with a worktree's content, and who changed it.

    files/     the files, tracked and untracked
    ignored/   those that git ignores, and that cannot be made again
    index      the bytes of the index
    staged/    what it names
    state      the rest, as JSON: `State`

The first parent is the previous point of the worktree. The message ends with a line of JSON.

    files.last   of one worktree: what its last point has
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import GitError, StateError
from gitgates.core.lean_json import dumps, loads
from gitgates.core.record import Record
from gitgates.files.git_state import State, hold_commits, link_objects, read_git_state
from gitgates.files.look import DEFAULT, NO_DEADLINE, Limits, Locked, Look, look_locked
from gitgates.files.memory import Memory
from gitgates.store.files import read_cached, read_state, remove_file, replace_cached, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from gitgates.git.repo import Repo

SESSION, PERSON, GATE, UNDO = "session", "person", "gate", "undo"
_VERSION = 1
_FORMAT = "%H %P%n%B"


class Author(Record):
    """Who made what differs from the previous point."""

    kind: str = PERSON  # SESSION, PERSON (anybody else), GATE, UNDO
    name: str = ""  # of a session, its id; of a gate, its name
    agent: str = ""  # the type or the id of a sub-agent; of a gate, the session that it ran in


class Facts(Record):
    """At which event a point was made."""

    event: str = ""
    prompt: int = 0  # its number in the session
    prompt_text: str = ""  # its first words
    tool: str = ""
    what: str = ""  # the first words of the command, or the file
    undoes: tuple[int, ...] = ()  # numbers of the points that were undone
    beside: tuple[str, ...] = ()  # other sessions whose calls were open: it may be theirs, too


NO_FACTS = Facts()


class Point(Record):
    """What a worktree held at one moment."""

    id: str  # of the commit
    number: int  # for people; counted over all worktrees. 0: the first one, which changes nothing
    time_s: float
    root_abs: str
    author: Author
    facts: Facts
    tree: str  # raw
    ignored: str  # a tree; empty: none
    head: str
    parent: str = ""  # the id of the previous point of this worktree; empty: none
    state: str = ""  # the blob of the rest: `state_of`


class Recorded(Record):
    """What `look_and_record` has found."""

    point: Point | None  # None: nothing has changed
    look: Look


def record(repo: Repo, author: Author, *more: Any) -> Point | None:  # noqa: ANN401 - as below
    """Look and record; return the point, None if nothing has changed. Raises: as `look`."""
    return look_and_record(repo, author, *more).point


def look_and_record(
    repo: Repo,
    author: Author,
    facts: Facts = NO_FACTS,
    limits: Limits | None = DEFAULT,
    *,
    deadline_s: float = NO_DEADLINE,
) -> Recorded:
    """Look, and record what has changed since the previous point as changed by an author.

    The first point of a worktree has no parent: it is what was there, and nobody's change.
    `limits`: None for those of the last look.

    Raises: as `look`.
    """
    memory = Memory(repo)
    with Locked(memory, deadline_s):
        tree_look = look_locked(memory, limits, ignored=True, until_s=deadline_s)
        point = _record_locked(memory, tree_look, author, facts)
        return Recorded(point, tree_look._replace(notes=tuple(memory.notes)))


def _record_locked(memory: Memory, tree_look: Look, author: Author, facts: Facts) -> Point | None:
    parent = _known_parent(memory)
    git = read_git_state(memory)
    text = dumps(_state(tree_look, git)._asdict())
    cache_abs = f"{memory.repo.state_abs}/files.last"
    key = (tree_look.tree, tree_look.ignored, git.head, text)
    cached = read_cached(cache_abs)
    if parent and cached == (_VERSION, parent, key):
        return None
    state = memory.write("blob", os.fsencode(text))
    if not (isinstance(cached, tuple) and cached[:2] == (_VERSION, parent)):
        last = point_at(memory.repo, parent)  # its recorder was killed before it wrote the cache
        if last and (last.tree, last.ignored, last.head, last.state) == (*key[:3], state):
            return None
    point = Point(
        id="",
        number=_next_number(memory) if parent else 0,
        time_s=time.time(),
        root_abs=memory.repo.root_abs,
        author=author,
        facts=facts,
        tree=tree_look.tree,
        ignored=tree_look.ignored,
        head=git.head,
        parent=parent,
        state=state,
    )
    entries = [("40000", "files", tree_look.tree), ("100644", "state", state)]
    for mode, name, object_id in (
        ("40000", "ignored", tree_look.ignored),
        ("100644", "index", git.index_blob),
        ("40000", "staged", git.staged),
    ):
        if object_id:
            entries.append((mode, name, object_id))
    tree = memory.write_tree(entries)
    parents = [parent] if parent else []
    commit = memory.write_commit(
        tree, parents, name=_who(author), message=_message(point), time_s=point.time_s
    )
    memory.write_ref(memory.ref, commit)
    replace_cached(cache_abs, (_VERSION, commit, key), sync=False)
    return point._replace(id=commit)


def _known_parent(memory: Memory) -> str:
    """Return the last point; empty if there is none, or it is damaged."""
    parent = memory.read_ref(memory.ref)
    if not parent:
        return ""
    if os.path.exists(f"{memory.folder_abs}/objects/{parent[:2]}/{parent[2:]}"):
        return parent
    if memory.reading.ask("cat-file", "-e", f"{parent}^{{tree}}").exit_status:
        memory.notes.append("the last point was damaged: the history starts again")
        remove_file(f"{memory.repo.state_abs}/files.kept")  # what it says to be stored may be gone
        return ""
    return parent


def _state(tree_look: Look, git: State) -> State:
    return git._replace(
        umask=tree_look.umask,
        modes=_sorted(tree_look.modes),
        folders=_sorted(tree_look.folders),
        owners=_sorted(tree_look.owners),
        left_out=_sorted(tree_look.all_left_out),
        unseen=tree_look.unseen,
    )


def _sorted(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(values.items()))


def _who(author: Author) -> str:
    return " ".join(filter(None, (author.kind, author.name, author.agent)))


def _message(point: Point) -> str:
    what = " ".join(filter(None, (point.facts.event, point.facts.tool, point.facts.what)))
    subject = " ".join(f"{point.number}: {what}".split())
    fields = point._asdict()
    del fields["id"], fields["parent"]
    fields |= {"author": point.author._asdict(), "facts": point.facts._asdict()}
    return f"{subject}\n\n{dumps({'v': _VERSION, **fields})}"


def _next_number(memory: Memory) -> int:
    """Return the next point's number: none is used twice."""
    path_abs = f"{memory.folder_abs}/number"
    fd = memory.lock("number.lock")
    try:
        content = read_state(path_abs) or b""
        if content.isdigit():
            number = int(content)
        else:
            number = max([0, *(point.number for point in points(memory.repo, everywhere=True))])
        replace_file(path_abs, b"%d" % (number + 1), sync=False)
    finally:
        os.close(fd)
    return number + 1


def points(repo: Repo, *, everywhere: bool = False, since_s: float = 0.0) -> list[Point]:
    """Return the points of this worktree, or of all, the oldest first.

    Those before one that is damaged are left out. Raises: GitError if git cannot be asked.
    """
    memory = Memory(repo)
    if not memory.exists() or not (everywhere or memory.read_ref(memory.ref)):
        return []
    which = "--glob=refs/points/*" if everywhere else memory.ref
    bound = (f"--max-age={int(since_s)}",) if since_s else ()
    ask = ("log", "-z", "--first-parent", f"--format={_FORMAT}", *bound, which, "--")
    log = [_point(entry) for entry in memory.reading.ask(*ask).stdout.split(b"\0")]
    return sorted((point for point in log if point), key=lambda point: point.number)


def points_since(repo: Repo, since_s: float) -> list[Point]:
    """Return the last point before a moment, and those since; none if there was none before.

    Raises: GitError if git cannot be asked.
    """
    latest_points = points(repo, since_s=since_s)
    later = [point for point in latest_points if point.time_s > since_s]
    earlier = latest_points[: len(latest_points) - len(later)][-1:]
    if not earlier:
        last = point_at(repo, later[0].parent) if later else latest(repo)
        earlier = [last] if last else []
    return [*earlier, *later] if earlier else []


def has_changed_since(repo: Repo, since_s: float) -> bool:
    """Return whether a point was made since a moment. Raises: OSError."""
    memory = Memory(repo)
    try:
        return os.stat(f"{memory.folder_abs}/{memory.ref}").st_mtime > since_s
    except FileNotFoundError:
        return memory.exists()


def latest(repo: Repo) -> Point | None:
    """Return the last point of this worktree; None: there is none. Raises: GitError."""
    memory = Memory(repo)
    return point_at(repo, memory.read_ref(memory.ref)) if memory.exists() else None


def latest_everywhere(repo: Repo) -> list[Point]:
    """Return the last point of each worktree. Raises: GitError."""
    memory = Memory(repo)
    ask = ("log", "-z", "--no-walk", f"--format={_FORMAT}", "--glob=refs/points/*", "--")
    log = memory.reading.ask(*ask).stdout.split(b"\0") if memory.exists() else []
    return [point for entry in log if (point := _point(entry))]


def point_at(repo: Repo, commit: str) -> Point | None:
    """Return a point by its commit, such as a parent; None: it is damaged. Raises: GitError."""
    ask = ("log", "-1", "--no-walk", f"--format={_FORMAT}", commit, "--")
    return _point(Memory(repo).reading.ask(*ask).stdout) if commit else None


def _point(entry: bytes) -> Point | None:
    """Return a point; None for one that is damaged, or of a later version."""
    head, _, body = entry.lstrip(b"\n").partition(b"\n")
    commit, *parents = head.decode().split() or [""]
    try:
        fields = loads(body.strip().rpartition(b"\n")[2])
        if fields.pop("v") != _VERSION:
            return None
        facts = fields["facts"]
        facts |= {name: tuple(facts.get(name, ())) for name in ("undoes", "beside")}
        fields |= {"author": Author(**fields["author"]), "facts": Facts(**facts)}
        return Point(id=commit, parent=parents[0] if parents else "", **fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def state_of(repo: Repo, point: Point) -> State:
    """Return the rest of a point. Raises: StateError if it is missing or damaged."""
    try:
        plain = loads(Memory(repo).reading.out("cat-file", "blob", point.state))
        plain["stash"] = tuple((commit, message) for commit, message in plain["stash"])
        plain["owners"] = {path: (user, group) for path, (user, group) in plain["owners"].items()}
        return State(**{**plain, "unseen": tuple(plain["unseen"])})
    except (GitError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StateError(f"the point {point.number} is damaged: {error}") from error


def hold(repo: Repo, commits: Iterable[str]) -> None:
    """Keep commits of the user's, with all that they need, also if `git gc` removes them there.

    Raises: StateError, GitError.
    """
    memory = Memory(repo)
    with Locked(memory):
        memory.prepare()
        all_linked = link_objects(memory, {})
        hold_commits(memory, commits, copied=not all_linked)
