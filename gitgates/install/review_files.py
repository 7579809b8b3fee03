"""The reviewer, and the command that starts it, as files of Claude Code's: written and taken out.

Their texts are the plugin's. The command is no skill, which would be named `review` and hide the
client's own; in its folder, it has the plugin's name. A file is ours by a line in its head with the
digest of all the rest: whoever changes the file makes it theirs.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress

import gitgates
from gitgates.errors import StateError
from gitgates.install import own_file
from gitgates.policies.needs import is_review_on
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import Config, Review

AGENTS = "agents"
COMMAND = os.path.join("commands", "gitgates", "review.md")
_PLUGIN_ABS = os.path.join(os.path.dirname(os.path.abspath(gitgates.__file__)), "plugin", "claude")
_MARK = "# written by `gitgates install-hooks --agent claude`, which keeps it up to date; digest: "
_MARKED = re.compile(rf"^{re.escape(_MARK)}([0-9a-f]+)\r?\n", re.MULTILINE)
_HEAD = re.compile(r"\A\ufeff?---\r?\n(.*?)^---\s*$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"^name:[ \t]*([\"']?)(.+?)\1[ \t]*(?:[ \t]#.*)?\r?$", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_MOST_READ = 1 << 16  # bytes of an agent's file that its name is looked for in
_PLUGINS_OWN = "gitgates:reviewer"
# A file of that name would take the place of the client's own agent.
_CLIENTS_OWN = ("general-purpose", "explore", "plan", "statusline-setup", "claude")

MISSING, CURRENT, OLD, EDITED, FOREIGN = "missing", "current", "old", "edited", "foreign"
WRITTEN = (MISSING, OLD)
DANGLING = "dangling"  # somebody's link, to what is not there


class File(Record):
    """One file as it should be."""

    path: str  # relative to the folder of the settings
    text: str  # with its mark


class Found(Record):
    """One file as it is."""

    path: str
    text: str | None  # None: there is none
    state: str  # MISSING, CURRENT, OLD, EDITED, FOREIGN, DANGLING


def wanted(config: Config) -> tuple[File, ...]:
    """Return what a configuration wants to be there."""
    if not is_review_on(config):
        return ()
    reviewer = config.review.reviewer
    command = _read("skills/review/SKILL.md").replace(f"`{_PLUGINS_OWN}`", f"`{reviewer}`")
    files = [File(COMMAND, _mark(command))]
    if may_define(reviewer):
        files.insert(0, File(os.path.join(AGENTS, f"{reviewer}.md"), _mark(_agent(config.review))))
    return tuple(files)


def may_define(reviewer: str) -> bool:
    """Tell whether a file of ours can be that agent: not where it is a plugin's, or a pattern."""
    return bool(_PLAIN.fullmatch(reviewer)) and reviewer.lower() not in _CLIENTS_OWN


def look(folder_abs: str, files: tuple[File, ...]) -> tuple[Found, ...]:
    """Return what is there of some files, and of others of ours that are in the same places.

    Raises: ConfigError where one of them cannot be read.
    """
    texts = {file.path: file.text for file in files}
    others = [path for path in _ours(folder_abs) if path not in texts]
    found = []
    for path in (*texts, *others):
        path_abs = os.path.join(folder_abs, path)
        text = own_file.read(path_abs)
        found.append(Found(path, text, _state(path_abs, text, texts.get(path))))
    return tuple(found)


def put(folder_abs: str, file: File, found: Found) -> None:
    """Write a file that is missing, or was ours.

    Raises: StateError where it cannot be written, or holds something else by now.
    """
    _replace(os.path.join(folder_abs, file.path), found.text, file.text)


def take(folder_abs: str, found: Found) -> None:
    """Remove a file of ours, and the folders that are empty then.

    Raises: StateError where it cannot be removed, or holds something else by now.
    """
    _replace(os.path.join(folder_abs, found.path), found.text, None)
    folder = os.path.dirname(found.path)
    while folder:
        _remove_empty(os.path.join(folder_abs, folder))
        folder = os.path.dirname(folder)
    if os.path.basename(folder_abs) == ".claude":
        _remove_empty(folder_abs)


def _replace(path_abs: str, before: str | None, after: str | None) -> None:
    try:
        own_file.replace(path_abs, before, after)
    except StateError as error:
        raise StateError(
            error.message,
            "This file is as it was; what was said on standard output before is done. Mend its "
            "folder, and do the same again.",
        ) from error


def agents_in(folder_abs: str) -> dict[str, str]:
    """Return the agents that are defined below a folder of settings: name → the file, relative."""
    found: dict[str, str] = {}
    for where_abs, folders, names in os.walk(os.path.join(folder_abs, AGENTS)):
        folders.sort()
        for name in sorted(names):
            path_abs = os.path.join(where_abs, name)
            if name.endswith(".md") and (agent := _agent_name(path_abs)):
                found.setdefault(agent, os.path.relpath(path_abs, folder_abs))
    return found


def _agent_name(path_abs: str) -> str:
    if not os.path.isfile(path_abs):
        return ""
    with suppress(OSError), open(path_abs, "rb") as file:
        text = file.read(_MOST_READ).decode("utf-8", "replace")
        head = _HEAD.search(text)
        named = _NAME.search(head[1]) if head else None
        return named[2].strip() if named else ""
    return ""


def _ours(folder_abs: str) -> list[str]:
    """Return where our files are that we, or another configuration, may have written."""
    try:
        names = sorted(os.listdir(os.path.join(folder_abs, AGENTS)))
    except OSError:
        names = []
    paths = [os.path.join(AGENTS, name) for name in names if name.endswith(".md")]
    return [
        path
        for path in (*paths, COMMAND)
        if os.path.isfile(os.path.join(folder_abs, path))
        and own_file.holds(os.path.join(folder_abs, path), _MARK)
    ]


def _state(path_abs: str, text: str | None, wanted_text: str | None) -> str:
    is_link = os.path.islink(path_abs)
    if text is None:
        return DANGLING if is_link else MISSING
    marked = _MARKED.search(text)
    if marked is None or is_link:
        return FOREIGN
    if _digest(_MARKED.sub("", text, count=1)) != marked[1]:
        return EDITED
    is_same = wanted_text is not None and _plain(text) == wanted_text
    return CURRENT if is_same else OLD


def _agent(review: Review) -> str:
    model = review.reviewer_model
    shown = model if _PLAIN.fullmatch(model) else json.dumps(model)
    text = _read("agents/reviewer.md").replace("\nname: reviewer\n", f"\nname: {review.reviewer}\n")
    return text.replace("\nmodel: opus\n", f"\nmodel: {shown}\n")


def _mark(text: str) -> str:
    first, rest = text.split("\n", 1)
    return f"{first}\n{_MARK}{_digest(text)}\n{rest}"


def _digest(text: str) -> str:
    return hashlib.sha256(_plain(text).encode("utf-8", "replace")).hexdigest()[:16]


def _plain(text: str) -> str:
    # A checkout may write other line ends than we did.
    return text.replace("\r\n", "\n")


def _read(name: str) -> str:
    with open(os.path.join(_PLUGIN_ABS, *name.split("/")), encoding="utf-8", newline="") as file:
        return _plain(file.read())


def _remove_empty(folder_abs: str) -> None:
    if not os.path.islink(folder_abs):
        with suppress(OSError):  # something else is in it
            os.rmdir(folder_abs)
