"""The policy that writes the trace: a record of each tool call that changed files.

Before a tool writes a file, the hashes of its lines are kept. After it, and after the gates of that
event, they are compared with what is there then. What a shell command has changed tell snapshots,
without what came from others' commits, what a record says that another call has written, and what
was last changed before the command began. Files outside of the repository are not traced.
"""

from __future__ import annotations

import marshal
import os
import time

from gitgates.errors import StateError
from gitgates.lifecycle import HOOK_OF
from gitgates.policy import Need
from gitgates.types import BLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent_types import Point
    from gitgates.git.repo import Repo
    from gitgates.policies.call import Call
    from gitgates.store.log import Fact
    from gitgates.trace.content import FileContent
    from gitgates.types import Config, Verdict

always = True
_FACT = "trace"
_SNAPSHOT_S = 15.0
_MOST_FILES = 100  # of one record; a command that changes more is no writing of code
_KEPT_S = 24 * 3600.0  # what was kept before a call that was never made
_TICK_S = 0.05  # by which times of files may be late
_CHANGES = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "-M", "-l400")
_LINK, _SUBMODULE = "120000", "160000"


def is_on(config: Config) -> bool:
    """Return whether what agents write is traced."""
    mode = config.trace.mode
    return mode == "on" or (mode == "auto" and config.intents is not None)


def needs(config: Config) -> tuple[Need, ...]:
    """Return the events of tools that write, and of shells, failed ones too."""
    if not is_on(config):
        return ()
    return (
        Need(kind="before-tool", tools=(), tool_kinds=("writes",)),
        Need(kind="after-tool", tools=(), tool_kinds=("writes", "shell"), more_s=_SNAPSHOT_S),
        Need(kind="tool-failed", tools=(), tool_kinds=("shell",), more_s=_SNAPSHOT_S),
    )


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Keep what a file is like before a tool writes it; record what has become of it.

    Raises: StateError where that cannot be read or written; GitError where git cannot be asked.
    """
    kind = call.payload.tool_kind
    try:
        if call.kind == "before-tool":
            if kind == "writes" and so_far.level < BLOCK:
                _keep(call)
        elif (kind == "shell" or _has_written(call)) and not any(
            one.get("what") == _FACT and one.get("key") == call.key for one in call.entries
        ):
            files, place = _command_changes(call) if kind == "shell" else (_written(call), {})
            if files:
                _append(call, files, place.get("head") or call.repo.git.resolve("HEAD"))
            if files or place:
                entry: Fact = {"what": _FACT, "key": call.key, **place}
                return so_far._replace(entries=(*so_far.entries, entry))
    except OSError as error:
        where = error.filename or call.repo.shared_state_abs
        text = f"{where}: {error.strerror}: what this tool call has changed is not traced"
        raise StateError(text, "See to the rights of that file, and to the space.") from error
    return so_far


def _has_written(call: Call) -> bool:
    payload = call.payload
    return call.kind == "after-tool" and payload.tool_kind == "writes" and not payload.failed


def _append(call: Call, files: list[Fact], head: str) -> None:
    from gitgates.trace.ledger import append  # most calls of a shell change nothing

    payload = call.payload
    record: Fact = {
        "session": payload.session,
        "agent": payload.agent_id,
        "agent_type": payload.agent_type,
        "intent": _intent(call),
        "tool": payload.tool,
        "tool_use": payload.tool_use_id,
        "commit": head,
        "files": files[:_MOST_FILES],
    }
    more = {"more": len(files) - _MOST_FILES} if len(files) > _MOST_FILES else {}
    append(call.repo.common_dir_abs, {**record, **more})


def _intent(_call: Call) -> str:
    """Return the intent that the agent has selected; empty: none."""
    return ""


# Tools that name the file that they write.


def _keep(call: Call) -> None:
    """Keep the hashes of the files that a tool is about to write."""
    from gitgates.store.files import remove_file, replace_file  # cold: only before tools that write
    from gitgates.trace.content import read

    path_abs = _kept_abs(call)
    folder_abs = os.path.dirname(path_abs)
    os.makedirs(os.path.dirname(folder_abs), mode=0o700, exist_ok=True)
    os.makedirs(folder_abs, mode=0o700, exist_ok=True)
    for entry in os.scandir(folder_abs):
        if entry.stat(follow_symlinks=False).st_mtime < time.time() - _KEPT_S:
            remove_file(entry.path)
    found = {path: read(f"{call.repo.root_abs}/{path}") for path in call.edited_paths or ()}
    plain = {path: tuple(one._replace(lines=())) for path, one in found.items()}
    replace_file(path_abs, marshal.dumps(plain), sync=False)


def _kept_abs(call: Call) -> str:
    from gitgates.store.log import file_name  # loaded already, by whoever reads journals

    return f"{call.repo.state_abs}/trace/before/{file_name(call.payload.tool_use_id)}"


def _written(call: Call) -> list[Fact]:
    """Return how the files have changed that a tool names."""
    from gitgates.store.files import read_state, remove_file  # cold: only after tools that write
    from gitgates.trace.content import FileContent, file_change, read

    path_abs = _kept_abs(call)
    try:
        kept = marshal.loads(read_state(path_abs) or b"")  # noqa: S302 - our own file, mode 0600
    except (ValueError, EOFError, TypeError):
        kept = {}
    remove_file(path_abs)
    found = []
    for path in call.edited_paths or ():
        before = FileContent(*kept[path]) if path in kept else None
        change = file_change(path, before, read(f"{call.repo.root_abs}/{path}"))
        found += [change] if change and not path.startswith(".git/") else []
    return found


# Shell commands.


def _command_changes(call: Call) -> tuple[list[Fact], Fact]:
    """Return how the files have changed that a shell command wrote, and where that leaves us."""
    shows = any(one.get("shows") for one in call.entries if one.get("key") == call.key)
    point = None if shows else _last_point(call.entries)
    if not point:
        return [], {}
    if call.hook.gates:
        call.forget_snapshot()  # they may have written
    now = call.point
    if not now.tree or now.tree == point.tree:
        return [], {}
    from gitgates.git.authorship import Span, trees  # most commands change nothing
    from gitgates.trace.content import file_change, read

    before, after = trees(Span(repo=call.repo, start=point, now=now))
    recorded, began = _recorded_since(call, point), _began(call)
    found = []
    for was, path, old in _differences(call.repo, before, after):
        path_abs = f"{call.repo.root_abs}/{path}"
        if began and _changed_at(path_abs) < began - _TICK_S:
            continue
        change = file_change(path, old, read(path_abs), was)
        if change and (path, change["after"]) not in recorded:
            found.append(change)
    return found, {"tree": now.tree, "head": now.head}


def _last_point(entries: list[Fact]) -> Point | None:
    """Return the state of the worktree that the session's journal knows of last."""
    from gitgates.agent_types import Point  # cold: not for tools that name their files

    for one in reversed(entries):
        if one.get("what") in (_FACT, "snapshot") and one.get("tree"):
            return Point(tree=one["tree"], head=one.get("head", ""), stamp=one.get("t", 0.0))
    return None


