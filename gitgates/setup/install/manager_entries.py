"""Our command in the files of lefthook, husky and simple-git-hooks. Pure."""

from __future__ import annotations

import json
import re

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.limits import parse_json
from gitgates.edit import blocks, json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from gitgates.edit.json_text import Node

# Commands run in the order of their names, and ours is to see what the others leave.
_LEFTHOOK_COMMAND = "zz-gitgates"
_LEFTHOOK_JOB = (
    "gitgates"  # jobs run in the order that they are listed in; where there are any, no commands
)
_LEFTHOOK_ARGUMENTS = {"commit-msg": '"{1}"', "applypatch-msg": '"{1}"', "pre-push": '"{1}" "{2}"'}

HUSKY = "husky"
SIMPLE = "simple-git-hooks"  # also its key in package.json
# What husky 9 installs a stub for.
HUSKYS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit"),
    *("prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout"),
    *("post-merge", "pre-push", "post-rewrite", "pre-auto-gc"),
)
# What follows an unconditional end of a script is never run, and a heredoc may swallow it.
_ENDS = re.compile(r"^(exit|exec)\b|<<", re.MULTILINE)
_COMMENTS = re.compile(r"(?:#[^\n]*\n)*")
# Behind these, or on another line than they, `&& ours` would not do what it says.
_NOT_PLAIN = re.compile(r"[\n#\\]|<<|[&|;]\s*$|^\s*$|\b(exec|exit|return)\b")
# The script's last command no longer decides its status, and where that is `a && b`, -e ignores it.
_FAILED = "[ $? -eq 0 ] || exit 1\n"
# What git says on standard input can be read once only, so that the script is given it again.
_TWICE = """\
gitgates_refs=$(cat)
if [ "$gitgates_refs" ]; then
{call} <<REFS || exit
$gitgates_refs
REFS
exec <<REFS
$gitgates_refs
REFS
fi
"""


# lefthook


def lefthook_by_hand(hooks: tuple[str, ...], file: str) -> str:
    """Return the commands as the lines of hooks that have no others."""
    entries = {hook: _lefthook_entry(hook, file) for hook in hooks}
    if not file.endswith(".toml"):
        return blocks.yaml_lines(entries)
    lines = []
    for hook, entry in entries.items():
        lines.append(f"[{hook}.commands.{_LEFTHOOK_COMMAND}]\n")
        keys = entry["commands"][_LEFTHOOK_COMMAND]
        lines += [f"{key} = {json.dumps(value)}\n" for key, value in keys.items()]
    return "".join(lines)


def add_lefthook_yaml(
    text: str | None, hooks: tuple[str, ...], file: str, command: str
) -> str | None:
    """Return the text with the command in each hook. None: not possible.

    Raises: ConfigError where it is not valid YAML.
    """
    for path, adds in _lefthook_additions(blocks.load_yaml(text or "", file), hooks, file):
        text = blocks.append_yaml(text, path, adds, file=file, command=command)
        if text is None:
            return None
    return text


