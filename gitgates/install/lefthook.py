"""Our command in each hook of `lefthook.yml` or `lefthook.toml`. Pure."""

from __future__ import annotations

import json

from gitgates.install import blocks
from gitgates.lifecycle import HOOK_POINTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Commands run in the order of their names, and ours is to see what the others leave.
_COMMAND = "zz-gitgates"
_JOB = "gitgates"  # jobs run in the order that they are listed in; where there are any, no commands
_ARGUMENTS = {"commit-msg": '"{1}"', "applypatch-msg": '"{1}"', "pre-push": '"{1}" "{2}"'}


def by_hand(hooks: tuple[str, ...], file: str) -> str:
    """Return our commands as the lines of hooks that have no others."""
    return blocks.yaml_lines({hook: _entry(hook, file) for hook in hooks})


def add_yaml(text: str | None, hooks: tuple[str, ...], file: str, command: str) -> str | None:
    """Return the text with our command in each hook. None: it cannot go there.

    Raises: ConfigError where it is no YAML.
    """
    after: str | None = blocks.made(command) if text is None else text
    for path, adds in _additions(blocks.load_yaml(after or "", file), hooks, file):
        if after is not None:
            after = blocks.append_yaml(after, path, adds, file=file, command=command)
    return after


def add_toml(text: str | None, hooks: tuple[str, ...], file: str, command: str) -> str | None:
    """Return the text with our commands as tables at its end. None: they cannot go there.

    Raises: ConfigError where it is no TOML.
    """
    text = blocks.made(command) if text is None else text
    document = blocks.load_toml(text, file)
    tables = ""
    for hook in hooks:
        entry = _entry(hook, file, document.get(hook))
        keys, table = entry.get("commands", {}).get(_COMMAND), f"[{hook}.commands.{_COMMAND}]"
        if "jobs" in entry:
            keys, table = entry["jobs"][0], f"[[{hook}.jobs]]"
        pairs = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        tables += f"{table}\n{pairs}"
    return blocks.append_toml(text, tables, file, command)


def _additions(
    document: object, hooks: tuple[str, ...], file: str
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield what is to be added, and where; the hooks that are not there at once, and first.

    What is added later goes above what stands below: never into another block of ours.
    """
    known = document if isinstance(document, dict) else {}
    missing = [hook for hook in hooks if hook not in known]
    if missing:
        yield (), {hook: _entry(hook, file) for hook in missing}
    for hook in hooks:
        if hook in known:
            entry = _entry(hook, file, known[hook])
            there = [key for key in entry if isinstance(known[hook], dict) and key in known[hook]]
            yield (hook, *there), {hook: entry}


def _entry(hook: str, file: str, there: object = None) -> dict[str, Any]:
    """Return our command as it goes into a hook, which may hold jobs.

    Lefthook is never to skip it: it does so where no path has changed, and compares a push with
    what is checked out, not with what is pushed. A command that is given files, and a file that is
    there, is run always.
    """
    call = f"gitgates git-hook --via=lefthook {hook} {_ARGUMENTS.get(hook, '{0}')}"
    keys: dict[str, str | bool] = {"files": f"echo {file}", "run": f"true {{files}} && {call}"}
    if HOOK_POINTS[hook].reads_stdin:
        keys["use_stdin"] = True
    if isinstance(there, dict) and "jobs" in there:
        return {"jobs": [{"name": _JOB, **keys}]}
    return {"commands": {_COMMAND: keys}}
