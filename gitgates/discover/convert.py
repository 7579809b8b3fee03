"""Convert gate files of other tools: a gates.json, or YAML or JSON with `quality_gates`.

Values are taken as they are, for our own parser to judge. Whatever is left out or renamed is noted.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter

from gitgates.clean import plain_line, visible_line
from gitgates.config.keys import HOOK_KEYS, RESERVED_GATE_NAMES
from gitgates.config.load import describe
from gitgates.config.parse import parse
from gitgates.config.settings import Document
from gitgates.errors import UsageError
from gitgates.lifecycle import HOOK_POINTS
from gitgates.record import Record
from gitgates.store.files import open_regular
from gitgates.types import ACTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# A gate file is a few screens long.
_LONGEST_BYTES = 1024 * 1024
_WANTED = "a gates.json (`gates`, `hooks`) or a quality_gates file (`headless`, `quality_gates`)"
_WHOLE = re.compile(r"\d+")
_NUMBER = re.compile(r"\d+\.\d*|\d*\.\d+")


class Converted(Record):
    """Tables shaped like a settings file, and what a person should know about them."""

    gates: Any  # tables by name, once our parser has accepted them
    hooks: Any
    notes: list[str]  # each starts with where in the file it is
    problems: list[str]  # the same, and nothing may be written because of them


def read(path: str) -> Converted:
    """Return what a file says, as tables of ours that our parser accepts.

    Raises: UsageError where it cannot be read, is of no known kind, or says what makes no sense.
    """
    name = os.path.basename(path)
    notes: list[str] = []
    document = _load(path, _read(path), notes)
    if not isinstance(document, dict):
        raise UsageError(f"{name}: expected {_WANTED}")
    if "quality_gates" in document:
        found = _from_quality_gates(document)
    elif "gates" in document or "hooks" in document:
        found = _from_gates_json(document)
    else:
        raise UsageError(f"{name}: expected {_WANTED}, found neither")
    _refuse_problems(name, found)
    # Names of the file are shown on a terminal, whatever they hold.
    return found._replace(notes=[f"{name}: {visible_line(one)}" for one in notes + found.notes])


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


def _read(path: str) -> str:
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


def _load(path: str, text: str, notes: list[str]) -> object:
    if not path.endswith(".json") and not text.lstrip().startswith("{"):
        return _load_yaml(path, text)

    def keep_last(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
        notes.extend(f"`{name}` stands there twice; the last one counts" for name in twice)
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=keep_last)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{os.path.basename(path)}: is no valid JSON: {error}") from error


def _load_yaml(path: str, text: str) -> object:
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


def _from_gates_json(document: dict[str, Any]) -> Converted:
    found = Converted({}, {}, notes=[], problems=[])
    document = _known(document, ("gates", "hooks"), "", found)
    gates, hooks = document.get("gates", {}), document.get("hooks", {})
    names: dict[str, str] = {}
    if isinstance(gates, dict):
        names = _rename(gates, found)
        gates = {names[name]: _gate(name, gate, names, found) for name, gate in gates.items()}
    if isinstance(hooks, dict):
        unknown = [name for name in hooks if name not in HOOK_POINTS]
        found.notes.extend(f"hooks.{n}: no hook that gitgates knows, left out" for n in unknown)
        known = {name: hook for name, hook in hooks.items() if name in HOOK_POINTS}
        hooks = {name: _hook(name, hook, names, found) for name, hook in known.items()}
    return found._replace(gates=gates, hooks=hooks)


def _rename(names: Iterable[str], found: Converted) -> dict[str, str]:
    """Return each name → the one that a gate may have; what changes is noted."""
    # A name that is right as it is keeps it, even where another would become the same.
    renamed = {name: name for name in names if _usable_name(name, ()) == name}
    for name in names:
        if name not in renamed:
            new = renamed[name] = _usable_name(name, renamed.values())
            found.notes.append(f'gates."{name}": no gate can be called that; it becomes `{new}`')
    return renamed


def _usable_name(name: str, taken: Iterable[str]) -> str:
    """Return a name that a gate may have, as near to `name` as can be, and not taken yet."""
    plain = plain_line(name, 0)
    plain = "-".join(part.strip() for part in plain.split(",") if part.strip()) or "gate"
    if plain.casefold() in {word.casefold() for word in RESERVED_GATE_NAMES}:
        plain = f"{plain}-gate"
    usable, count = plain, 1
    while usable in taken:
        count += 1
        usable = f"{plain}-{count}"
    return usable


def _gate(name: str, gate: object, names: dict[str, str], found: Converted) -> object:
    if not isinstance(gate, dict):
        return gate
    fields = ("description", "command", "on_pass", "on_fail")
    kept = _known(gate, fields, f"gates.{name}.", found)
    if kept.get("command") == "":
        del kept["command"]
        found.notes.append(f"gates.{name}.command: is empty, left out")
    for field in ("on_pass", "on_fail"):
        if isinstance(action := kept.get(field), str) and action not in ACTIONS:
            kept[field] = names.get(action, action)
    return kept


def _hook(name: str, hook: object, names: dict[str, str], found: Converted) -> object:
    if not isinstance(hook, dict):
        return hook
    kept = _known(hook, ("enabled_tools", "enabled_agents", "gates"), f"hooks.{name}.", found)
    for key in HOOK_KEYS:
        if key.name in kept and key.only_in and name not in key.only_in:
            del kept[key.name]
            found.notes.append(f"hooks.{name}.{key.name}: has no meaning for {name}, left out")
    if isinstance(gates := kept.get("gates"), list):
        kept["gates"] = [names.get(gate, gate) if isinstance(gate, str) else gate for gate in gates]
    return kept


def _known(
    table: dict[str, Any], fields: tuple[str, ...], where: str, found: Converted
) -> dict[str, Any]:
    """Return the fields that a format has; `null` stands for one that is missing."""
    unknown = [field for field in table if field not in fields]
    found.notes.extend(f"{where}{field}: unknown field, left out" for field in unknown)
    return {name: value for name, value in table.items() if name in fields and value is not None}


def _from_quality_gates(document: dict[str, Any]) -> Converted:
    """Return a list of commands that a headless agent's work must pass as the hook `headless`."""
    found = Converted({}, {}, notes=[], problems=[])
    document = _known(document, ("headless", "quality_gates"), "", found)
    listed = document.get("quality_gates", [])
    if not isinstance(listed, list):
        found.problems.append("quality_gates: expected a list of gates")
        return found
    for index, item in enumerate(listed):
        _add_gate(item, f"quality_gates[{index}]", found)
    # The executor ran every gate and reported all failures together.
    hook: dict[str, Any] = {"gates": list(found.gates), "strategy": "collect"}
    headless = document.get("headless", {})
    if not isinstance(headless, dict):
        found.problems.append("headless: expected a mapping such as max_retries: 3")
        headless = {}
    retries = _number(_known(headless, ("max_retries",), "headless.", found).get("max_retries"))
    hook |= {} if retries in (None, "") else {"max_retries": retries}
    found.hooks["headless"] = hook
    return found