def _differences(repo: Repo, before: str, after: str) -> list[tuple[str, str, FileContent]]:
    """Return each file that differs: its path then, if another, its path now, its content then.

    Raises: GitError where a tree is not there.
    """
    from gitgates.git.object_store import read_blobs, reading_git  # where something has changed
    from gitgates.trace.content import GONE, HUGE, LARGEST, of_bytes, of_link

    git = reading_git(repo)
    fields = iter(git.out(*_CHANGES, before, after, "--").split(b"\0"))
    changed: list[tuple[str, str, str, str]] = []
    for meta in filter(None, fields):
        mode, new_mode, blob, _new, status = meta[1:].decode().split(" ")
        old = os.fsdecode(next(fields))
        path = os.fsdecode(next(fields)) if status.startswith("R") else old
        if _SUBMODULE not in (mode, new_mode):
            changed.append((mode, blob, old if path != old else "", path))
    ids = [blob for _mode, blob, _was, _path in changed if blob.strip("0")]
    blobs = read_blobs(git, ids, LARGEST)

    def content(mode: str, blob: str) -> FileContent:
        if not blob.strip("0"):
            return GONE
        make = of_link if mode == _LINK else of_bytes
        return make(blobs[blob]) if blob in blobs else HUGE

    return [(was, path, content(mode, blob)) for mode, blob, was, path in changed]


def _recorded_since(call: Call, point: Point) -> set[tuple[str, str]]:
    """Return what records say since a point, whoever wrote them: path, and hash of the file."""
    from gitgates.store.log import utc
    from gitgates.trace.ledger import newest

    since = utc(point.stamp, milliseconds=True)
    recent = [one for one in newest(call.repo.common_dir_abs) if one["time"] >= since]
    return {(file["path"], file["after"]) for one in recent for file in one["files"]}


def _began(call: Call) -> float:
    """Return when a shell command was about to begin; 0.0 if that was not heard of."""
    key = f"{HOOK_OF['before-tool']}:{call.payload.tool_use_id}"
    return next((one["t"] for one in call.entries if one.get("key") == key), 0.0)


def _changed_at(path_abs: str) -> float:
    """Return when a file was last changed; of one that is gone, when its folder was."""
    while not os.path.lexists(path_abs):
        path_abs = os.path.dirname(path_abs)
    return os.lstat(path_abs).st_ctime
