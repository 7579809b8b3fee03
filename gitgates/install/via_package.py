"""Our call in the hooks of simple-git-hooks: the strings of an object in a JSON text. Pure."""

from __future__ import annotations

import json
import re

from gitgates.install import json_edit, json_text, via_shell
from gitgates.lifecycle import HOOK_POINTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.install.json_text import Node

KEY = "simple-git-hooks"
# Behind these, or on another line than they, `&& ours` would not do what it says.
_NOT_PLAIN = re.compile(r"[\n#\\]|<<|[&|;]\s*$|^\s*$|\b(exec|exit|return)\b")


def put(text: str, hooks: tuple[str, ...], file: str) -> str | None:
    """Return the text with our call in the command of each hook. None: it cannot go there.

    Raises: ConfigError where it is no JSON.
    """
    for hook in hooks:
        root = json_text.parse(text, file)
        holder = _holder(root, file)
        if holder is None or holder.kind != "object":
            return None
        node = holder.get(hook)
        if node is None:
            new = json_edit.New(via_shell.call(KEY, hook), hook)
            text = json_edit.append(text, holder, new, json_edit.style_of(text, root))
        elif node.kind != "string" or _NOT_PLAIN.search(node.value):
            return None
        elif HOOK_POINTS[hook].reads_stdin:
            text = text[: node.start + 1] + _before(hook) + text[node.start + 1 :]
        else:
            text = text[: node.end - 1] + _behind(hook) + text[node.end - 1 :]
    return text


def without(text: str, file: str) -> str:
    """Return the text without our calls.

    Raises: ConfigError where it is no JSON.
    """
    for hook in HOOK_POINTS:
        holder = _holder(json_text.parse(text, file), file)
        node = holder.get(hook) if holder else None
        if holder is None or node is None or node.kind != "string":
            continue
        if node.value == via_shell.call(KEY, hook):
            index = [member.key for member in holder.members].index(hook)
            text = json_edit.remove(text, holder, index)
            continue
        command = text[node.start : node.end]
        for ours in (_before(hook), _behind(hook)):
            command = command.replace(ours, "", 1)
        text = text[: node.start] + command + text[node.end :]
    return text


def _holder(root: Node, file: str) -> Node | None:
    return root.get(KEY) if file == "package.json" else root


def _before(hook: str) -> str:
    return json.dumps(via_shell.lines(KEY, hook))[1:-1]


def _behind(hook: str) -> str:
    return json.dumps(f" && {via_shell.call(KEY, hook)}")[1:-1]
