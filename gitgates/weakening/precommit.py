"""Hooks of pre-commit that run only when somebody asks for them by hand. Pure."""

from __future__ import annotations

import re

from gitgates.weakening.finding import SETTING, Finding
from gitgates.weakening.yaml import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.weakening.finding import Pair

_PATH = re.compile(r"(?:^|/)\.pre-commit-config\.ya?ml$")
_MANUAL = ("manual",)


def find_manual(pair: Pair) -> list[Finding]:
    """Return the hooks that ran by themselves and do no more."""
    if pair.before is None or pair.after is None or not _PATH.search(pair.path):
        return []
    old, new = _stages(pair.before), _stages(pair.after)
    return [
        Finding(pair.path, SETTING, f"{name}: runs by hand only (stages: [manual])")
        for name, stages in new.items()
        if stages == _MANUAL and old.get(name, _MANUAL) != _MANUAL
    ]


def _stages(content: bytes) -> dict[str, tuple[str, ...]]:
    """Return the stages of each hook, by its id; empty where it runs at all of them."""
    try:
        table = parse(content.decode("utf-8", "replace"))
    except ValueError:
        return {}  # settings.py says so
    if not isinstance(table, dict):
        return {}
    default = _texts(table.get("default_stages", ""))
    found: dict[str, tuple[str, ...]] = {}
    repos = table.get("repos")
    for repo in repos if isinstance(repos, list) else ():
        hooks = repo.get("hooks") if isinstance(repo, dict) else None
        for hook in hooks if isinstance(hooks, list) else ():
            if isinstance(hook, dict):
                name = str(hook.get("id", ""))
                # Of two hooks with one id, the one that runs by itself counts.
                stages = _texts(hook.get("stages", "")) or default
                found[name] = stages if found.get(name, _MANUAL) == _MANUAL else found[name]
    return found


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(one) for one in value)
    return (str(value),) if value else ()
