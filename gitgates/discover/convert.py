"""Read a gate file of another tool: find out which kind it is, and convert it."""

from __future__ import annotations

import json
import os
from collections import Counter

from gitgates.clean import visible_line
from gitgates.config.load import describe
from gitgates.config.parse import parse
from gitgates.config.settings import Document
from gitgates.discover import gates_json, quality_gates
from gitgates.discover.converted import Converted
from gitgates.errors import UsageError
from gitgates.store.files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A gate file is a few screens long.
_LONGEST_BYTES = 1024 * 1024
_WANTED = "a gates.json (`gates`, `hooks`) or a quality_gates file (`headless`, `quality_gates`)"


def read(path: str) -> Converted:
    """Return what a file says, as tables of ours that our parser accepts.

    Raises: UsageError where it cannot be read, is of no known kind, or says what makes no sense.
    """
    notes: list[str] = []
    document = _document(path, _text(path), notes)
    name = os.path.basename(path)
    if not isinstance(document, dict):
        raise UsageError(f"{name}: expected {_WANTED}")
    if "quality_gates" in document:
        found = quality_gates.convert(document)
    elif "gates" in document or "hooks" in document:
        found = gates_json.convert(document)
    else:
        raise UsageError(f"{name}: expected {_WANTED}, found neither")
    _refuse_problems(name, found)
    # Names of the file are shown on a terminal, whatever they hold.
    shown = map(visible_line, (*notes, *found.notes))
    return found._replace(notes=[f"{name}: {note}" for note in shown])


def _refuse_problems(name: str, found: Converted) -> None:
    tables = {"gates": found.gates, "hooks": found.hooks}
    _, problems = parse((Document(name, (), tables),))
    fatal = [problem for problem in problems if not problem.deferred]
    lines = [f"{name}: {problem}" for problem in found.problems]
    lines += [describe(fatal)] if fatal else []
    if lines:
        raise UsageError("\n".join(lines), f"Mend {name} and run this again; nothing was written.")
    try:
        json.dumps(tables, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"{name}: half of a surrogate pair is no character") from error


def _text(path: str) -> str:
    name = os.path.basename(path)
    try:
        with open(path, "rb", opener=open_regular) as file:
            content = file.read(_LONGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: cannot be read: {why}") from error
    if len(content) > _LONGEST_BYTES:
        raise UsageError(f"{name}: longer than {_LONGEST_BYTES // 1024} KiB, so it is no gate file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: byte {error.start + 1} is not UTF-8") from error


def _document(path: str, text: str, notes: list[str]) -> object:
    is_json = path.endswith(".json") or text.lstrip().startswith("{")
    return _json(path, text, notes) if is_json else _yaml(path, text)


def _json(path: str, text: str, notes: list[str]) -> object:
    def keep_last(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        twice = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
        notes.extend(f"`{name}` stands there twice; the last one counts" for name in twice)
        return found

    try:
        return json.loads(text, object_pairs_hook=keep_last)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{os.path.basename(path)}: is no valid JSON: {error}") from error


def _yaml(path: str, text: str) -> object:
    import yaml

    class Loader(yaml.SafeLoader):
        """Leaves numbers, booleans and dates as they are written: `8080`, `yes`, `0x10`."""

        yaml_implicit_resolvers = {
            first: [pair for pair in pairs if pair[0].endswith((":null", ":merge"))]
            for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    try:
        return yaml.load(text, Loader)  # noqa: S506 - a SafeLoader with fewer types
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        why = " ".join(str(error).split())
        raise UsageError(f"{os.path.basename(path)}: is no valid YAML: {why}") from error
