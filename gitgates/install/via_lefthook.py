"""Our command in each hook of `lefthook.yml` or `lefthook.toml`. Pure."""

from __future__ import annotations

import json

import yaml

from gitgates import yaml_load
from gitgates.install import marked, yaml_text
from gitgates.lifecycle import HOOK_POINTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Commands run in the order of their names, and ours is to see what the others leave.
_COMMAND = "zz-gitgates"
_JOB = "gitgates"  # jobs run in the order that they are listed in; where there are any, no commands
_ARGUMENTS = {"commit-msg": '"{1}"', "applypatch-msg": '"{1}"', "pre-push": '"{1}" "{2}"'}


def lines(hook: str, file: str) -> str:
    """Return our command as the lines of a hook that has no others."""
    return f"{hook}:\n  commands:\n    {_COMMAND}:\n{_yaml(_keys(hook, file), 6)}"


def put(text: str, hooks: tuple[str, ...], file: str, command: str) -> str | None:
    """Return the text with our command in each hook. None: it cannot go there.

    Raises: ConfigError where it is no YAML.
    """
    before = yaml_text.load(text, file)
    # What is added later goes above what stands below: never into another block of ours.
    missing = tuple(h for h in hooks if not isinstance(before, dict) or h not in before)
    steps = [missing] if missing else []
    for step in [*steps, *((hook,) for hook in hooks if hook not in missing)]:
        after = _put_some(text, step, file, command)
        if after is None:
            return None
        text = after
    return text


def toml_lines(text: str, hooks: tuple[str, ...], file: str) -> str:
    """Return our commands as tables for the end of a TOML text.

    Raises: ValueError where it is no TOML.
    """
    import tomllib  # for the few who have such a file

    document = tomllib.loads(text)
    tables = ""
    for hook in hooks:
        keys, table = _keys(hook, file), f"[{hook}.commands.{_COMMAND}]"
        if "jobs" in document.get(hook, ()):
            keys, table = {"name": _JOB, **keys}, f"[[{hook}.jobs]]"
        pairs = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        tables += f"{table}\n{pairs}"
    return tables


def _put_some(text: str, hooks: tuple[str, ...], file: str, command: str) -> str | None:
    """Return the text with one hook that is there changed, or some that are not added."""
    before: Any = yaml_text.load(text, file) or {}
    root, hook, keys = yaml_text.compose(text, file), hooks[0], _keys(hooks[0], file)
    node = inside = yaml_text.get(root, hook)
    jobs, commands = yaml_text.get(inside, "jobs"), yaml_text.get(inside, "commands")
    ours = {_COMMAND: keys}
    if jobs is not None:
        job = {"name": _JOB, **keys}
        node, new = jobs, "- " + _yaml(job, 2)[2:]
        wanted = _with(before, hook, "jobs", lambda found: [*found, job])
    elif commands is not None:
        if yaml_text.get(commands, _COMMAND):  # by hand; lefthook takes no key twice
            return None
        node, new = commands, f"{_COMMAND}:\n{_yaml(keys, 2)}"
        wanted = _with(before, hook, "commands", lambda found: {**found, **ours})
    elif inside is not None:
        new = f"commands:\n  {_COMMAND}:\n{_yaml(keys, 4)}"
        wanted = _with(before, hook, "commands", lambda _: ours)
    else:
        node, new = root, "".join(lines(one, file) for one in hooks)
        added = {one: {"commands": {_COMMAND: _keys(one, file)}} for one in hooks}
        wanted = {**before, **added} if isinstance(before, dict) else None
    block = marked.block(command, new)
    if node is None:
        after = marked.insert(text, len(text), block)
    elif isinstance(node, yaml.CollectionNode) and not node.flow_style:
        after = marked.insert(text, yaml_text.end_of(text, node), block, node.start_mark.column)
    else:
        return None
    try:
        return after if yaml_load.load(after) == wanted else None
    except yaml.YAMLError:
        return None


def _with(before: Any, hook: str, key: str, change: Any) -> Any:  # noqa: ANN401 - any YAML
    """Return a document with one key of a hook changed; None where its shape is another."""
    try:
        return {**before, hook: {**before[hook], key: change(before[hook].get(key))}}
    except (AttributeError, KeyError, TypeError):
        return None


def _keys(hook: str, file: str) -> dict[str, str | bool]:
    """Return our command, which lefthook is never to skip: it does so where no path has changed.

    It also compares a push with what is checked out, and not with what is pushed. A command that is
    given files, and a file that is there, is run always.
    """
    call = f"gitgates git-hook --via=lefthook {hook} {_ARGUMENTS.get(hook, '{0}')}"
    keys: dict[str, str | bool] = {"files": f"echo {file}", "run": f"true {{files}} && {call}"}
    return {**keys, "use_stdin": True} if HOOK_POINTS[hook].reads_stdin else keys


def _yaml(keys: dict[str, str | bool], column: int) -> str:
    said = {key: str(value).lower() if value is True else value for key, value in keys.items()}
    return "".join(f"{' ' * column}{key}: {value}\n" for key, value in said.items())
