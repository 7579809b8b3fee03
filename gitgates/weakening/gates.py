"""Our own gates that have become weaker, between two configurations. Pure.

Whatever makes a gate check less, later, or with less effect. A gate that is new, a hook that runs
more, a review that is asked for sooner are no findings.
"""

from __future__ import annotations

from gitgates.record import Record
from gitgates.types import ACTIONS, Config, Gate, Hook, Review
from gitgates.weakening.finding import GATE, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# How much of a limit must be left, so that less is no finding: a test suite may well be faster.
_SHARPLY = 0.5
_MODES = ("off", "remind", "require")


class _Key(Record):
    """One setting, and which way it is weaker."""

    field: str
    way: str  # more, less: entries or numbers; any: each change; off, on: a flag
    name: str = ""  # in the file; empty: as the field

    @property
    def shown(self) -> str:
        return self.name or self.field


_GATE_KEYS = (
    _Key("command", "any"),
    _Key("pre_commit", "any", "pre-commit"),
    _Key("runner", "any"),
    _Key("working_dir", "any"),
    _Key("env", "any"),
    _Key("on_fail", "action"),
    _Key("on_pass", "action"),
    _Key("files", "fewer"),
    _Key("exclude", "more"),
    _Key("pass_files", "any"),
    _Key("timeout_s", "sharply", "timeout"),
    _Key("required", "off"),
    _Key("observe", "on"),
    _Key("baseline", "on"),
)
_HOOK_KEYS = (
    _Key("gates", "fewer"),
    _Key("strategy", "sequence"),
    _Key("enabled_tools", "fewer"),
    _Key("enabled_agents", "fewer"),
    _Key("max_retries", "less"),
    _Key("on_exhausted", "exhausted"),
    _Key("timeout_s", "sharply", "timeout"),
    _Key("unstaged", "any"),
)
_REVIEW_KEYS = (
    _Key("mode", "mode"),
    _Key("required", "off"),
    _Key("prefix", "any"),
    _Key("min_lines", "greater"),
    _Key("min_files", "greater"),
    _Key("weights", "each"),
    _Key("tests", "more"),
    _Key("documentation", "more"),
    _Key("generated", "more"),
    _Key("critical", "fewer"),
    _Key("ignore", "more"),
    _Key("skills", "more"),
    _Key("agents", "more"),
    _Key("reviewer", "any"),
    _Key("reviewer_model", "any"),
    _Key("reviewer_commands", "more"),
    _Key("second_opinions", "fewer"),
    _Key("opinion_timeout_s", "sharply", "opinion_timeout"),
)
_TOP_KEYS = (
    _Key("breaker", "each"),
    _Key("artifacts_dir", "any"),
)


def compare_gates(before: Config | None, after: Config | None, path: str) -> tuple[Finding, ...]:
    """Return what has become weaker. `path` is the file that the settings stand in."""
    if before is None:
        return ()
    if after is None:
        return (Finding(path, GATE, "all settings of gitgates are gone"),)
    texts = [
        *_compare(_TOP_KEYS, (before, after), ""),
        *_compare_gates(before, after),
        *_compare_hooks(before, after),
        *_compare(_REVIEW_KEYS, (before.review, after.review), "review."),
    ]
    return tuple(Finding(path, GATE, text) for text in texts)


def _compare_gates(before: Config, after: Config) -> Iterable[str]:
    now = {gate.name: gate for gate in after.gates}
    for gate in before.gates:
        if gate.name in now:
            yield from _compare(_GATE_KEYS, (gate, now[gate.name]), f"gates.{gate.name}.")
        else:
            yield f"gates.{gate.name}: removed"


def _compare_hooks(before: Config, after: Config) -> Iterable[str]:
    now = {hook.name: hook for hook in after.hooks}
    for hook in before.hooks:
        if not hook.gates:
            continue  # nothing ran there
        if hook.name not in now:
            yield f"hooks.{hook.name}: removed, with {', '.join(hook.gates)}"
        else:
            yield from _compare(_HOOK_KEYS, (hook, now[hook.name]), f"hooks.{hook.name}.")


def _compare(
    keys: tuple[_Key, ...],
    sides: tuple[Config | Gate | Hook | Review, Config | Gate | Hook | Review],
    place: str,
) -> Iterable[str]:
    for key in keys:
        old, new = (getattr(side, key.field) for side in sides)
        if old == new:
            continue
        if key.way in ("more", "fewer"):
            text = _entries(key.way, old, new)
        else:
            text = f"{_shown(old)} → {_shown(new)}" if _is_weaker(key.way, old, new) else ""
        if text:
            yield f"{place}{key.shown}: {text}"


def _is_weaker(way: str, old: Any, new: Any) -> bool:  # noqa: ANN401 - a value of any setting
    """Tell whether a change of a value weakens."""
    return way == "any" or _WEAKER[way](old, new)


def _strength(action: str) -> int:
    return ACTIONS.index(action) if action in ACTIONS else 1


# way → whether the second value is weaker than the first
_WEAKER: dict[str, Callable[[Any, Any], bool]] = {
    "off": lambda _old, new: not new,
    "on": lambda _old, new: bool(new),
    # What a chain of gates comes to, only reading it tells.
    "action": lambda old, new: new not in ACTIONS or _strength(new) < _strength(old),
    "mode": lambda old, new: _MODES.index(new) < _MODES.index(old),
    # What stands behind a gate that blocks is not run.
    "sequence": lambda _old, new: new == "sequence",
    "exhausted": lambda _old, new: new == "allow",
    "less": lambda old, new: new < old,
    "greater": lambda old, new: new > old,
    "sharply": lambda old, new: 0 < new < _SHARPLY * old or (not old and new > 0),
    "each": lambda old, new: any(now < was for was, now in zip(old, new, strict=True)),
}


def _entries(way: str, old: tuple[str, ...] | None, new: tuple[str, ...] | None) -> str:
    """Return which entries too many, or too few, a list has now. None: all."""
    if way == "fewer" and old is None:
        return f"all → {_shown(new)}"
    if new is None:
        return ""
    had, has = old or (), new
    gone = [one for one in had if one not in has]
    added = [one for one in has if one not in had]
    # A pattern with `!` takes away what others have put in.
    back = [one for one in added if one.startswith("!")]
    more = [one for one in added if one not in back]
    lost = [one for one in gone if one.startswith("!")]
    if way == "more":
        wrong = ([f"+ {one}" for one in more], [f"- {one}" for one in lost])
    else:
        less = [one for one in gone if one not in lost]
        wrong = ([f"- {one}" for one in less], [f"+ {one}" for one in back])
    return ", ".join([*wrong[0], *wrong[1]])


def _shown(value: object) -> str:
    if value is None:
        return "all"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}"
    if isinstance(value, tuple):
        parts = (_shown(one) for one in value)
        return f"[{', '.join(parts)}]"
    return f"`{value}`" if value != "" else "nothing"
