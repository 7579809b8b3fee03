"""What starts the gates, for comparison at a stop: git's hooks, and ours in an agent's settings."""

from __future__ import annotations

import os
import zlib

from gitgates.core.errors import GitgatesError
from gitgates.store.files import read_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.git.repo import Repo
    from gitgates.session.call import Call

_MOST_READ = 1 << 20  # bytes of a file
_MOST_FILES = 100
_HOOKS_PATH = b"hookspath"
_OURS = b"gitgates"  # a hook without it does not start us


def hooks_path(files: Iterable[str]) -> str:
    """Return core.hooksPath as these files of git's configuration have it; empty if they do not."""
    value = ""
    for file in files:
        for line in _read(file).splitlines():
            key, equals, path = line.partition(b"=")
            if equals and key.strip().lower() == _HOOKS_PATH:
                value = os.fsdecode(path.strip(b' \t"'))
    return value


def git_hooks(repo: Repo, path: str) -> str:
    """Return the files in git's folder of hooks, each with a digest. `path`: core.hooksPath."""
    folder = f"{repo.common_dir_abs}/hooks"
    if path:
        folder = os.path.join(repo.root_abs, os.path.expanduser(path))
    try:
        with os.scandir(folder) as entries:
            files = [entry.path for entry in entries if not entry.name.endswith(".sample")]
    except OSError:
        return ""
    files = sorted(files)[:_MOST_FILES]
    return "\n".join(f"{os.path.basename(file)}\t{_state(file)}" for file in files)


def changed_hooks(before: str, now: str) -> list[str]:
    """Return the names of the hooks that differ."""
    differing = {*before.split("\n")} ^ {*now.split("\n")}
    return sorted({line.partition("\t")[0] for line in differing if line})


def agent_hooks(call: Call, files: Iterable[str], before: str) -> str:
    """Return a digest of the agent's settings, and of our hooks in them.

    Other settings change all the time, for example with each permission that a person gives: if our
    hooks are unchanged, `before` is returned.
    """
    contents = {file: _read(file) for file in files}
    raw = _digest(b"\0".join(contents.values()))
    if before.partition(" ")[0] == raw:
        return before
    hooks_here = list[str]()
    for file, content in contents.items():
        if _OURS not in content:
            continue
        from gitgates.hosts import agent_settings  # most often, nothing has changed

        try:
            settings = agent_settings(call.host.NAME).read(content.decode("utf-8"), file, "")
        except (UnicodeDecodeError, GitgatesError):
            continue  # the client cannot read it either
        hooks_here += map(repr, settings.our_hooks)
    digest = _digest("\n".join(hooks_here).encode("utf-8", "replace"))
    return before if before.partition(" ")[2] == digest and before else f"{raw} {digest}"


def _state(file: str) -> str:
    return _digest(_read(file)) + ("x" if os.access(file, os.X_OK) else "")


def _read(file: str) -> bytes:
    return read_tail(file, since=0, most=_MOST_READ) or b""


def _digest(content: bytes) -> str:
    return f"{zlib.crc32(content):08x}" if content else ""
