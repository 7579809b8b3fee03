"""Our hooks in the text of `.pre-commit-config.yaml`: put in, brought up to date, taken out. Pure.

Only the block's own bytes change. What comes out is parsed again and compared, so that a file whose
shape was not understood is refused instead of being spoilt.
"""

from __future__ import annotations

import re

import yaml

from gitgates import yaml_load
from gitgates.errors import ConfigError
from gitgates.install import marked, yaml_text

FILE = ".pre-commit-config.yaml"
_COMMAND = "gitgates install-hooks --via pre-commit"
_HEAD = f"{marked.made(_COMMAND)}repos:\n"
_EMPTY_LIST = re.compile(r"^repos: \[\](\r?\n)", re.MULTILINE)
# Where the framework knows no files, being given none would mean that none has changed.
_WITHOUT_FILES = ("post-checkout", "post-commit", "post-merge", "post-rewrite", "pre-rebase")


def put(text: str | None, stages: tuple[str, ...], command: str = _COMMAND) -> str:
    """Return the text with our block for these stages at the end of `repos`. None: no file.

    `command` is what writes it. Raises: ConfigError where the text is no YAML, or its `repos` is no
    list of lines.
    """
    block = marked.block(command, lines(stages))
    if text is None:
        return _HEAD + block
    before = without(text)
    if before is None:
        return _HEAD + block
    opened, end, column = _open_list(before)
    after = marked.insert(opened, end, block, column)
    _require_appended(before, after, stages)
    return after


def without(text: str, file: str = FILE) -> str | None:
    """Return the text without our block; None where nothing else was in it.

    Raises: ConfigError where the block's end is missing.
    """
    rest = marked.without(text, file)
    if rest is None or rest == text:
        return rest
    if rest.startswith("# made by ") and rest.splitlines()[1:] == ["repos:"]:
        return None
    return _with_empty_list(rest)


def lines(stages: tuple[str, ...]) -> str:
    """Return our hooks as lines of `repos`."""
    return "- repo: local\n  hooks:\n" + "".join(
        f"  - id: {hook['id']}\n"
        + "".join(f"    {key}: {_scalar(value)}\n" for key, value in hook.items() if key != "id")
        for hook in map(hook_of, stages)
    )


def hook_of(stage: str) -> dict[str, str | bool | list[str]]:
    """Return our hook for a stage."""
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


def _scalar(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _with_empty_list(text: str) -> str:
    """Write `repos: []` where our block was all that the list held, because it may not be empty."""
    try:
        if yaml_load.load(text).get("repos", ()) is not None:
            return text
    except (yaml.YAMLError, AttributeError):
        return text
    found = text.splitlines(keepends=True)
    return "".join(f"repos: []{x[6:]}" if x.startswith("repos:") else x for x in found)


def _open_list(text: str) -> tuple[str, int, int]:
    """Return the text with a list that lines can be added to, where they go, and its column."""
    empty = _EMPTY_LIST.search(text)
    if empty is None:
        return text, *_find_list(text)
    key = f"repos:{empty[1]}"
    opened = text[: empty.start()] + key + text[empty.end() :]
    return opened, empty.start() + len(key), 0


def _find_list(text: str) -> tuple[int, int]:
    node = yaml_text.get(yaml_text.compose(text, FILE), "repos")
    if not isinstance(node, yaml.SequenceNode):
        raise ConfigError(
            f"{FILE}: there is no list `repos`, which is where our hooks go",
            "Write the line `repos: []`, or remove the file; nothing was changed.",
        )
    if node.flow_style:
        raise ConfigError(
            f"{FILE}: the list `repos` stands in brackets, where no block of lines can go",
            "Write each repository on lines of its own, after a `-`; nothing was changed.",
        )
    return yaml_text.end_of(text, node), node.start_mark.column


def _require_appended(before: str, after: str, stages: tuple[str, ...]) -> None:
    wanted = yaml_text.load(before, FILE)
    ours = {"repo": "local", "hooks": list(map(hook_of, stages))}
    if isinstance(wanted, dict):
        wanted["repos"] = [*(wanted["repos"] or ()), ours]
    try:
        if yaml_load.load(after) == wanted:
            return
    except yaml.YAMLError:
        pass
    raise ConfigError(
        f"{FILE}: our hooks could not be added without changing what the file says",
        f"Add them by hand, at the end of `repos`:\n{lines(stages)}",
    )
