"""What `.pre-commit-config.yaml` says: which hooks it has, which stages of ours are among them."""

from __future__ import annotations

import os

from gitgates.lifecycle import HOOK_POINTS
from gitgates.record import Record
from gitgates.store.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FILE = ".pre-commit-config.yaml"
_ENTRY = "gitgates pre-commit-hook "
_ID = "gitgates-"


class Framework(Record):
    """The settings of the pre-commit framework in one root."""

    exists: bool = False
    broken: str = ""  # why it cannot be read
    ids: tuple[str, ...] = ()  # of all its hooks, aliases included
    our_stages: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()  # entries of ours that install-hooks would not write
    install_types: tuple[str, ...] = ("pre-commit",)  # what a bare `pre-commit install` installs


def read(root_abs: str) -> Framework:
    """Read the file."""
    import yaml  # comes with pre-commit

    from gitgates.yaml_load import load

    try:
        document = load(read_regular(os.path.join(root_abs, FILE)))
    except FileNotFoundError:
        return Framework()
    except (OSError, ValueError, yaml.YAMLError) as error:
        return Framework(exists=True, broken=str(error).partition("\n")[0])
    if not isinstance(document, dict):
        return Framework(exists=True)
    hooks = list(_hooks(document))
    types = document.get("default_install_hook_types")
    return Framework(
        exists=True,
        ids=tuple(str(hook[key]) for hook in hooks for key in ("id", "alias") if hook.get(key)),
        our_stages=tuple(dict.fromkeys(stage for hook in hooks for stage in _stages(hook))),
        strange=tuple(entry for hook in hooks if (entry := _strange_entry(hook))),
        install_types=tuple(map(str, types)) if isinstance(types, list) else ("pre-commit",),
    )


def _hooks(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    repos = document.get("repos")
    for repo in repos if isinstance(repos, list) else ():
        if isinstance(repo, dict) and isinstance(repo.get("hooks"), list):
            yield from (hook for hook in repo["hooks"] if isinstance(hook, dict))


def _stages(hook: dict[str, Any]) -> Iterator[str]:
    """Return the stage that a hook runs our gates for: its id says it, or its entry."""
    entry, name = str(hook.get("entry", "")), str(hook.get("id", ""))
    stage = name.removeprefix(_ID) if name.startswith(_ID) else ""
    if _ENTRY in entry:
        stage = entry.partition(_ENTRY)[2].split(" ")[0]
    point = HOOK_POINTS.get(stage)
    if point is not None and point.framework:
        yield stage


def _strange_entry(hook: dict[str, Any]) -> str:
    """Return the entry of a hook of ours where it is another than install-hooks would write."""
    entry = str(hook.get("entry", ""))
    usual = [f"{_ENTRY}{stage}" for stage in _stages(hook)]
    return entry if usual and entry and entry not in usual else ""