def _add_gate(item: object, where: str, found: Converted) -> None:
    if not isinstance(item, dict):
        found.problems.append(f"{where}: expected a gate with `name` and `command`")
        return
    written = item.get("name")
    if not isinstance(written, str) or not written.strip():
        found.problems.append(f'{where}.name: expected a text; add one such as name: "Lint"')
        return
    name = _usable_name(written, found.gates)
    if name != written:
        why = "no gate can be called that, or another one is"
        found.notes.append(f"{where}.name: `{written}`: {why}; it becomes `{name}`")
    fields = ("name", "command", "timeout", "working_dir", "env")
    kept = {k: v for k, v in _known(item, fields, f"{where}.", found).items() if v != ""}
    table: dict[str, Any] = {
        field: kept[field] for field in ("command", "working_dir") if field in kept
    }
    timeout = _number(kept.get("timeout"))
    if timeout == 0:
        found.notes.append(f"{where}.timeout: 0 meant no limit; gitgates' default applies")
    elif timeout is not None:
        table["timeout"] = timeout
    if env := kept.get("env"):
        is_table = isinstance(env, dict)
        table["env"] = {str(k): _plain(v) for k, v in env.items()} if is_table else env
    found.gates[name] = table


def _plain(value: object) -> object:
    """Return a scalar as its file writes it. YAML is read as text already; JSON is not."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case _:
            return value


def _number(value: object) -> object:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    return value
