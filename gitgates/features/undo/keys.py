"""The table `[tool.gitgates.undo]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table

_KEYS = (
    Key("enabled", v.FLAG, "true", weaker="off").meaning("Whether save points are taken."),
    Key("keep", v.AGE, '"14d"').meaning("How long save points are kept."),
    Key("max_size", v.SIZE, '"2 GiB"').meaning(
        "How much disk space a repository's save points may take; the oldest are removed. "
        "Ignored files may take half of it."
    ),
    Key("max_file", v.SIZE, '"100 MiB"').meaning(
        "Larger files are not saved, unless they are as in the last commit. Before a command "
        "destroys one, the person is asked."
    ),
)

TABLE = Table(
    name="undo",
    keys=_KEYS,
    meaning="Save points of the files that agents change, for `gitgates undo`."
    " [More](../how-to/undo.md).",
    example='max_file = "500 MiB".',
)
