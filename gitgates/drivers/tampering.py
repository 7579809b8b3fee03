"""Report changes of gates, settings and agents to the person at a stop. Blocks nothing.

When a session begins, what decides about checks is read without git, and kept as digests in its
journal (`watched`). Each stop compares, and reports each change once.
"""

from __future__ import annotations

import os
import zlib

from gitgates.core.guarded import has_rules
from gitgates.core.lifecycle import HOOK_OF
from gitgates.core.policy import POLICIES, Need
from gitgates.core.types import WARN, Config, Verdict
from gitgates.drivers.call import Call
from gitgates.drivers.needs import gates_on, is_guardable, offers
from gitgates.drivers.rules import APPROVE, are_in_force
from gitgates.git.repo import nul_split
from gitgates.journal.entries import EventEntry, WatchedEntry
from gitgates.journal.journal import is_a, of_kind
from gitgates.store.files import read_cached, read_tail, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from gitgates.git.repo import Repo

_BEGAN, _TOLD, OFF = "began", "told", "off"
_EXCLUDE, _GIT_SETTINGS, _GIT_HOOKS = "exclude", "git-settings", "git-hooks"
_FLAGGED, _AGENT_HOOKS = "flagged", "agent-hooks"
_TABLE = "table "
_DEFINITIONS = ("gate ", "hook ", _TABLE)
_MOST_READ = 1 << 20  # bytes of a file
_OURS = b"gitgates"  # a hook without it does not start us
_MOST_NAMED, _MOST_FILES = 5, 100
_SINCE = "since this session began"
# What is watched beside the configuration → what the person is told of a change.
_CHANGES = {
    _EXCLUDE: f".git/info/exclude has changed {_SINCE}: gates do not see files listed there",
    _GIT_SETTINGS: (
        f"git's settings of hooks, core.worktree or core.bare have changed {_SINCE}; to list them: "
        r"git config --get-regexp '^hook|^core\.(hookspath|worktree|bare)'"
    ),
    _FLAGGED: (
        f"files with skip-worktree or assume-unchanged have changed {_SINCE}; to list them: "
        "git ls-files -v"
    ),
    _GIT_HOOKS: f"git's hooks have changed {_SINCE}; to check them: gitgates doctor",
    _AGENT_HOOKS: (
        "the hooks of gitgates in the agent's settings have changed, or are switched off, "
        f"{_SINCE}; to check them: gitgates doctor"
    ),
}


def needs(config: Config) -> tuple[Need, ...]:
    """Return the needed events: a turn's end, if the guard is on."""
    return (Need(kind="turn-end"),) if has_rules(config) and is_guardable(config) else ()


def begin(call: Call) -> None:
    """Record the digests at a session's start."""
    first = next((str(fact["event"]) for fact in of_kind(call.entries, EventEntry)), "")
    call.record(WatchedEntry({_BEGAN: first, **_digests(call, {})}))


