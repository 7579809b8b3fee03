"""`gitgates undo`: list save points, select some, and undo them."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from shlex import quote

import click

from gitgates.core import errors
from gitgates.core.clean import counted, first_few, plain_line, visible_line
from gitgates.core.errors import UsageError
from gitgates.core.record import Record
from gitgates.drivers.caller import identify
from gitgates.drivers.recorder import writer
from gitgates.features.undo import put_back, undoing
from gitgates.features.undo.git_back import Wish
from gitgates.features.undo.moments import (
    Moments,
    agent_of,
    changed_folders,
    is_agents,
    recorded,
    session_of,
    undoable,
)
from gitgates.features.undo.settings import repository_limits
from gitgates.files.memory import Memory
from gitgates.files.points import PERSON, UNDO, latest, record
from gitgates.git.repo import nul_split
from gitgates.hosts import calling_session, is_called_by_agent
from gitgates.journal import entries as facts
from gitgates.store.log import file_name, utc
from gitgates.store.proofs import age
from gitgates.verbs.approval import require_person
from gitgates.verbs.output import dump, format_option, print_json, table
from gitgates.verbs.repository import current_repo
from gitgates.worktree.locks import WAIT_S

_VERSION = 1
_SHOWN = 30
_LONGEST, _LONGEST_PROMPT = 60, 30
AGENT, OTHERS = "agent", "others"
_DIGITS = 18  # of an ID: no point has a longer one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from gitgates.features.undo.moments import Moment
    from gitgates.files.look import Limits
    from gitgates.files.points import Point
    from gitgates.git.repo import Repo


class Request(Record):
    """What to undo, and how."""

    paths: tuple[str, ...] = ()  # from the root; empty: all
    wish: Wish = Wish()
    is_dry: bool = False
    is_redo: bool = False
    fmt: str = "text"


def options_of_undo(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that undo and redo share."""
    for option in (
        format_option,
        click.option("--caller", hidden=True, default=""),
        click.option("--token", metavar="TOKEN", default="", help="A person's approval."),
        click.option("--branch", is_flag=True, help="Move HEAD and branches back as well."),
        click.option("--index", is_flag=True, help="Put the index back as well."),
        click.option("--dry-run", is_flag=True, help="Show the difference, and change nothing."),
    ):
        function = option(function)
    return function


@click.command("undo")
@click.argument("words", metavar="[ID] [PATH]...", nargs=-1)
@click.option("--last", is_flag=True, help="Undo only an agent's last change.")
@click.option(
    "--prompt", metavar="N", type=click.IntRange(min=1), help="Undo everything since prompt N."
)
@click.option(
    "--turn", is_flag=True, help="Undo what the calling agent has changed in its current turn."
)
@click.option("--session", metavar="S", default="", help="Undo what this session has changed.")
@click.option("--agent", metavar="A", default="", help="Undo what this sub-agent has changed.")
@click.option(
    "--all", "shows_all", is_flag=True, help="List all save points, not only the newest 30."
)
@options_of_undo
def command(  # noqa: PLR0913 - its options
    words: tuple[str, ...],
    *,
    last: bool,
    prompt: int | None,
    turn: bool,
    session: str,
    agent: str,
    shows_all: bool,
    dry_run: bool,
    index: bool,
    branch: bool,
    token: str,
    caller: str,
    fmt: str,
) -> int:
    """List what agents have changed, and undo it.

    Without ID and options, prints a list, newest first. With an ID, undoes that change and what the
    same session has changed since. PATH limits this to files and folders. Later changes by others
    are merged or, if they conflict, kept next to the file and reported. To undo an undo: gitgates
    redo.

    Deleted branches and stash entries come back. The index, HEAD and moved branches stay as they
    are without --index and --branch. Commits that --branch moves away from are kept in
    refs/gitgates/undone.
    """
    repo = current_repo()
    number = _id_of(words)
    chosen = {"an ID": number, "--prompt": prompt, "--last": last, "--turn": turn}
    _require_one([name for name, value in chosen.items() if value], session=session, agent=agent)
    if turn:
        own = _calling_turn(repo, caller)
        session, prompt = own.session, own.prompt
    selection = Selection(id=number, prompt=prompt or 0, last=last, session=session, agent=agent)
    paths = tuple(_relative(repo, word) for word in words[bool(number) :])
    names_root = "" in paths
    if not selection and paths:
        raise errors.UsageError(
            f"got the path `{visible_line(words[0])}`, but not what to undo",
            f"Put an ID in front of it, or --last: gitgates undo --last {quote(words[0])}",
        )
    if not selection:
        return _list(repo, fmt, shows_all=shows_all)
    paths = () if names_root else paths
    request = Request(paths=paths, wish=Wish(index, branch), is_dry=dry_run, fmt=fmt)
    with begun(repo) as limits:
        wanted = selected(recorded(repo), selection)
        if not dry_run:
            _require_owner(repo, wanted, caller, token)
        return go_back(repo, limits, wanted, request)


