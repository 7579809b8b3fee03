"""How many names say nothing: the share of assignments that go to a word of `VAGUE`.

    python tests/vague_names.py [CHECKOUT]

Counted are the names that assignments, loops, comprehensions, `with` and `:=` bind.
"""

from __future__ import annotations

import ast
import collections
import sys
from pathlib import Path

import size

VAGUE = (
    *("one", "found", "said", "own", "known", "told", "heard"),
    *("given", "came", "there", "wanted", "left", "shown"),
    *("asked", "gone", "where", "was", "done", "made", "seen", "here"),
    *("held", "theirs", "ours", "named", "taken", "kept", "listed"),
)


def count(checkout: Path) -> tuple[collections.Counter[str], dict[str, int]]:
    """Return how often each name is bound in the package, and vague ones by file."""
    names: collections.Counter[str] = collections.Counter()
    by_file: dict[str, int] = {}
    for module in size.read_modules(checkout):
        here = [
            node.id
            for node in size.nodes_of(module.tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        names.update(here)
        by_file[module.path] = sum(name in VAGUE for name in here)
    return names, by_file


def share(names: collections.Counter[str]) -> float:
    """Return which part of all assignments goes to vague names."""
    return sum(names[name] for name in VAGUE) / names.total()


if __name__ == "__main__":
    counted, files = count(Path(sys.argv[1] if sys.argv[1:] else ".").resolve())
    print(f"{share(counted):.1%} of {counted.total()} assignments")
    for name in sorted(VAGUE, key=lambda name: -counted[name]):
        print(f"{counted[name]:6} {name}")
    for path, number in sorted(files.items(), key=lambda row: -row[1])[:20]:
        print(f"{number:6} {path}")
