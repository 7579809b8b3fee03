"""The pre-commit framework's files, `.pre-commit-config.yaml` and `prek.toml`: the hooks in them.

Which are there, also by a person's hand, and how they are added and taken out.
"""

from __future__ import annotations

import json
import os
import re
import sys
from functools import partial

import yaml

from gitgates.core import yaml_load
from gitgates.core.errors import ConfigError, GitError
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.record import Record
from gitgates.edit import blocks
from gitgates.proc.call import call
from gitgates.store.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

FILE = ".pre-commit-config.yaml"
_ENTRY = "gitgates pre-commit-hook "
_ID = "gitgates-"
_EMPTY_LIST = re.compile(r"^repos: \[\](\r?\n)", re.MULTILINE)
_ONLY_REPOS = re.compile(r"# made by [^\n]*\r?\nrepos:\r?\n")
# Where the framework knows no files, being given none would mean that none has changed.
_WITHOUT_FILES = ("post-checkout", "post-commit", "post-merge", "post-rewrite", "pre-rebase")


def hook_of(stage: str) -> dict[str, str | bool | list[str]]:
    """Return the hook for a stage."""
    return {
        "id": f"gitgates-{stage}",
        "name": f"gitgates {stage}",
        "entry": f"gitgates pre-commit-hook {stage}",
        "language": "system",
        "stages": [stage],
        "always_run": True,
        "pass_filenames": stage not in _WITHOUT_FILES,
        "require_serial": True,
    }


def by_hand(stages: tuple[str, ...], file: str) -> str:
    """Return the hooks as lines of `repos`, or as a table of it in TOML."""
    if not file.endswith(".toml"):
        return blocks.yaml_lines(_repos(stages)["repos"])
    tables = [
        ", ".join(f"{key} = {json.dumps(value)}" for key, value in hook_of(stage).items())
        for stage in stages
    ]
    hooks = "".join(f"  {{ {table} }},\n" for table in tables)
    return f'[[repos]]\nrepo = "local"\nhooks = [\n{hooks}]\n'


def add_yaml(text: str | None, stages: tuple[str, ...], file: str, command: str) -> str | None:
    """Return the text with the hooks for these stages at the end of `repos`. None: not possible.

    Raises: ConfigError where the text is not valid YAML, or its `repos` is not a list of lines.
    """
    if text is None:
        return f"# made by `{command}`\nrepos:\n{blocks.block(command, by_hand(stages, file))}"
    if empty := _EMPTY_LIST.search(text):
        head = f"{text[: empty.start()]}repos:{empty[1]}"
        block = blocks.block(command, by_hand(stages, file))
        after = blocks.insert(head + text[empty.end() :], len(head), block)
        return blocks.verified(text, after, _repos(stages), partial(blocks.load_yaml, file=file))
    node = blocks.get(blocks.compose_yaml(text, file), "repos")
    if not isinstance(node, yaml.SequenceNode):
        raise ConfigError(
            f"{file}: it has no list `repos` to add the hooks to",
            "Write the line `repos: []`, or remove the file; nothing was changed.",
        )
    if node.flow_style:
        raise ConfigError(
            f"{file}: the list `repos` is in brackets, where a block of lines cannot be added",
            "Write each repository on separate lines, after a `-`; nothing was changed.",
        )
    return blocks.append_yaml(text, ("repos",), _repos(stages), file=file, command=command)


def add_toml(text: str | None, stages: tuple[str, ...], file: str, command: str) -> str | None:
    """Return the text with the hooks as a table at its end. None: not possible.

    Raises: ConfigError where it is not valid TOML.
    """
    return blocks.append_toml(text, by_hand(stages, file), file, command)


def without(text: str, file: str = FILE) -> str | None:
    """Return the YAML text without the block; None if nothing else was in it.

    Raises: ConfigError where the block's end is missing.
    """
    rest = blocks.without(text, file)
    if rest is None or rest == text:
        return rest
    if _ONLY_REPOS.fullmatch(rest):
        return None
    return _with_empty_list(rest, file)


def run_pre_commit(verb: str, names: tuple[str, ...], env: Mapping[str, str]) -> str:
    """Run `pre-commit install` or `uninstall` for git hooks; return its output.

    Raises: GitError where it fails.
    """
    hooks = [name for name in names if HOOK_POINTS[name].host == "git"]
    types = [word for name in hooks for word in ("--hook-type", name)]
    if not types:
        return ""
    completed = call((sys.executable, "-m", "pre_commit", verb, *types), env)
    output = os.fsdecode(completed.stdout + completed.stderr).strip()
    if completed.exit_status:
        raise GitError(f"pre-commit {verb} failed: {output}", "Run it by hand; the rest is done.")
    return output


def _repos(stages: tuple[str, ...]) -> dict[str, Any]:
    return {"repos": [{"repo": "local", "hooks": list(map(hook_of, stages))}]}


def _with_empty_list(text: str, file: str) -> str:
    """Write `repos: []` where our block was all that the list held, because it may not be empty."""
    try:
        document = blocks.load_yaml(text, file)
    except ConfigError:
        return text
    if not isinstance(document, dict) or document.get("repos", ()) is not None:
        return text
    lines = text.splitlines(keepends=True)
    return "".join(f"repos: []{line[6:]}" if line.startswith("repos:") else line for line in lines)


class Framework(Record):
    """The settings of the pre-commit framework in one root."""

    exists: bool = False
    broken: str = ""  # why it cannot be read
    ids: tuple[str, ...] = ()  # of all its hooks, aliases included
    our_stages: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()  # entries of ours that install-hooks would not write
    install_types: tuple[str, ...] = ("pre-commit",)  # what a bare `pre-commit install` installs


def read_framework(root_abs: str) -> Framework:
    """Return what `.pre-commit-config.yaml` says; nothing is refused."""
    try:
        document = yaml_load.load(read_regular(os.path.join(root_abs, FILE)))
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