@contextmanager
def begun(repo: Repo) -> Iterator[Limits]:
    """Finish and report a killed undo; record what has changed. Yield the limits.

    Raises: as `put_back.finish`, `put_back.locked` and `files.points.record`.
    """
    limits = repository_limits(repo)
    with put_back.locked(repo, WAIT_S, lambda text: click.echo(f"gitgates: {text}", err=True)):
        for note in put_back.finish(repo, limits):
            click.echo(f"gitgates: {note}", err=True)
        record(repo, *writer(repo), limits)
        yield limits


def go_back(repo: Repo, limits: Limits, wanted: list[Point], request: Request) -> int:
    """Undo points, and report the result.

    Raises: StateError, GitError, OSError.
    """
    moments, present = Moments(repo), latest(repo)
    if present is None:
        raise errors.StateError("the last save point is damaged")
    plan = undoing.plan(moments, moments.of(present), wanted, request.paths)
    if plan.unknown_paths:
        what = f"`{visible_line(plan.unknown_paths[0])}`: no change to undo touches it"
        raise errors.UsageError(what, "To see what changed: gitgates undo ID --dry-run")
    targets = plan.targets
    done = {path: _what(target) for path, target in sorted(targets.items())}
    if request.is_dry:
        return _show_difference(repo, targets, done, request.fmt)
    numbers = [point.number for point in wanted]
    owners = moments.before(wanted[0]).state.owners
    undo = put_back.Undo(
        undone=tuple(point.id for point in wanted),
        numbers=() if request.paths else tuple(numbers),
        session=calling_session(repo.env),
        what=f"of {first_few([str(number) for number in reversed(numbers)], 5)}",
        targets=targets,
        folders=changed_folders(moments, wanted, targets),
        owners={path: owners[path] for path in targets if path in owners},
        wish=request.wish,
    )
    point, notes = put_back.put_back(repo, limits, undo)
    notes = [*plan.notes, *notes]
    if request.fmt == "json":
        number = point.number if point else None
        print_json({"version": _VERSION, "id": number, "files": done, "notes": notes})
        return errors.OK
    for path, what in done.items():
        click.echo(f"{what:8}  {visible_line(path)}")
    for note in notes:
        click.echo(f"note: {note}")
    files = counted(len(done), "file")
    if request.is_redo:
        text, again = f"redone: the last undo is undone, {files}", "to undo again"
    else:
        text, again = f"undone: {counted(len(wanted), 'change')}, {files}", "to redo"
    if point:  # undoing an undo leaves nothing to redo
        verb = f"undo {point.number}" if wanted[0].author.kind == UNDO else "redo"
        text += f"; {again}: gitgates {verb}"
    click.echo(text)
    return errors.OK


def _id_of(words: tuple[str, ...]) -> int:
    """Return the ID that a command line begins with; 0: none."""
    if not (words and words[0].isdecimal()):
        return 0
    number = int(words[0][:_DIGITS])
    if not number:
        raise errors.UsageError("there is no save point 0", "For a list, see: gitgates undo")
    return number


def _calling_turn(repo: Repo, caller: str) -> OwnTurn:
    own = current_turn(repo, caller)
    if own is None:
        what = "--turn: the calling session is not known"
        raise errors.UsageError(what, "Name the prompt: --prompt N")
    return own


def _require_one(chosen: list[str], *, session: str, agent: str) -> None:
    """Check that a command names what to undo in only one way."""
    if len(chosen) > 1:
        what = f"{chosen[0]} and {chosen[1]} exclude each other"
        raise errors.UsageError(what, "Give one of them. A path that is a number: ./3")
    if chosen and chosen[0] in ("an ID", "--turn") and (session or agent):
        option = "--session" if session else "--agent"
        raise errors.UsageError(f"{chosen[0]} and {option} exclude each other", "Omit one.")


