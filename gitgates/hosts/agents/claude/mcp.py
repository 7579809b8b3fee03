"""Add the MCP server to the text of a project's `.mcp.json`, and remove it. Pure.

Source: recorded from Claude Code 2.1.329.
"""

from __future__ import annotations

import json

from gitgates.core.errors import ConfigError
from gitgates.edit import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.edit.json_text import Node

FILE = ".mcp.json"
SERVER = "gitgates"  # our tools are named after it: mcp__gitgates__…
_SERVERS = "mcpServers"
_ARGUMENTS = ["mcp"]
# The command for other scopes than the project.
OTHER_SCOPES = "claude mcp add --scope {scope} gitgates -- gitgates mcp"


def add(text: str | None, program: str, file: str) -> str:
    """Return the text with the server. `text`: None if there is no file.

    Raises: ConfigError if the text cannot be parsed, or another server has our name.
    """
    entry = {"command": program, "args": _ARGUMENTS}
    before = None if text is None else remove(text, file)
    if before is None:
        return json.dumps({_SERVERS: {SERVER: entry}}, indent=2, ensure_ascii=False) + "\n"
    root = _parse(before, file)
    servers = root.get(_SERVERS) if root else None
    if servers and servers.get(SERVER):
        raise ConfigError(
            f"{file}: `{_SERVERS}.{SERVER}` is not a gitgates server",
            "Rename or remove it; nothing was changed.",
        )
    return json_text.insert(before, (_SERVERS, SERVER), entry, file)


def remove(text: str, file: str) -> str | None:
    """Return the text without the server; None if the file was created for it.

    Raises: ConfigError if the text cannot be parsed.
    """
    root = _parse(text, file)
    servers = root.get(_SERVERS) if root else None
    server = servers.get(SERVER) if servers else None
    if root is None or servers is None or server is None or not is_ours(server.value):
        return text
    path = [(root, root.parts.index(servers)), (servers, servers.parts.index(server))]
    return json_text.prune(text, path)


def is_ours(entry: object) -> bool:
    """Return whether an entry starts `gitgates mcp`, wherever gitgates is installed."""
    if not isinstance(entry, dict) or entry.keys() - {"command", "args", "type", "env"}:
        return False
    program = str(entry.get("command", "")).replace("\\", "/").rpartition("/")[2]
    return program.removesuffix(".exe") == SERVER and entry.get("args") == _ARGUMENTS


def _parse(text: str, file: str) -> Node | None:
    if not text.strip(json_text.SPACE):
        return None
    root = json_text.parse(text, file)
    json_text.require(root, dict, "the file", file)
    if (servers := root.get(_SERVERS)) is not None:
        json_text.require(servers, dict, f"`{_SERVERS}`", file)
    return root
