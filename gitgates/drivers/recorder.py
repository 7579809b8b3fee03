"""Record a worktree's content around tool calls that may write, and who has changed it since.

Changes between the two points of a call belong to its session; those between calls to somebody
else, unless another call of a session is open. A call is open until the event after it; a refused
one has none, and is over when its agent does something else. Changes by a background command belong
to its session as long as it runs.

The open calls of a worktree are in `recorder.calls`; without any, that file does not exist.
"""

from __future__ import annotations

import os
import time

from gitgates.core.agent_types import UNCHANGING
from gitgates.core.errors import GitgatesError
from gitgates.core.policy import functions_of
from gitgates.core.record import Record
from gitgates.files.look import DEFAULT, TimeOver, look
from gitgates.files.points import GATE, SESSION, Author, Facts, look_and_record
from gitgates.hosts import DEFAULT_AGENT, agent_host
from gitgates.journal.entries import first_words
from gitgates.proc.parents import Program, is_running, who_started
from gitgates.store.files import (
    lock_file,
    make_folder,
    read_cached,
    remove_file,
    replace_cached,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.core.agent_types import Payload
    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Config
    from gitgates.drivers.call import Call
    from gitgates.files.look import Limits, Look
    from gitgates.files.points import Point
    from gitgates.git.repo import Repo

_LOOK_S = 30.0  # that a look may take, beside the gates of an event
_AT_START_S = 2.0  # that a session's start waits for one
_ANSWER_S = 1.0  # that is left after it, to say why it did not finish
_PARALLEL_S = 2.0  # within which an agent begins tool calls that run in parallel
_PRUNE_S = 5.0
_LONGEST_S = 3600.0  # of a call whose client is not known
_WAIT_S = 3.0
_AFTER = ("after-tool", "tool-failed")
# What ends all calls of an agent, or of its session.
_ENDS = ("turn-end", "prompt", "session-start", "session-end", "after-batch", "subagent-end")


class Origin(Record):
    """Who has changed files, and with what."""

    author: Author = Author()
    facts: Facts = Facts()


class OpenCall(Record):
    """A tool call that may be changing files now."""

    began_s: float
    session: str
    agent_id: str
    origin: Origin
    client: Program | None
    tells_failures: bool  # its client has an event after a call that failed
    runs_on: str = ""  # TOOL, SHELL: it goes on in the background, as its tool or a shell says


TOOL, SHELL = "tool", "shell"


class Observed(Record):
    """What was seen at an event."""

    look: Look | None = None  # None: there was no reason to look
    point: Point | None = None  # of what has changed up to now; None: nothing has
    # Before the look: a call that ends meanwhile has changed what that finds.
    calls: Mapping[str, OpenCall] = {}


_NOTHING = Observed()


def may_write(payload: Payload) -> bool:
    """Return whether a tool call may change files: all may that are not known to read only."""
    kind = payload.tool.kind
    if kind in ("", "ours", *UNCHANGING):
        return False
    if kind == "agent":  # its own calls are reported, if the client tells of it
        return not agent_host(payload.host or DEFAULT_AGENT).has("subagent-start")
    if kind != "shell":
        return True
    from gitgates.drivers.reading import is_reading

    return not (payload.tool.command and is_reading(payload.tool.command))


def is_saved(call: Call) -> bool:
    """Return whether files must be saved before a tool call."""
    return may_write(call.payload) and _limits(call.config, call.kind) is not None


def is_recorded(call: Call) -> bool:
    """Return whether a policy asks for points: to save files, or to tell who has changed them."""
    if _limits(call.config, call.kind) is not None:
        return True
    follows = functions_of(call.config, "follows_writers", call.kind)
    return any(each(call.config) for each in follows)


def observe(call: Call, *, always: bool = False) -> Observed:
    """Record what has changed up to an event, and whose it is; open or close the tool call.

    If an event is about no tool that may write, nothing is read unless `always`. Asking again
    returns the same. If the look at a session's start takes long, it goes on in the background.

    Raises: TimeOver if the look did not finish in time, and as `files.look.look`.
    """
    kept: tuple[Observed | None, GitgatesError | None] = vars(call).get("observed", (None, None))
    observed, error = kept
    if error:
        raise error
    if observed is None or (always and not observed.look):
        try:
            observed = _observe(call, always=always)
        except TimeOver as time_over:
            vars(call)["observed"] = None, time_over
            if call.kind == "session-start":
                _start_ahead(call)
            raise
        vars(call)["observed"] = observed, None
        if observed.point:
            _prune_unless_saved(call)
    return observed


def observe_if_recorded(call: Call, *, always: bool = False) -> None:
    """Record what has changed up to an event, if anybody asks for that; say what goes wrong."""
    if is_recorded(call):
        try:
            observe(call, always=always)
        except GitgatesError as error:
            call.say(str(error))


def _prune_unless_saved(call: Call) -> None:
    """Remove old points if nobody saves files: who does, removes them by limits of its own."""
    if _limits(call.config, call.kind) or _limits(call.config):
        return
    from gitgates.files.prune import prune  # if save points are off; works once in an hour

    try:
        if text := prune(call.repo, time.time(), limit_s=_PRUNE_S):
            call.note(text)
    except GitgatesError as error:
        call.note(f"old points in the memory are not removed: {error}")


def shared_look(call: Call) -> Look | None:
    """Return the event's look, for others that need one, too; None: nobody records points.

    Raises: as `observe`.
    """
    return observe(call, always=True).look if is_recorded(call) else None


def begin(call: Call) -> Observed:
    """Look when a session begins, unless that takes long.

    Raises: as `files.look.look`, except for TimeOver.
    """
    try:
        return observe(call, always=True)
    except TimeOver:
        return _NOTHING


def is_late(call: Call) -> bool:
    """Return whether the look at an event did not finish in time."""
    return isinstance(vars(call).get("observed", (None, None))[1], TimeOver)


def _start_ahead(call: Call) -> None:
    from gitgates.proc.call import start_unattended  # only in large repositories

    code = "import os; from gitgates.drivers import recorder; "
    code += f"recorder.look_ahead({call.repo.root_abs!r}, dict(os.environ))"
    start_unattended(code, call.env)


def look_ahead(root_abs: str, env: Mapping[str, str]) -> None:
    """Look at a repository, which may take minutes."""
    from gitgates.config.load import load
    from gitgates.core.types import Config
    from gitgates.git.repo import find_repo

    repo = find_repo(root_abs, env)
    origin = writer(repo)
    look_and_record(
        repo, origin.author, origin.facts, _limits(load(root_abs) or Config()) or DEFAULT
    )


def record_gates(call: Call, names: list[str]) -> None:
    """Record what gates have changed since the last look as theirs, if anybody asks for that."""
    if not is_recorded(call):
        return
    author = Author(kind=GATE, name=", ".join(names), agent=call.payload.session)
    facts = Facts(event=call.hook.name, prompt=_number(call), tool=call.hook.name, what=author.name)
    try:
        _record(call, Origin(author, facts))
    except GitgatesError as error:
        call.say(str(error))


def close_refused(call: Call) -> None:
    """Close a tool call that was refused: it changes nothing."""
    if "observed" in vars(call):
        with _Calls(call.repo) as calls:
            calls.open.pop(_key(call.payload), None)


def writer(repo: Repo) -> Origin:
    """Return who changes files now, as far as is known: an open call, or somebody else."""
    calls = [open_call for open_call in read_calls(repo).values() if not _is_gone(open_call)]
    if not calls:
        return Origin()
    return max(calls, key=lambda each: (not each.runs_on, each.began_s)).origin


def read_calls(repo: Repo) -> Mapping[str, OpenCall]:
    """Return the open calls, by their keys."""
    return _Calls(repo).open


def _observe(call: Call, *, always: bool) -> Observed:
    if call.is_dry:
        return Observed(look=look(call.repo, None)) if always else _NOTHING
    payload, key, calls_before = call.payload, _key(call.payload), read_calls(call.repo)
    writes = call.kind in ("before-tool", *_AFTER) and may_write(payload)
    origin = _close(call, key)
    call_origin = Origin(_author(call), _facts(call)) if writes else None
    if not (writes or always or origin):
        return _NOTHING
    if call_origin and call.kind in _AFTER:
        origin = call_origin
    try:
        origin = _with_others(origin or writer(call.repo), read_calls(call.repo))
        return _record(call, origin)._replace(calls=calls_before)
    finally:
        if call_origin and call.kind == "before-tool":
            _open(call, key, call_origin)
        elif call_origin and not _runs_on(payload):
            with _Calls(call.repo) as calls:
                calls.open.pop(key, None)


def _with_others(origin: Origin, calls: Mapping[str, OpenCall]) -> Origin:
    """Return whose a change is, with the other sessions that may have made it."""
    sessions = {each.session for each in calls.values() if not _is_gone(each)}
    beside = tuple(sorted(sessions - {origin.author.name}))
    return origin._replace(facts=origin.facts._replace(beside=beside)) if beside else origin


def _record(call: Call, origin: Origin) -> Observed:
    limit_s = _AT_START_S if call.kind == "session-start" else _LOOK_S
    deadline_s = min(call.until_s - _ANSWER_S, time.monotonic() + limit_s)
    limits = _limits(call.config, call.kind) or DEFAULT
    recorded = look_and_record(call.repo, *origin, limits, deadline_s=deadline_s)
    return Observed(look=recorded.look, point=recorded.point)


def _limits(config: Config, kind: EventKind = "") -> Limits | None:
    """Return what is too large to be stored, as a policy says; None: none saves files."""
    limits: list[Limits | None] = [f(config) for f in functions_of(config, "file_limits", kind)]
    return next(filter(None, limits), None)


# Open calls


def _close(call: Call, key: str) -> Origin | None:
    """Close the calls that are over; return whose the changes up to now are, if one tells that.

    If a call had no event after it, and its client has none for a failed one, nobody knows whether
    it was refused, or when one in the background has ended: changes count as its own.
    """
    calls = _Calls(call.repo)
    over = {
        each: open_call
        for each, open_call in calls.open.items()
        if _is_gone(open_call) or (each != key and _is_over(open_call, call))
    }
    if over:
        with calls:
            for each in over:
                calls.open.pop(each, None)
    unsure = [
        open_call
        for open_call in over.values()
        if (open_call.runs_on or not open_call.tells_failures) and not _is_gone(open_call)
    ]
    return unsure[-1].origin if unsure else None


def _is_over(open_call: OpenCall, call: Call) -> bool:
    """Return whether an event shows that a call has ended, or was refused."""
    payload, kind = call.payload, call.kind
    if open_call.session != payload.session:
        return False
    if open_call.runs_on:
        is_listed = any(
            t.status == "running" and t.kind != "subagent" for t in payload.ending.background
        )
        return kind in ("session-start", "session-end") or (
            kind == "turn-end" and not (is_listed and open_call.runs_on == TOOL)
        )
    is_same_agent = open_call.agent_id == payload.agent.id
    if open_call.agent_id and kind == "turn-end" and call.agents_at_work:
        return False
    if kind in _ENDS:
        return is_same_agent or kind not in ("after-batch", "subagent-end")
    is_tool = kind == "before-tool" or kind in _AFTER
    return is_tool and is_same_agent and open_call.began_s < time.time() - _PARALLEL_S


def _is_gone(open_call: OpenCall) -> bool:
    """Return whether the client of a call has ended, as far as that is known."""
    if open_call.client:
        return not is_running(open_call.client)
    return open_call.began_s < time.time() - _LONGEST_S


def _open(call: Call, key: str, own: Origin) -> None:
    payload = call.payload
    open_call = OpenCall(
        began_s=time.time(),
        session=payload.session,
        agent_id=payload.agent.id,
        origin=own,
        client=who_started(),
        tells_failures=agent_host(payload.host or DEFAULT_AGENT).has("tool-failed"),
        runs_on=_runs_on(payload),
    )
    with _Calls(call.repo) as calls:
        calls.open[key] = open_call


def _runs_on(payload: Payload) -> str:
    """Return the sign that a command continues after its tool has ended; empty: there is none."""
    if payload.tool.input.get("run_in_background") is True:
        return TOOL
    plain = payload.tool.command.replace("&&", "").replace(">&", "").replace("&>", "")
    goes_on = plain.rstrip().endswith("&") or "& " in plain or "&\n" in plain
    return SHELL if payload.tool.kind == "shell" and goes_on else ""


class _Calls:
    """The file with the open calls; what is changed while it is locked is stored."""

    def __init__(self, repo: Repo) -> None:
        self._state_abs, self._fd = repo.state_abs, -1
        self._path_abs = f"{repo.state_abs}/recorder.calls"
        self._read()

    def _read(self) -> None:
        value = read_cached(self._path_abs)
        is_known = isinstance(value, tuple) and value[:1] == (OpenCall._fields,)
        plain = value[1] if is_known else {}
        self.open = {key: _open_call(fields) for key, fields in plain.items()}

    def __enter__(self) -> _Calls:
        make_folder(self._state_abs)
        # Without it, a call may be forgotten, and what it changes be somebody else's: no loss.
        self._fd = lock_file(f"{self._path_abs}.lock", wait_s=_WAIT_S)
        self._read()
        return self

    def __exit__(self, *_exc: object) -> None:
        plain = {key: _plain(open_call) for key, open_call in self.open.items()}
        if plain:
            replace_cached(self._path_abs, (OpenCall._fields, plain), sync=False)
        else:
            remove_file(self._path_abs)
        if self._fd >= 0:
            os.close(self._fd)


def _plain(open_call: OpenCall) -> tuple[object, ...]:
    author, facts = open_call.origin
    fields = open_call._asdict() | {"origin": (tuple(author), tuple(facts))}
    return tuple(({**fields, "client": tuple(open_call.client or ())}).values())


def _open_call(fields: tuple[Any, ...]) -> OpenCall:
    plain = OpenCall(*fields)
    author, facts = plain.origin
    origin = Origin(Author(*author), Facts(*facts))
    return plain._replace(origin=origin, client=Program(*plain.client) if plain.client else None)


# Who, and what


def _key(payload: Payload) -> str:
    return payload.tool.id or f"{payload.session} {payload.agent.id} {payload.tool.name}"


def _author(call: Call) -> Author:
    payload = call.payload
    return Author(SESSION, payload.session, payload.agent.type or payload.agent.id)


def _facts(call: Call) -> Facts:
    payload = call.payload
    first_path = next(iter(call.edited_paths or payload.tool.paths), "")
    return Facts(
        event=payload.event,
        prompt=_number(call),
        prompt_text=call.session.request,
        tool=payload.tool.name,
        what=first_words(payload.tool.command if payload.tool.kind == "shell" else first_path),
    )


def _number(call: Call) -> int:
    return int(call.prompt) if call.prompt.isdecimal() else 0