def _require_owner(repo: Repo, wanted: list[Point], caller: str, token: str) -> None:
    """Check that an agent undoes only its own turn; a person may undo everything."""
    if not (is_called_by_agent(repo.env) or caller or token):
        return
    own = None if token else current_turn(repo, caller)
    if not (own and all(map(own.has, wanted))):
        require_person(repo, "undo", token, otherwise="An agent may undo its own turn only. ")


def _relative(repo: Repo, path: str) -> str:
    inside = repo.relative(os.path.join(os.getcwd(), path))
    if inside == ".." or inside.startswith("../"):
        raise errors.UsageError(f"{path}: is outside the repository {repo.root_abs}")
    return "" if inside == "." else inside


def _what(target: undoing.Target) -> str:
    if target.version is None:
        return "removed"
    if target.now is None:
        return "restored"
    return "merged" if target.is_merged else "changed"


def _show_difference(
    repo: Repo, targets: Mapping[str, undoing.Target], done: Mapping[str, str], fmt: str
) -> int:
    if fmt == "json":
        print_json({"version": _VERSION, "dry_run": True, "files": done})
        return errors.OK
    if targets:
        dump(undoing.difference(repo, targets))
    else:
        click.echo("no file would change")
    return errors.OK


# The list


def _list(repo: Repo, fmt: str, *, shows_all: bool = False) -> int:
    """Print the save points of a worktree."""
    listed = recorded(repo)
    can, moments = {point.id for point in undoable(listed)}, Moments(repo)
    listed.reverse()
    shown = listed if shows_all else listed[:_SHOWN]
    rows = [_row(moments, point, is_undone=point.id not in can) for point in shown]
    if fmt == "json":
        print_json({"version": _VERSION, "points": rows})
        return errors.OK
    if not listed:
        click.echo("gitgates: there are no save points", err=True)
        return errors.OK
    lines: list[tuple[str, ...]] = [("ID", "when", "who", "prompt", "what", "changed", "")]
    for point, row in zip(shown, rows, strict=True):
        prompt, what = plain_line(row["prompt_text"], _LONGEST_PROMPT), row["what"]
        columns = (str(row["id"]), age(point.time_s), plain_line(row["who"]), prompt)
        undone = "undone" if row["undone"] else ""
        lines.append((*columns, plain_line(what, _LONGEST), row["changed"], undone))
    sys.stdout.write(table(lines, right=(0,)))
    if len(shown) < len(listed):
        click.echo(f"{len(listed) - len(shown)} older save points: gitgates undo --all")
    return errors.OK


def _row(moments: Moments, point: Point, *, is_undone: bool) -> dict[str, Any]:
    """Return a point for display, even if its objects are damaged."""
    author, facts, session = point.author, point.facts, session_of(point)
    names: Iterable[str] = ()
    added = removed = 0
    try:
        before, after = moments.before(point), moments.of(point)
        names = moments.changes(point)
        added, removed = _counted_lines(moments.repo, before, after)
        parts = [counted(len(names), "file")] if names else []
        parts += [f"+{added} −{removed}"] if added or removed else []
        parts += _other_parts(before, after)
    except (errors.StateError, errors.GitError):
        parts = ["damaged"]
    what, who, by = "", "somebody else", OTHERS
    if is_agents(point):
        what = f"{facts.tool}: {facts.what}" if facts.what else facts.tool
        who, by = f"session {session[:8]}" if session else "agent", AGENT
    elif author.kind == UNDO:
        what, who, by = f"undo {facts.what}", "undo", UNDO
    prompt = f"prompt {facts.prompt}" if facts.prompt else ""
    return {
        "id": point.number,
        "time": utc(point.time_s),
        "by": by,
        "who": ", ".join(filter(None, (who, prompt, agent_of(point)))),
        "session": session or (author.name if by == UNDO else ""),
        "agent": agent_of(point),
        "prompt": facts.prompt,
        "prompt_text": facts.prompt_text,
        "tool": facts.tool,
        "what": what,
        "changed": ", ".join(parts),
        "files": sorted(names),
        "lines_added": added,
        "lines_removed": removed,
        "undone": by == AGENT and is_undone,
    }


def _other_parts(before: Moment, after: Moment) -> list[str]:
    others: list[tuple[str, Any]] = [
        ("index", lambda moment: moment.state.entries),
        ("HEAD", lambda moment: (moment.point.head, moment.state.branch)),
        ("branches", lambda moment: moment.state.refs),
        ("stash", lambda moment: moment.state.stash),
    ]
    return [name for name, of in others if of(before) != of(after)]


