"""The context of an intent for an agent, trimmed to a budget. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.features.intents.intent import Intent

SMALLEST = 512  # characters, which id, title and what was left out always fit into
_TAG = "intent_context"


def context_text(intent: Intent, recent: Sequence[str], budget: int) -> str:
    """Return the `<intent_context>` block of an intent, of at most `budget` characters.

    A budget below SMALLEST counts as that. Where not everything fits, whole lines are left out, the
    least important first: recent changes, notes, scope, constraints, acceptance criteria. `recent`
    is the intent's latest trace, the newest first.
    """
    sections = {
        "Acceptance criteria": intent.acceptance_criteria,
        "Constraints": intent.constraints,
        "Owned scope (change nothing else)": intent.owned_scope,
        "Notes": tuple(line for line in intent.notes.splitlines() if line.strip()),
        "Recent changes": tuple(recent),
    }
    blocks = [
        (title, [f"- {_indented(item)}\n" for item in items])
        for title, items in sections.items()
        if items
    ]
    head = f"<{_TAG}>\n{intent.id}: {_inert(intent.title)}\nPriority: {intent.priority}\n"
    end = f"</{_TAG}>\n"
    budget = max(budget, SMALLEST)
    whole = head + "".join(_block(title, lines) for title, lines in blocks) + end
    if len(whole) <= budget:
        return whole
    remaining = budget - len(head) - len(end)
    remaining -= len(_omission_note(intent, {title: len(lines) for title, lines in blocks}))
    text, dropped = "", {}
    for title, lines in blocks:
        fitting = _fitting(title, lines, remaining)
        if fitting:
            text += _block(title, lines[:fitting])
            remaining -= len(_block(title, lines[:fitting]))
        if fitting < len(lines):
            dropped[title] = len(lines) - fitting
    return head + text + _omission_note(intent, dropped) + end


def _fitting(title: str, lines: list[str], remaining: int) -> int:
    """Return how many lines of a block fit, from its first on."""
    count, remaining = 0, remaining - len(_block(title, []))
    while count < len(lines) and len(lines[count]) <= remaining:
        remaining -= len(lines[count])
        count += 1
    return count


def _block(title: str, lines: list[str]) -> str:
    return f"{title}:\n{''.join(lines)}"


def _omission_note(intent: Intent, dropped: dict[str, int]) -> str:
    what = ", ".join(f"{title.partition(' (')[0].lower()} ({n})" for title, n in dropped.items())
    return f"Omitted to fit: {what}. In full: gitgates intent show {intent.id}\n"


def _indented(text: str) -> str:
    return "\n  ".join(_inert(line) for line in text.strip().splitlines())


def _inert(text: str) -> str:
    """Return text that cannot end the block."""
    return text.replace(f"</{_TAG}", f"<\\/{_TAG}")