def _lefthook_additions(
    document: object, hooks: tuple[str, ...], file: str
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield what is to be added, and where; the missing hooks come first, all at once.

    What is added later goes above what stands below: never into another block of ours.
    """
    existing = document if isinstance(document, dict) else {}
    missing = [hook for hook in hooks if hook not in existing]
    if missing:
        yield (), {hook: _lefthook_entry(hook, file) for hook in missing}
    for hook in hooks:
        if hook in existing:
            entry = _lefthook_entry(hook, file, existing[hook])
            shared = [
                key for key in entry if isinstance(existing[hook], dict) and key in existing[hook]
            ]
            yield (hook, *shared), {hook: entry}


def _lefthook_entry(hook: str, file: str, existing: object = None) -> dict[str, Any]:
    """Return our command as it goes into a hook, which may hold jobs.

    Lefthook is never to skip it: it does so where no path has changed, and compares a push with
    what is checked out, not with what is pushed. It always runs a command whose `files` lists a
    file that exists.
    """
    call = f"gitgates git-hook --via=lefthook {hook} {_LEFTHOOK_ARGUMENTS.get(hook, '{0}')}"
    keys: dict[str, str | bool] = {"files": f"echo {file}", "run": f"true {{files}} && {call}"}
    if HOOK_POINTS[hook].reads_stdin:
        keys["use_stdin"] = True
    if isinstance(existing, dict) and "jobs" in existing:
        return {"jobs": [{"name": _LEFTHOOK_JOB, **keys}]}
    return {"commands": {_LEFTHOOK_COMMAND: keys}}


# husky and simple-git-hooks


def add_script(text: str | None, hooks: tuple[str, ...], file: str, command: str) -> str | None:
    """Return husky's script with the call at its end, when the committed content is final.

    Where git says something on standard input: at its beginning. None: it cannot go there.
    """
    del file
    (hook,) = hooks
    if text is None:
        return blocks.block(command, f"{call(HUSKY, hook)}\n")
    if "\r" in text:
        return None
    lines = _lines(HUSKY, hook)
    if HOOK_POINTS[hook].reads_stdin:
        comments = _COMMENTS.match(text)
        return blocks.insert(text, comments.end() if comments else 0, blocks.block(command, lines))
    if _ENDS.search(text) or text.rstrip("\n").endswith("\\"):
        return None
    return blocks.insert(text, len(text), blocks.block(command, _FAILED + lines))


def script_by_hand(hooks: tuple[str, ...], _file: str) -> str:
    """Return the lines of the call for husky's script."""
    return _lines(HUSKY, hooks[0])


def add_json(text: str | None, hooks: tuple[str, ...], file: str, command: str) -> str | None:
    """Return the text with the call in the command of each hook. None: not possible.

    Raises: ConfigError where it is not valid JSON.
    """
    del command
    text = text or ""
    for hook in hooks:
        root = json_text.parse(text, file)
        holder = _holder(root, file)
        if holder is None or not isinstance(holder.value, dict):
            return None
        node = holder.get(hook)
        if node is None:
            keys = (hook,) if holder is root else (SIMPLE, hook)
            text = json_text.insert(text, keys, call(SIMPLE, hook), file)
        elif not isinstance(node.value, str) or _NOT_PLAIN.search(node.value):
            return None
        elif HOOK_POINTS[hook].reads_stdin:
            text = text[: node.start + 1] + _before(hook) + text[node.start + 1 :]
        else:
            text = text[: node.end - 1] + _behind(hook) + text[node.end - 1 :]
    return text


def json_by_hand(hooks: tuple[str, ...], _file: str) -> str:
    """Return the calls as lines of the object that simple-git-hooks reads."""
    return "".join(f"  {json.dumps(hook)}: {json.dumps(call(SIMPLE, hook))}\n" for hook in hooks)


def without_json(text: str, file: str) -> str:
    """Return the text without the calls.

    Raises: ConfigError where it is not valid JSON.
    """
    for hook in HOOK_POINTS:
        holder = _holder(json_text.parse(text, file), file)
        node = holder.get(hook) if holder else None
        if holder is None or node is None or not isinstance(node.value, str):
            continue
        if node.value == call(SIMPLE, hook):
            text = json_text.remove(text, holder, holder.parts.index(node))
            continue
        command = text[node.start : node.end]
        for addition in (_before(hook), _behind(hook)):
            command = command.replace(addition, "", 1)
        text = text[: node.start] + command + text[node.end :]
    return text


def is_in_package(text: str) -> bool:
    """Return whether a package.json configures simple-git-hooks."""
    try:
        return SIMPLE in parse_json(text)
    except (ValueError, TypeError):
        return False


def call(manager: str, hook: str) -> str:
    """Return the command that runs the gates of a hook."""
    return f'gitgates git-hook --via={manager} {hook} "$@"'


def _lines(manager: str, hook: str) -> str:
    """Return it for a script whose other commands may need the same standard input."""
    if HOOK_POINTS[hook].reads_stdin:
        return _TWICE.format(call=call(manager, hook))
    return f"{call(manager, hook)}\n"


def _holder(root: Node, file: str) -> Node | None:
    return root.get(SIMPLE) if file == "package.json" else root


def _before(hook: str) -> str:
    return json.dumps(_lines(SIMPLE, hook))[1:-1]


def _behind(hook: str) -> str:
    return json.dumps(f" && {call(SIMPLE, hook)}")[1:-1]
