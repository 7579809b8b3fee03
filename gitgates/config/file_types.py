"""Select paths by file type, as the pre-commit framework defines types.

Loaded only for hooks with a gate that has `types`, because identify loads `re` and more.
"""

from __future__ import annotations

try:
    from identify.identify import ALL_TAGS, tags_from_filename, tags_from_path
except ModuleNotFoundError:
    # A git hook runs with -S, so an editable installation has no identify beside it.
    import site

    site.main()
    from identify.identify import ALL_TAGS, tags_from_filename, tags_from_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Gate


def of_types(paths: tuple[str, ...], gate: Gate, root_abs: str) -> tuple[str, ...]:
    """Return the paths whose type fits a gate's `types` and `types_or`, in order.

    The type is that of the file below `root_abs`; if there is none, the name decides.
    """
    needed = {tag for tag in gate.selection.types if not tag.startswith("!")}
    refused = {tag[1:] for tag in gate.selection.types if tag.startswith("!")}
    one_of = {*gate.selection.types_or}
    return tuple(
        path
        for path in paths
        for tags in [_tags(path, root_abs)]
        if needed <= tags and not refused & tags and (not one_of or one_of & tags)
    )


def hint_if_unknown(tag: str) -> str | None:
    """Return a hint with types similar to an unknown one, or nothing; None for a known one."""
    from difflib import get_close_matches

    if tag in ALL_TAGS:
        return None
    near = get_close_matches(tag.casefold(), sorted(ALL_TAGS))
    return f"Did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else ""


def _tags(path: str, root_abs: str) -> set[str]:
    try:
        return tags_from_path(f"{root_abs}/{path}")
    except (ValueError, OSError):  # it does not exist, or cannot be read
        return {"file", *tags_from_filename(path)}
