"""Files that define a sub-agent for most clients: Markdown with front matter. Pure."""

from __future__ import annotations

import json
import re
from importlib.resources import files

_PLUGIN = files("gitgates").joinpath("plugin", "claude")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_HEAD = re.compile(r"\A\ufeff?---\r?\n(.*?)^---\s*$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^name:[ \t]*([\"']?)(.+?)\1[ \t]*(?:[ \t]#.*)?\r?$", re.MULTILINE)


def plugin_agent() -> str:
    """Return the name of the only sub-agent in our plugin."""
    return _only_name("agents").removesuffix(".md")


def plugin_skill() -> str:
    """Return the name of the only skill in our plugin, which starts that agent."""
    return _only_name("skills")


def _only_name(folder: str) -> str:
    (entry,) = _PLUGIN.joinpath(folder).iterdir()
    return entry.name


def definition(name: str, model: str) -> str:
    """Return the definition of our plugin's agent with a name; empty `model`: the session's."""
    literal = model if _NAME.fullmatch(model) else json.dumps(model)
    agent = plugin_agent()
    text = packaged(f"agents/{agent}.md").replace(f"\nname: {agent}\n", f"\nname: {name}\n")
    return text.replace("\nmodel: opus\n", f"\nmodel: {literal}\n" if model else "\n")


def can_be_named(name: str, reserved: tuple[str, ...]) -> bool:
    """Return whether a file can define a name: no pattern, and not a plugin's or the client's."""
    return bool(_NAME.fullmatch(name)) and name.lower() not in reserved


def name_in(text: str) -> str:
    """Return the name of the sub-agent that a file defines; empty if there is none."""
    head = _HEAD.search(text)
    match = _NAMED.search(head[1]) if head else None
    return match[2].strip() if match else ""


def packaged(name: str) -> str:
    """Return the text of a file in our plugin, with LF line endings."""
    return _PLUGIN.joinpath(name).read_text("utf-8")