def _counted_lines(repo: Repo, before: Moment, after: Moment) -> tuple[int, int]:
    """Return how many lines were added and removed, without ignored files."""
    if before.point.tree == after.point.tree:
        return 0, 0
    ask = ("diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv")
    numbers = Memory(repo).reading.out(*ask, before.point.tree, after.point.tree, "--")
    fields = [entry.split("\t", 2) for entry in nul_split(numbers)]
    return (
        sum(int(more) for more, _less, _path in fields if more.isdecimal()),
        sum(int(less) for _more, less, _path in fields if less.isdecimal()),
    )


class Selection(Record):
    """What a command line selects; empty: nothing."""

    id: int = 0
    prompt: int = 0
    last: bool = False
    session: str = ""  # a prefix is enough
    agent: str = ""

    def __bool__(self) -> bool:
        return self != Selection()


def selected(points: list[Point], selection: Selection) -> list[Point]:
    """Return the points to undo, the oldest first.

    An id or a prompt selects that change and all later ones by the same session. Somebody else's
    point is undone alone, and only by its id.

    Raises: UsageError if there is none.
    """
    if selection.id:
        return _since_id(points, selection.id)
    found = [
        point
        for point in filter(is_agents, undoable(points))
        if session_of(point).startswith(selection.session)
        and selection.agent in ("", agent_of(point))
    ]
    if not found:
        whose = " of that session or agent" if selection.session or selection.agent else ""
        raise UsageError(f"there is nothing to undo{whose}", "For a list, see: gitgates undo")
    session = session_of(found[-1])
    if len(set(map(session_of, found))) > 1 and selection.session:
        names = ", ".join(sorted(set(map(session_of, found))))
        raise UsageError(
            f"--session {selection.session} means several sessions: {names}", "Write it in full."
        )
    if selection.last:
        return found[-1:]
    found = [point for point in found if session_of(point) == session]
    if selection.prompt:
        numbers = sorted({point.facts.prompt for point in found})
        found = [point for point in found if point.facts.prompt >= selection.prompt]
        if selection.prompt not in numbers:
            known = ", ".join(map(str, numbers))
            what = f"prompt {selection.prompt} of session {session} has changed nothing"
            raise UsageError(what, f"These have: {known}")
    return found


def last_undo(points: list[Point]) -> list[Point]:
    """Return the last undo that was not itself undone, as a list.

    Raises: UsageError if there is none.
    """
    undos = [
        point
        for point in undoable(points)
        if point.author.kind == UNDO and not _is_redo(point, points)
    ]
    if not undos:
        raise UsageError("there is no undo to redo", "For a list, see: gitgates undo")
    return undos[-1:]


def _is_redo(point: Point, points: list[Point]) -> bool:
    undone = {*point.facts.undoes}
    return any(each.number in undone and each.author.kind == UNDO for each in points)


def _since_id(points: list[Point], point_id: int) -> list[Point]:
    by_id = {point.number: point for point in points}
    if not (first := by_id.get(point_id)):
        raise UsageError(f"there is no save point {point_id}", "For a list, see: gitgates undo")
    if first.author.kind == PERSON:
        return [first]
    can = undoable(points)
    if first not in can:
        raise UsageError(f"save point {point_id} is already undone", "To undo that: gitgates redo")
    if first.author.kind == UNDO:
        return [first]
    return [
        point
        for point in can
        if point.number >= point_id and is_agents(point) and session_of(point) == session_of(first)
    ]


class OwnTurn(Record):
    """A session, and the number of its prompt."""

    session: str
    prompt: int

    def has(self, point: Point) -> bool:
        """Return whether a point is a change of this turn."""
        return (file_name(session_of(point)), point.facts.prompt) == (self.session, self.prompt)


def current_turn(repo: Repo, nonce: str) -> OwnTurn | None:
    """Return the caller's turn, by the nonce that a hook added to the command; None: unknown.

    Raises: UsageError, StateError as `identify`.
    """
    caller = identify(repo, repo.env, nonce=nonce)
    if caller is None:
        return None
    prompt = facts.SESSION.fold(caller.facts[0]).prompt
    return OwnTurn(session=caller.session, prompt=int(prompt) if prompt.isdecimal() else 0)