def digests_in(fact: Mapping[str, Any]) -> dict[str, Any]:
    """Return the digests in a journal entry; empty if it has none."""
    digests = fact.get("found") if is_a(fact, WatchedEntry) else None
    return digests if isinstance(digests, dict) else {}


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Report each change to the person, once."""
    if not call.session.watched:
        return so_far
    before = call.session.watched
    now = {_BEGAN: _TOLD, **_digests(call, before)}
    names = (*before, *(name for name in now if name.startswith(_TABLE)))
    changed = [
        name
        for name in dict.fromkeys(names)
        if name != _BEGAN and now.get(name, "") != before.get(name, "")
    ]
    lines = _beginning(call, before)
    if changed:
        lines += _lines(call.config, changed, now)
    lines += _not_in_force(call, changed)
    if not lines:
        return so_far
    text = "\n".join(f"gitgates: {line}" for line in lines)
    warning = Verdict(WARN, to_person=text, entries=(WatchedEntry(now),))
    return so_far.joined(warning)


def _digests(call: Call, before: Mapping[str, str]) -> dict[str, str]:
    """Return the present digest of each watched item; empty if it does not exist."""
    config, repo = call.written_config or call.config, call.repo
    common_abs = repo.common_dir_abs
    digests = {f"gate `{gate.name}`": _digest(repr(gate).encode()) for gate in config.gates}
    digests |= {f"hook {hook.name}": _digest(repr(hook).encode()) for hook in config.hooks}
    for name in gates_on(config):  # of policies, whose settings have its name
        digests[f"gate `{name}`"] = _digest(repr(config.tables[name]).encode())
    for row in POLICIES:
        if row.table in config.tuned and not row.gate:  # beside those of gates that are policies
            table = config.tables[row.table]
            digests[f"{_TABLE}{row.table}"] = _digest(repr(table).encode())
    for files_of in offers(call.config, "watched_files"):
        digests |= {name: digest_of_file(path) for name, path in files_of(call).items()}
    digests[_EXCLUDE] = _digest(_read(f"{common_abs}/info/exclude"))
    files = (f"{common_abs}/config", f"{repo.git_dir_abs}/config.worktree")
    digests[_GIT_SETTINGS] = _digest(b"".join(map(_git_settings, files)))
    digests[_GIT_HOOKS] = _git_hooks(repo, files)
    digests[_FLAGGED] = _digest("\0".join(_flagged_paths(repo)).encode("utf-8", "replace"))
    settings = call.host.settings_files(repo.root_abs, call.env).values()
    digests[_AGENT_HOOKS] = _agent_hooks(call, settings, before.get(_AGENT_HOOKS, ""))
    digests[OFF] = ", ".join(path for path in settings if _switches_off(_read(path)))
    return digests


def _beginning(call: Call, before: Mapping[str, str]) -> list[str]:
    first = before.get(_BEGAN, "")
    is_heard = first in (HOOK_OF["session-start"], _TOLD) or call.elsewhere
    if is_heard or not call.host.has("session-start"):
        return []
    home = os.path.realpath(call.payload.project_abs or call.repo.root_abs)
    if not f"{home}/".startswith(f"{os.path.realpath(call.repo.root_abs)}/"):
        return []  # the session began in a folder of repositories, or in another worktree
    text = f"the first recorded event of this session is {first}: earlier events were deleted, "
    return [f"{text}or the hooks were not installed yet; what it did until then may not count"]


def _lines(config: Config, changed: list[str], now: Mapping[str, str]) -> list[str]:
    from gitgates.core.clean import first_few, plain_line  # most often, nothing has changed

    lines = []
    defined = [name for name in changed if name.startswith(_DEFINITIONS)]
    for what, is_there in (("changed in", True), ("gone from", False)):
        if names := [name for name in defined if (name in now) is is_there]:
            excerpt = first_few([*map(plain_line, names)], _MOST_NAMED)
            lines.append(f"{what} the configuration {_SINCE}: {excerpt}")
    lines += [text for name, text in _CHANGES.items() if name in changed]
    if OFF in changed and now[OFF] and (required := required_gates(config)):
        paths = plain_line(now[OFF])
        lines.append(f"{paths} has set GITGATES=0 {_SINCE}: {required} will not run")
    return lines


def _not_in_force(call: Call, changed: list[str]) -> list[str]:
    """Return which changes do not apply to the session, and how a person applies them."""
    lines = []
    config = call.written_config or Config()
    if any(name.startswith(_DEFINITIONS) for name in changed) and not are_in_force(call, config):
        rules = "this session keeps the policy settings that it started with"
        lines.append(f"{rules}; to apply the change, run in a terminal: {APPROVE}")
    for unapproved in offers(call.config, "unapproved"):
        lines += unapproved(call, changed)
    return lines


def required_gates(config: Config) -> str:
    """Return the gates that nobody may skip, as part of a sentence; empty if there are none."""
    names = [f"`{gate.name}`" for gate in config.gates if gate.actions.required]
    names += [f"`{name}`" for name in gates_on(config) if config.tables[name]["required"]]
    noun = "gates" if len(names) > 1 else "gate"
    return f"the required {noun} {', '.join(names)}" if names else ""


def _flagged_paths(repo: Repo) -> list[str]:
    """Return the assume-unchanged and skip-worktree paths; git is asked once for each index."""
    from gitgates.files.facts import identity

    cache_abs, now = f"{repo.state_abs}/flagged", identity(f"{repo.git_dir_abs}/index")
    cached = read_cached(cache_abs)
    if isinstance(cached, tuple) and cached[:1] == (now,):
        return list(cached[1])
    # Source: git-ls-files(1), -v: assume-unchanged is lower case, skip-worktree is S.
    entries = nul_split(repo.git.ask("ls-files", "-v", "-z").stdout)
    flagged = [entry[2:] for entry in entries if entry[0].islower() or entry[0] == "S"]
    try:
        replace_cached(cache_abs, (now, flagged), sync=False)
    except OSError:
        return flagged  # git is asked again
    return flagged


def _switches_off(settings: bytes) -> bool:
    value = settings.partition(b'"GITGATES"')[2].lstrip().removeprefix(b":")
    return value.lstrip(b' \t\r\n"')[:1] == b"0"


def _git_settings(file: str) -> bytes:
    """Return a git configuration's lines about hooks, and about where the working tree is."""
    content = _read(file).lower()
    hooks = [part for part in content.split(b"\n[") if part.lstrip(b"[ \t").startswith(b"hook")]
    lines = [b"".join(line.split()) for line in content.splitlines()]
    core = [line for line in lines if line.startswith((b"worktree=", b"bare", b"hookspath="))]
    return b"\n".join([*hooks, *(line for line in core if line != b"bare=false")])


