"""What a conversion gives: tables of ours, what was changed or left out, what cannot be used."""

from __future__ import annotations

from gitgates.clean import plain_line
from gitgates.config.keys import RESERVED_GATE_NAMES
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Converted(Record):
    """Tables shaped like a settings file, and what a person should know about them."""

    gates: dict[str, Any]
    hooks: dict[str, Any]
    notes: list[str]  # each starts with its place in the file
    problems: list[str]  # the same, and nothing may be written because of them


def usable_name(name: str, taken: Iterable[str]) -> str:
    """Return a name that a gate may have, as near to `name` as can be, and not taken yet."""
    plain = plain_line(name, 0)
    plain = "-".join(part.strip() for part in plain.split(",") if part.strip()) or "gate"
    if plain.casefold() in {word.casefold() for word in RESERVED_GATE_NAMES}:
        plain = f"{plain}-gate"
    found, count = plain, 1
    while found in taken:
        count += 1
        found = f"{plain}-{count}"
    return found


def rename(names: Iterable[str], place: str, notes: list[str]) -> dict[str, str]:
    """Return each name → the one that a gate may have; what changes is noted."""
    names = list(names)
    # A name that is right as it is keeps it, even where another would become the same.
    found = {name: name for name in names if usable_name(name, ()) == name}
    for name in names:
        if name not in found:
            found[name] = usable_name(name, found.values())
            notes.append(
                f'{place}."{name}": no gate can be called that; it becomes `{found[name]}`'
            )
    return found
