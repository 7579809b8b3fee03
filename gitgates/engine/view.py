"""Which view of the files gates get: the working tree, without what is unstaged, or a checkout."""

from __future__ import annotations

from gitgates.engine.walk import BEFORE_A_COMMIT
from gitgates.lifecycle import HOOK_POINTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from gitgates.types import Event, Hook

    View: TypeAlias = Literal["hide", "checkout", "keep"]


_AGAIN = {"staged": "commit", "pushed": "push", "caller": "run"}


def choose_view(event: Event, hook: Hook) -> View:
    """Return what gates of this event see.

    Only where git itself is about to commit or push is there anything else than the working tree:
    under the pre-commit framework unstaged work is hidden already, and by hand nothing is
    committed.
    """
    if event.host == "git" and event.name in BEFORE_A_COMMIT:
        match hook.unstaged:
            case "keep":
                return "keep"
            case "checkout":
                return "checkout"
            case _:
                return "hide"
    if event.name == "pre-push" and event.refs and hook.unstaged != "keep":
        return "checkout"
    return "keep"


def how_again(event: Event) -> str:
    """Return what brings a hook on again that is about the content of files; of others, nothing."""
    point = HOOK_POINTS.get(event.name)  # asking for opinions is an event of no host
    scope = point.scope if point else ""
    if event.payload or scope not in _AGAIN:
        return ""  # an agent goes on after its event, with the files as they are then
    return "run" if event.host == "manual" else _AGAIN[scope]