def _git_hooks(repo: Repo, files: Iterable[str]) -> str:
    """Return a digest of git's folder of hooks. `files`: of its configuration."""
    folder = f"{repo.common_dir_abs}/hooks"
    for line in (line for file in files for line in _read(file).splitlines()):
        key, _equals, path = line.partition(b"=")
        if key.strip().lower() == b"hookspath":
            path_abs = os.path.expanduser(os.fsdecode(path.strip(b' \t"')))
            folder = os.path.join(repo.root_abs, path_abs)
    try:
        names = sorted(name for name in os.listdir(folder) if not name.endswith(".sample"))
    except OSError:
        return ""
    hooks = [f"{folder}/{name}" for name in names[:_MOST_FILES]]
    states = [(name, os.access(name, os.X_OK), digest_of_file(name)) for name in hooks]
    return _digest(repr(states).encode("utf-8", "replace"))


def _agent_hooks(call: Call, settings: Iterable[str], before: str) -> str:
    """Return a digest of the agent's settings, and of our hooks in them, unless switched off.

    Other settings change all the time, for example with each permission that a person gives: if our
    hooks are unchanged, `before` is returned.
    """
    host, root_abs = call.host, call.repo.root_abs
    files = [*dict.fromkeys((*settings, *host.switch_files(root_abs, call.env)))]
    contents = [*map(_read, files)]
    raw = _digest(b"\0".join(contents))
    if before and before.partition(" ")[0] == raw:
        return before
    from gitgates.drivers.installed import is_switched_off, own_settings

    # Most files do not call us, and the parser of settings is eight modules.
    is_read = any(_OURS in content for content in contents)
    hooks = [f.our_hooks for f in own_settings(host.NAME, call.env, root_abs)] if is_read else []
    off = [path for path in files if is_switched_off(host.NAME, path)]
    digest = _digest(repr((hooks, off)).encode("utf-8", "replace"))
    return before if before.partition(" ")[2] == digest else f"{raw} {digest}"


def digest_of_file(path: str) -> str:
    """Return the digest of a file as it is watched; empty if it does not exist."""
    return _digest(_read(path))


def _read(path: str) -> bytes:
    return read_tail(path, since=0, most=_MOST_READ) or b""


def _digest(content: bytes) -> str:
    return f"{zlib.crc32(content):08x}" if content else ""
