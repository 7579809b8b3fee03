"""Run a verb as a tool of the Model Context Protocol, as the agent's own shell would.

Which agent calls it, the hook before the tool adds: `caller`, as `--caller` is added to a shell
command.
"""

from __future__ import annotations

import sys
from typing import Any

from gitgates.core.errors import BLOCKED, OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable

_GRACE_S = 10.0  # more than gates get to end


def by(caller: str) -> tuple[str, ...]:
    """Return the option that names the caller."""
    return (f"--caller={caller}",) if caller else ()


async def run_verb(*words: str) -> str:
    """Run a verb; return what it prints. If the call is cancelled, the verb is ended.

    Raises: ToolError with that, if the verb could not do what it is for.
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
    output = b"\n".join(filter(None, texts)).decode("utf-8", "replace")
    if child.returncode not in (OK, BLOCKED):
        raise ToolError(output or f"it ended with status {child.returncode}")
    return output
