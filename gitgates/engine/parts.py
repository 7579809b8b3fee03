"""Take a push apart: each pushed commit is checked by itself, and all of them decide together."""

from __future__ import annotations

from gitgates.types import Decision, Event

_ZERO = "0"


def by_tip(event: Event) -> tuple[tuple[str, Event], ...]:
    """Return (commit or tag that is pushed, the event of only its refs), in git's order.

    Deletions push nothing; together they are one event, with an empty id.
    """
    found: dict[str, Event] = {}
    for ref in event.refs:
        tip = ref.local_id if ref.local_id.strip(_ZERO) else ""
        part = found.get(tip, event._replace(refs=()))
        found[tip] = part._replace(refs=(*part.refs, ref))
    return tuple(found.items())


def join(decisions: tuple[Decision, ...]) -> Decision:
    """Return what several decisions (at least one) mean together: the strongest wins."""
    strongest = max(decisions, key=lambda decision: decision.verdict)
    return strongest._replace(
        visits=tuple(visit for decision in decisions for visit in decision.visits),
        notes=tuple(dict.fromkeys(note for d in decisions for note in d.notes)),
    )


def describe_refs(event: Event) -> str:
    """Return the names of what is pushed, for people: `main, v1`."""
    names = (ref.local_ref or ref.remote_ref for ref in event.refs)
    return ", ".join(name.removeprefix("refs/heads/").removeprefix("refs/tags/") for name in names)
