"""Members' settings, as part of the root's: their gates, for paths below them. Pure.

Only gates, and the hooks that run them: everything else applies to the whole repository, or to a
whole hook, and belongs to the root.
"""

from __future__ import annotations

from gitgates.config.read import Settings
from gitgates.core.lifecycle import GATES_OWN_TIME, HOOK_POINTS, STANDS_IN_FOR, TOOL_EVENTS
from gitgates.core.policy import policy_gates
from gitgates.core.types import ACTIONS, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


_TOP_FIELDS = ("requires", "root", "members", "extends")  # `members` is refused elsewhere
_WITHOUT_PATHS = ("none", "message")
_SPECIAL = "\\*?["


def with_members(root: Settings, members: list[Settings], problems: list[Problem]) -> Settings:
    """Return the root's settings with its members'.

    A member's document has its folder: `web:lint` is the gate `lint` of `web`.
    """
    tables, origins = {**root.tables}, {**root.origins}
    all_hooks = [root.tables_of("hooks")]
    for part in members:
        problems += _misplaced(root, part)
        member = part.document.member
        names = {name: f"{member}:{name}" for name in part.tables_of("gates")}
        hooks = part.tables_of("hooks")
        for name, table in part.tables_of("gates").items():
            path = ("gates", names[name])
            if path in tables:
                message = f"is the name of a gate of {part.document.source}"
                problems.append(Problem(root.location(*path), message, "Choose another name."))
            tables[path] = _scoped(table, member, names)
            by_path = {at: doc for at, doc in part.origins.items() if at[:2] == ("gates", name)}
            origins |= {(*path, *at[2:]): document for at, document in by_path.items()}
        for hook, table in hooks.items():
            listed = tuple(names.get(name, name) for name in table.get("gates", ()))
            hooks[hook] = {"gates": listed}
            document = part.origins["hooks", hook]
            origins.setdefault(("hooks", hook), document)
            origins |= {("hooks", hook, "gates", name): document for name in listed}
        all_hooks.append(hooks)
    tables |= {("hooks", name): table for name, table in _joined(all_hooks)}
    return root._replace(tables=tables, origins=origins)


def _joined(all_hooks: list[dict[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each hook of the root, the first one, or of members, with the gates of all."""
    for name in dict.fromkeys(name for hooks in all_hooks for name in hooks):
        other = STANDS_IN_FOR.get(name, name)
        first, *others = [hooks.get(name, hooks.get(other, {})) for hooks in all_hooks]
        gates = dict.fromkeys(gate for table in others for gate in table.get("gates", ()))
        of_root = first.get("gates", ())
        yield name, {**first, "gates": (*of_root, *(g for g in gates if g not in of_root))}


def _scoped(table: dict[str, Any], member: str, names: dict[str, str]) -> dict[str, Any]:
    """Return the table of a gate whose folders and patterns are relative to the root."""
    place = "/" + "".join(f"\\{char}" if char in _SPECIAL else char for char in member)
    folder = table.get("working_dir", ".")
    scoped = {
        **table,
        "working_dir": member if folder == "." else f"{member}/{folder}",
        "files": (f"{place}/",),
    }
    for field in ("files", "exclude", "inputs"):
        if table.get(field) is not None:
            scoped[field] = tuple(_below(place, pattern) for pattern in table[field])
    for field in ("ignored_inputs", "outputs"):
        if field in table:
            scoped[field] = tuple(f"{member}/{path}" for path in table[field])
    if "examples" in table:
        scoped["examples"] = tuple((kind, f"{member}/{path}") for kind, path in table["examples"])
    for field in ("on_pass", "on_fail"):
        if table.get(field, "BLOCK") not in ACTIONS:
            scoped[field] = names.get(table[field], table[field])
    if "after" in table:
        scoped["after"] = tuple(names.get(name, name) for name in table["after"])
    return scoped


def _below(place: str, pattern: str) -> str:
    """Return a pattern of a .gitignore in a folder as one of the root's, by gitignore(5)."""
    negated = pattern.startswith("!")
    body = pattern[negated:]
    if body.startswith(("\\!", "\\#")):
        body = body[1:]
    is_anchored = "/" in body.rstrip("/")
    body = body.lstrip("/") if is_anchored else f"**/{body}"
    return f"{'!' if negated else ''}{place}/{body}"


def _misplaced(root: Settings, part: Settings) -> Iterator[Problem]:
    """Yield what a member may not set."""
    hint = f"Set it in {root.document.source}."

    def problem(message: str, *path: str, field: str = "") -> Problem:
        return Problem(part.location(*path, field=field), message, hint)

    for path, table in part.tables.items():
        match path:
            case ():
                for field in table.keys() - {*_TOP_FIELDS}:
                    yield problem("applies to the whole repository", field=field)
            case ("gates", _name):
                pass
            case ("hooks", name):
                for field in table.keys() - {"gates"}:
                    yield problem("applies to the whole hook", *path, field=field)
                point = HOOK_POINTS[name]
                by_agent = point.kind in (*TOOL_EVENTS, *GATES_OWN_TIME)
                if point.scope in _WITHOUT_PATHS and not by_agent:
                    message = "has no paths, and the gates of a member run for the paths below it"
                    yield problem(message, *path)
                for gate in {*policy_gates()} & {*table.get("gates", ())}:
                    yield problem(f"`{gate}` is about the whole repository", *path, field="gates")
            case _:
                yield problem("applies to the whole repository", *path)
