"""Files that define a sub-agent, as most clients read them: Markdown below a head. Pure."""

from __future__ import annotations

import json
import re
from importlib.resources import files

PLUGIN_AGENT = "reviewer"  # the one sub-agent that our plugin brings
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_HEAD = re.compile(r"\A\ufeff?---\r?\n(.*?)^---\s*$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^name:[ \t]*([\"']?)(.+?)\1[ \t]*(?:[ \t]#.*)?\r?$", re.MULTILINE)


def definition(name: str, model: str) -> str:
    """Return the file of our plugin's agent, named so; without a model, it has the session's."""
    literal = model if _NAME.fullmatch(model) else json.dumps(model)
    text = packaged(f"agents/{PLUGIN_AGENT}.md")
    text = text.replace(f"\nname: {PLUGIN_AGENT}\n", f"\nname: {name}\n")
    return text.replace("\nmodel: opus\n", f"\nmodel: {literal}\n" if model else "\n")


def can_be_named(name: str, reserved: tuple[str, ...]) -> bool:
    """Return whether a file may have that name: not a plugin's, a pattern, or the client's own."""
    return bool(_NAME.fullmatch(name)) and name.lower() not in reserved


def name_in(text: str) -> str:
    """Return the name of the sub-agent that a file defines; empty if none."""
    head = _HEAD.search(text)
    match = _NAMED.search(head[1]) if head else None
    return match[2].strip() if match else ""


def packaged(name: str) -> str:
    """Return the text of a file of our plugin. A checkout may write other line ends than we did."""
    return files("gitgates").joinpath("plugin", "claude", name).read_text("utf-8")
