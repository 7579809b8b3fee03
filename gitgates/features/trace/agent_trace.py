"""The trace in the published format Agent Trace (https://agent-trace.dev), one record a line.

The whole record is in `metadata`, under `gitgates`, for what the format has no field for. Removed
blocks have no range. The model is unknown.
"""

from __future__ import annotations

from gitgates import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.store.log import Fact

VERSION = "0.1.0"  # of that format; its schema wants three numbers


def agent_trace(record: Fact) -> Fact:
    """Return a record of the ledger as an Agent Trace record."""
    vcs = {"vcs": {"type": "git", "revision": record["commit"]}} if record["commit"] else {}
    files = [
        {"path": file["path"], "conversations": [_conversation(file)]} for file in record["files"]
    ]
    return {
        "version": VERSION,
        "id": record["id"],
        "timestamp": record["time"],
        **vcs,
        "tool": {"name": "gitgates", "version": __version__},
        "files": files,
        "metadata": {"gitgates": record},
    }


def _conversation(file: Fact) -> Fact:
    ranges = []
    for block in file["blocks"]:
        first, count = block["new"]
        if count:
            digest = f"sha256:{block['sha256']}"
            end = first + count - 1
            ranges.append({"start_line": first, "end_line": end, "content_hash": digest})
    return {"contributor": {"type": "ai"}, "ranges": ranges}
