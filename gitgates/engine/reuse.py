"""When the result of a gate may stand for a later run of it: the same gate on the same content.

The key says both. Only a pass is ever reused, and nothing uses this yet.
"""

from __future__ import annotations

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Content(Record):
    """The whole working tree at one moment."""

    tree: str
    provable: bool  # the same tree means the same content


class Blob(Record):
    """One path that a gate saw. No id: it was not there."""

    path: str
    mode: str
    id: str


class ReuseKey(Record):
    """What must be the same for a result to stand."""

    gate: str
    definition: str  # digest of the gate's definition and of the tool that it runs
    tree: str = ""  # of a gate that may look at everything
    blobs: tuple[Blob, ...] = ()  # of a gate that sees only some paths; sorted, each once


def whole_tree_key(gate: str, definition: str, around: tuple[Content, Content]) -> ReuseKey | None:
    """Return the key of a gate that may look at everything; None where nothing is proved.

    `around` are the working tree before and after the gates: had it changed meanwhile, nobody knows
    which content passed.
    """
    before, after = around
    if before != after or not before.provable or not before.tree:
        return None
    return ReuseKey(gate, definition, tree=before.tree)


def paths_key(
    gate: str, definition: str, around: tuple[Mapping[str, Blob], Mapping[str, Blob]]
) -> ReuseKey | None:
    """Return the key of a gate that sees only some paths; None where nothing is proved.

    `around` are these paths before and after the gate. No snapshot is needed, and other files may
    change. A gate without paths has looked at nothing, and proves nothing.
    """
    before, after = around
    if not before or dict(before) != dict(after):
        return None
    return ReuseKey(gate, definition, blobs=tuple(before[path] for path in sorted(before)))
