"""`gitgates mcp`: some verbs as tools of a server of the Model Context Protocol.

Each tool runs its verb, as the agent's own shell would. Which agent calls it, the hook before the
tool adds: `caller`, as `--caller` is added to a shell command.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from gitgates.core.errors import BLOCKED, OK, ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    from mcp.server import MCPServer

NAME = "gitgates"
_GRACE_S = 10.0  # more than gates get to end
_INSTRUCTIONS = (
    "Quality gates of this repository: intents, reviews, and running the gates. Leave the argument "
    "`caller` of a tool empty: it is filled in."
)


@click.command("mcp")
def command() -> int:
    """Serve some verbs as tools of the Model Context Protocol over standard input and output.

    The tools are select_active_intent, scope_expansion_request, review_status, post_review and
    run_gates. An agent starts this by itself, where `gitgates install-hooks --agent claude --mcp`
    has registered it. It needs the package `mcp`: pip install 'gitgates[mcp]'.

    Exit status 0: the agent has closed its side. 78: that package is missing.
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

    Raises: ImportError where the package `mcp` is missing, or too old.
    """
    from mcp.server import MCPServer  # an extra

    server = MCPServer(NAME, instructions=_INSTRUCTIONS, log_level="WARNING")
    tools = (select_active_intent, scope_expansion_request, review_status, post_review, run_gates)
    for tool in tools:
        server.add_tool(tool, structured_output=False)  # which an agent gets as text, not as JSON
    return server


async def select_active_intent(intent_id: str, caller: str = "") -> str:
    """Select the intent that you work on. Returns its scope, constraints, acceptance criteria."""
    return await _run("intent", "select", *_by(caller), "--", intent_id)


async def scope_expansion_request(
    intent_id: str, pattern: str, reason: str, caller: str = ""
) -> str:
    """Ask the person to let an intent cover more files: a pattern such as src/api/**, and why."""
    words = ("intent", "scope-expansion-request", *_by(caller), f"--reason={reason}")
    return await _run(*words, "--", intent_id, pattern)


async def review_status(caller: str = "") -> str:
    """Show what has changed in this session, and whether it was reviewed."""
    return await _run("review", "status", *_by(caller))


async def post_review(
    decision: str,
    summary: str,
    *,
    token: str = "",
    message_to_agent: str = "",
    caller: str = "",
) -> str:
    """Post your decision on the change, COMPLETE or ISSUES, as its reviewer, with your token."""
    said = (f"--decision={decision}", f"--summary={summary}", f"--token={token}")
    return await _run(
        "review", "post", *_by(caller), *said, f"--message-to-agent={message_to_agent}"
    )


async def run_gates(hook: str = "manual", gates: list[str] | None = None) -> str:
    """Run the gates of a hook, such as pre-commit, or only those that are named, and report."""
    named = [word for gate in gates or () for word in ("--gate", gate)]
    return await _run("run", *named, "--", hook)


def _by(caller: str) -> tuple[str, ...]:
    return (f"--caller={caller}",) if caller else ()


async def _run(*words: str) -> str:
    """Run a verb; return what it prints. Where the call is cancelled, the verb is ended.

    Raises: ToolError with that, where the verb could not do what it is for.
    """
    import anyio
    from mcp.server.mcpserver.exceptions import ToolError

    # -P: what lies in the agent's folder is not imported. Our own standard input is the agent's.
    argv = [sys.executable, "-P", "-m", "gitgates", *words]
    try:
        child: Any = await anyio.open_process(argv)
    except (OSError, ValueError) as error:  # such as one that is too long, or has a NUL
        why = getattr(error, "strerror", "") or error
        raise ToolError(
            f"`gitgates {words[0]}` cannot be run with these arguments: {why}"
        ) from error
    texts = [b"", b""]

    async def read(at: int, stream: AsyncIterable[bytes]) -> None:
        texts[at] = b"".join([part async for part in stream]).strip()

    async with child:
        try:
            await child.stdin.aclose()
            async with anyio.create_task_group() as group:
                group.start_soon(read, 0, child.stdout)
                group.start_soon(read, 1, child.stderr)
        except anyio.get_cancelled_exc_class():
            child.terminate()  # it ends its gates, which would go on if it were killed
            with anyio.move_on_after(_GRACE_S, shield=True):
                await child.wait()
            raise
    said = b"\n".join(filter(None, texts)).decode("utf-8", "replace")
    if child.returncode not in (OK, BLOCKED):
        raise ToolError(said or f"it ended with status {child.returncode}")
    return said
