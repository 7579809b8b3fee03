"""`gitgates mcp`: a Model Context Protocol server with some verbs as its tools.

Each feature has its tools in tools.py.
"""

from __future__ import annotations

import sys

import click

from gitgates.core.errors import OK, ConfigError
from gitgates.core.parts import feature_parts
from gitgates.verbs.tool import run_verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcp.server import MCPServer

NAME = "gitgates"
_INSTRUCTIONS = (
    "Quality gates of this repository: intents, reviews, and running the gates. Leave the "
    "argument `caller` of tools empty; it is filled in."
)


@click.command("mcp")
def command() -> int:
    """Serve some verbs as Model Context Protocol tools, over standard input and output.

    The tools are select_active_intent, scope_expansion_request, review_status, post_review,
    undo_turn and run_gates. Agents start it themselves once `gitgates install-hooks --agent claude
    --mcp` has registered it. It needs the package `mcp`: pip install 'gitgates[mcp]'.

    Exit status 0: the agent closed the connection. 78: the package is missing.
    """
    try:
        server = make_server()
    except ImportError as error:
        raise ConfigError(
            f"the package `mcp` cannot be loaded: {error}",
            f"Install it: {sys.executable} -m pip install 'gitgates[mcp]'",
        ) from error
    server.run("stdio")
    return OK


def make_server() -> MCPServer:
    """Return the server with its tools.

    Raises: ImportError if the package `mcp` is missing, or too old.
    """
    from mcp.server import MCPServer  # an extra

    server = MCPServer(NAME, instructions=_INSTRUCTIONS, log_level="WARNING")
    tools = [tool for module in feature_parts("tools") for tool in module.TOOLS]
    for tool in (*tools, run_gates):
        server.add_tool(tool, structured_output=False)  # agents get text, not JSON
    return server


async def run_gates(hook: str = "manual", gates: list[str] | None = None) -> str:
    """Run the gates of a hook, such as pre-commit, or only the given ones, and report."""
    options = [word for gate in gates or () for word in ("--gate", gate)]
    return await run_verb("run", *options, "--", hook)
