"""Read the results of a SARIF log as failures: https://docs.oasis-open.org/sarif/sarif/v2.1.0/.

Pure. Whatever does not have the form of the standard is left out.
"""

from __future__ import annotations

import json
import re
from urllib.parse import unquote

from gitgates.core.clean import plain_line
from gitgates.engine.preset_tables import ParsedFailure, broken_rule, find_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_BEGIN = re.compile(r"^\s*(?=\{)", re.MULTILINE)
_TRIES = 5  # of finding where the log begins: a tool may print something else before it
_RUNS = '"runs"'  # of another log
_NOTIFICATIONS = ("toolExecutionNotifications", "toolConfigurationNotifications")
_SHOWN = 100
_PLACE = ("physicalLocation", "artifactLocation")
_REGION = ("physicalLocation", "region")


def find_results(text: str) -> Iterator[ParsedFailure]:
    """Yield the results that are failures, and are not suppressed."""
    for run in _list(_log(text), "runs"):
        for result in _list(run, "results"):
            is_failure = find_in(result, ["kind"]) in (None, "fail")
            if is_failure and not _is_suppressed(result):
                yield broken_rule(_fields(run, result))


def why_log_incomplete(text: str) -> str:
    """Return why a log does not have all results, by what it says itself; empty: it has.

    Invocations and notifications may be absent; a tool that gives them says how it went.
    """
    log, around = _log_and_rest(text)
    if _RUNS in around:
        return "there is more than one log in its output"
    for run in _list(log, "runs"):
        if not isinstance(find_in(run, ["results"]), list):
            return "a run in its log has no results"
        if find_in(run, ["externalPropertyFileReferences", "results"]):
            return "results of its log are in other files"
        for invocation in _list(run, "invocations"):
            if why := _why_unsuccessful(run, invocation):
                return why
    return ""


def _why_unsuccessful(run: object, invocation: object) -> str:
    for note in (note for key in _NOTIFICATIONS for note in _list(invocation, key)):
        if find_in(note, ["level"]) == "error":
            text = _message(run, None, find_in(note, ["message"]))
            return f"its log has an error of the tool: `{plain_line(text, _SHOWN)}`"
    is_successful = find_in(invocation, ["executionSuccessful"]) is True
    return "" if is_successful else "its log does not say `executionSuccessful: true`"


def _log(text: str) -> Any:  # noqa: ANN401 - any JSON
    return _log_and_rest(text)[0]


def _log_and_rest(text: str) -> tuple[Any, str]:
    """Return the first log in an output, and what is before and behind it."""
    for number, match in enumerate(_BEGIN.finditer(text)):
        if number == _TRIES:
            break
        try:
            document, end = json.JSONDecoder().raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        if find_in(document, ["runs"]):
            return document, text[: match.end()] + text[end:]
    return None, ""


def _is_suppressed(result: object) -> bool:
    states = [find_in(each, ["status"]) for each in _list(result, "suppressions")]
    is_accepted = bool(states) and all(state in (None, "accepted") for state in states)
    return is_accepted or find_in(result, ["baselineState"]) == "absent"


def _fields(run: object, result: object) -> dict[str, str]:
    index = find_in(result, ["ruleIndex"])
    index = find_in(result, ["rule", "index"]) if index is None else index
    rules = ["tool", "driver", "rules"]
    rule = find_in(run, [*rules, index]) if isinstance(index, int) else None
    if rule is None:
        ids = (find_in(result, ["ruleId"]), find_in(result, ["rule", "id"]))
        same = (each for each in _list(run, *rules) if find_in(each, ["id"]) in ids)
        rule = next(same, None)
    ids = (["ruleId"], ["rule", "id"])
    names = (*(find_in(result, keys) for keys in ids), find_in(rule, ["id"]))
    levels = (find_in(result, ["level"]), find_in(rule, ["defaultConfiguration", "level"]))
    location = find_in(result, ["locations", 0])
    lines = [find_in(location, [*_REGION, key]) for key in ("startLine", "startColumn")]
    numbers = [str(line) for line in lines if isinstance(line, int)]
    return {
        "path": _path(run, find_in(location, _PLACE)),
        "place": ":".join(numbers),
        "rule": _text(*names),
        "severity": _text(*levels, "warning"),
        "message": _message(run, rule, find_in(result, ["message"])),
    }


def _path(run: object, artifact: object) -> str:
    index = find_in(artifact, ["index"])
    if isinstance(index, int) and not find_in(artifact, ["uri"]):
        artifact = find_in(run, ["artifacts", index, "location"])
    base = _text(find_in(artifact, ["uriBaseId"]))
    folder = _text(find_in(run, ["originalUriBaseIds", base, "uri"]))
    return unquote(folder + _text(find_in(artifact, ["uri"]))).removeprefix("file://")


def _message(run: object, rule: object, message: object) -> str:
    """Return the text of a message, which may be that of its rule, with arguments in it."""
    name = _text(find_in(message, ["id"]))
    components = (rule, find_in(run, ["tool", "driver"]))
    keys = (["messageStrings", name, "text"], ["globalMessageStrings", name, "text"])
    strings = (find_in(each, key) for each, key in zip(components, keys, strict=True))
    text = _text(find_in(message, ["text"]), *strings)
    for number, argument in enumerate(_list(message, "arguments")):
        text = text.replace(f"{{{number}}}", _text(argument))
    return text


def _list(value: object, *keys: str) -> list[Any]:
    found = find_in(value, keys)
    return found if isinstance(found, list) else []


def _text(*values: object) -> str:
    """Return the first that is a text and not empty."""
    return next((value for value in values if value and isinstance(value, str)), "")
