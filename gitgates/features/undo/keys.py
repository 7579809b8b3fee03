"""The table `[tool.gitgates.undo]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table

_KEYS = (
    Key("enabled", v.FLAG, "true", weaker="off").means(
        "Whether save points are taken, so that `gitgates undo` brings back what an agent changed."
    ),
    Key("keep", v.AGE, '"14d"').means("How long save points are kept."),
    Key("max_size", v.SIZE, '"2 GiB"').means(
        "How much disk space all save points of a repository may take. Above it, the oldest ones "
        "are removed, with a message. Ignored files may take half of it."
    ),
    Key("max_file", v.SIZE, '"100 MiB"').means(
        "Files above this size are left out of save points, unless they are as in the last commit. "
        "They are named when a session begins; a command that would destroy one asks first."
    ),
)

TABLE = Table(
    name="undo",
    keys=_KEYS,
    meaning="Save points of the files that agents change, for `gitgates undo`."
    " [More](../how-to/undo.md).",
    example='max_file = "500 MiB".',
)
