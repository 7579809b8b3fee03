"""Run a verb as a tool of the Model Context Protocol, as the agent's own shell would.

The hook before the tool call adds `caller`, which names the agent, as it adds `--caller` to a shell
command.
"""

from __future__ import annotations

import sys
from typing import Any

from gitgates.core.errors import BLOCKED, OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable

_GRACE_S = 10.0  # longer than gates get to end


def caller_option(caller: str) -> tuple[str, ...]:
    """Return the option that names the calling agent."""
    return (f"--caller={caller}",) if caller else ()


async def run_verb(*words: str) -> str:
    """Run a verb; return what it prints. If the call is cancelled, end the verb.

    Raises: ToolError with the output, if the verb failed.
    """
    import anyio
    from mcp.server.mcpserver.exceptions import ToolError

    # -P: import nothing from the agent's folder. Our own standard input belongs to the agent.
    argv = [sys.executable, "-P", "-m", "gitgates", *words]
    try:
        child: Any = await anyio.open_process(argv)
    except (OSError, ValueError) as error:  # such as an argument that is too long, or has a NUL
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
            child.terminate()  # so that it ends its gates, which would outlive a killed process
            with anyio.move_on_after(_GRACE_S, shield=True):
                await child.wait()
            raise
    output = b"\n".join(filter(None, texts)).decode("utf-8", "replace")
    if child.returncode not in (OK, BLOCKED):
        raise ToolError(output or f"it ended with status {child.returncode}")
    return output
