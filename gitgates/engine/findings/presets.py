"""The presets: parsers that split the output of well-known tools into failures. Cold.

Written from real outputs, which lie in tests/outputs. Most are tables in presets.toml. In an
unknown format, nothing is found, and the whole output is one failure.
"""

from __future__ import annotations

import json
import os
import re
from functools import partial
from urllib.parse import unquote

from gitgates.core.clean import plain_line
from gitgates.core.record import Record
from gitgates.engine.findings.normalise import without_volatile
from gitgates.store.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any


def read_toml(name: str) -> dict[str, dict[str, Any]]:
    """Return a file of this folder: its tables, by name."""
    import tomllib  # if there is no preset, nothing reads the tables

    with open(os.path.join(os.path.dirname(__file__), name), "rb") as file:
        return tomllib.load(file)


TABLES = read_toml("presets.toml")
_PYTEST, _CARGO, _GO = (
    {name: re.compile(pattern, re.MULTILINE) for name, pattern in patterns.items()}
    for patterns in read_toml("parsers.toml").values()
)
_PYTEST_CUT = "..."


def _pytest(text: str) -> Iterator[ParsedFailure]:
    """Yield the tests that failed, from the short summary, and limits on the coverage."""
    *above, summary = _PYTEST["summary"].split(text)
    places = _pytest_places(text)
    for match in _PYTEST["line"].finditer(summary):
        yield _pytest_summed_up(match[0], places)
    for match in _PYTEST["coverage"].finditer("\n".join(above)):  # printed before the summary
        yield _pytest_summed_up(match[0], places)


def _pytest_summed_up(line: str, places: dict[tuple[str, str], str]) -> ParsedFailure:
    name, message = _pytest_parts(line)
    stable = _pytest_stable_part(message) if message.endswith(_PYTEST_CUT) else message
    path, _, test = name.partition(" ")[2].partition("::")
    if name.startswith("SUBFAIL"):  # the subtest's description comes before the path
        path = path.rpartition(" ")[2]
    if not path.endswith(".py"):  # a limit on the coverage
        return ParsedFailure(title=line, identity=name, message=stable, shown=message or line)
    function, bracket, values = test.partition("[")
    heading = function.replace("::", ".") + bracket + values
    return ParsedFailure(
        title=line,
        identity=name,
        message=stable,
        path=path,
        place=places.get((path, heading or path), ""),
        shown=f"{test}: {message}" if message and test else message or line,
    )


def _pytest_places(text: str) -> dict[tuple[str, str], str]:
    """Return path and heading → line: the first place in each file that a traceback names."""
    places: dict[tuple[str, str], str] = {}
    heading = ""
    for match in _PYTEST["traceback"].finditer(text):
        if match["heading"]:
            heading = match["heading"]
        else:
            places.setdefault((match["path"], heading), match["line"])
    return places


def _pytest_parts(line: str) -> tuple[str, str]:
    """Split `FAILED a.py::test_x[1 - 2] - why`, in which brackets show what is the name."""
    at = line.find(" - ")
    while at >= 0:
        if "[" not in line[:at].partition("::")[2] or line[at - 1] == "]":
            return line[:at], line[at + 3 :]
        at = line.find(" - ", at + 1)
    return line, ""


def _pytest_stable_part(message: str) -> str:
    """Return the part of a message cut to the terminal's width that is the same in each run.

    After something of varying length (a temporary path), the cut is elsewhere each time.
    """
    sure = _PYTEST["varying"].split(without_volatile(message.removesuffix(_PYTEST_CUT)))[0]
    return sure.rpartition(" ")[0] if sure else ""


_CARGO_SECTION_CHARS = 4000  # of the output of one test, to find why it failed


def _cargo(text: str) -> Iterator[ParsedFailure]:
    """Yield errors of the compiler, tests that failed, and files that are not formatted."""
    yield from _cargo_compile_errors(text)
    yield from _cargo_tests(text)
    for match in _CARGO["format"].finditer(text):
        title, path = f"not formatted: {match['path']}", match["path"]
        yield ParsedFailure(title=title, identity=title, path=path, shown="not formatted")


def _cargo_compile_errors(text: str) -> Iterator[ParsedFailure]:
    for match in _CARGO["compile"].finditer(text):
        fields = {name.rstrip("2"): value for name, value in match.groupdict().items() if value}
        code, path, place = fields.get("code", ""), fields["path"], fields["place"]
        yield ParsedFailure(
            title=f"{path}:{place}: error{code}: {fields['message']}",
            message=fields["message"],
            identity=path + code,
            place=place,
            path=path,
            rule=code.strip("[]"),
        )


def _cargo_tests(text: str) -> Iterator[ParsedFailure]:
    """Yield the tests that each target lists as failed; the reasons precede the list."""
    begin = 0
    for number, summary in enumerate(_CARGO["list"].finditer(text)):
        above = text[begin : summary.start()]
        begin = summary.end()
        targets = _CARGO["target"].findall(above)
        target = targets[-1].strip() if targets else ""
        reasons = _cargo_reasons(above)
        for line in summary["names"].splitlines():
            name = line.strip()
            fields = reasons.get(name, {})
            reason = fields.get("message", "")
            title = f"{name}: {' '.join(reason.split())}" if reason else name
            yield ParsedFailure(
                title=title,
                message=reason,
                identity=f"{target}\n{name}",
                path=fields.get("path") or "",
                place=fields.get("place") or "",
                target=str(number),
                shown=title,
            )


def _cargo_reasons(text: str) -> dict[str, dict[str, str]]:
    """Return test → the message of its failure, and path and place of its panic."""
    reasons = {}
    for match in _CARGO["section"].finditer(text):
        section = text[match.end() : match.end() + _CARGO_SECTION_CHARS].partition("\n---- ")[0]
        panic, message = _CARGO["panic"].search(section), _CARGO["message"].search(section)
        other = {"message": message[0]} if message else {}
        reasons[match["name"]] = panic.groupdict() if panic else other
    return reasons


class _GoPackage:
    """The output of a package whose name is not known yet."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.messages: dict[str, str] = {}  # test → its first message
        self.places: dict[str, tuple[str, str]] = {}  # test → file and line of that
        self.about = ""  # the test that the lines are about
        self.panic = ""
        self.panicked_at = ("", "")  # the file and line of the root's first frame

    def feed(self, message: str, file: str = "", line: str = "") -> None:
        if self.about and file and self.about not in self.messages:
            self.places.setdefault(self.about, (file, line))
        if message and self.about:
            self.messages.setdefault(self.about, message)

    def failures(self, package: str, why: str) -> Iterator[ParsedFailure]:
        """Yield the failures, without a test of which only subtests failed."""
        parents = {name.rpartition("/")[0] for name in self.failed if "/" in name}
        tests = [name for name in dict.fromkeys(self.failed) if name not in parents]
        for name in tests:
            message = self.messages.get(name, "")
            title = f"{package} {name}: {message}" if message else f"{package} {name}"
            identity = f"{package}\n{name}"
            file, line = self.places.get(name, ("", ""))  # the file's folder is the package's
            path, line = (f"{package}/{file}", line) if file else self.panicked_at
            yield ParsedFailure(
                title=title, message=message, identity=identity, shown=title, place=line, path=path
            )
        if not tests:
            message = self.panic or why or "failed"
            yield ParsedFailure(title=f"{package}: {message}", message=message, identity=package)


def _go_test(text: str) -> Iterator[ParsedFailure]:
    """Yield tests that failed, errors of the compiler, and packages that failed as a whole."""
    package, building, broken = _GoPackage(), False, False
    for line in text.split("\n"):
        error = _GO["compile"].fullmatch(line) if building or line.startswith("vet: ") else None
        # Compiler errors come below `# package`; a log may have lines that look like them.
        building = line.startswith("# ") or (building and (bool(error) or line[:1] == "\t"))
        if error:
            broken = True
            yield _go_error(error)
        elif match := _GO["package"].fullmatch(line):
            if not (match["why"] and broken):  # else the errors have been reported
                yield from package.failures(match["name"], match["why"] or "")
            package = _GoPackage()
        else:
            _go_read(line, package)
    if package.failed:
        yield from package.failures("", "")


def in_module(parsed: list[ParsedFailure], folder_abs: str) -> list[ParsedFailure]:
    """Return failures of Go with paths from the folder that its module is in, or none.

    A test is printed with the path of its package, which begins with the module's name.
    """
    try:
        content = read_regular(f"{folder_abs}/go.mod").decode("utf-8", "replace")
        named = _GO["module"].search(content)
    except OSError:
        named = None
    prefix = f"{named['name']}/" if named else ""
    return [_in_module(failure, prefix) for failure in parsed]


def _in_module(failure: ParsedFailure, prefix: str) -> ParsedFailure:
    package, _, test = failure.identity.partition("\n")
    if not (test and failure.path.startswith(f"{package}/")):
        return failure
    if prefix and failure.path.startswith(prefix):
        return failure._replace(path=failure.path.removeprefix(prefix))
    return failure._replace(path="", place="")


def _go_error(match: re.Match[str]) -> ParsedFailure:
    path, place, message = match["path"], match["place"], match["message"]
    title = f"{path}:{place}: {message}"
    return ParsedFailure(title=title, message=message, identity=path, place=place, path=path)


def _go_read(line: str, package: _GoPackage) -> None:
    if match := _GO["fail"].match(line):
        package.failed.append(match["name"])
        package.about = match["name"]
    elif match := _GO["about"].match(line):
        package.about = match["name"] or ""
    elif match := _GO["panic"].match(line):
        package.panic = package.panic or match["message"]
        package.feed(match["message"])
    elif match := _GO["log"].fullmatch(line):
        message = (match["message"] or match["testify"] or "").strip()
        package.feed(message, match["file"] or "", match["line"] or "")
    elif (
        package.panic
        and package.panicked_at == ("", "")
        and (match := _GO["frame"].fullmatch(line))
    ):
        package.panicked_at = match["path"], match["line"]


_FIXABLE = re.compile(r"\[\*\] ?")
_DIGITS = "0123456789"
_SEVERITIES = {
    **dict.fromkeys(("warning", "warn", "!", "⚠"), "warning"),
    **dict.fromkeys(("note", "notice", "info", "information", "style", "help"), "note"),
    **dict.fromkeys(("i", "ℹ"), "note"),
}


class ParsedFailure(Record):
    """One failure in an output. Only the message is normalised, not the identity."""

    title: str
    message: str = ""
    identity: str = ""  # a test's name; a file and a rule
    # These are not part of a fingerprint.
    place: str = ""  # line and column; distinguishes duplicates within one output
    target: str = ""  # what was run, by its number, where the identity may lack it; the same
    path: str = ""  # as it is printed
    rule: str = ""
    severity: str = "error"  # or warning, note
    shown: str = ""  # the whole message, where `message` is a part


def find(table: dict[str, Any], text: str) -> Iterable[ParsedFailure]:
    """Return the failures in an output, by the table of its tool."""
    fields = _of_lines(table, text) if "lines" in table else _of_text(table, text)
    failures = [broken_rule({**table.get("defaults", {}), **each}) for each in fields]
    if "rule_in_message" in table:
        failures = [_with_rule(failure, table["rule_in_message"]) for failure in failures]
    errors = [failure for failure in failures if failure.severity == "error"]
    return errors or failures if table.get("errors_first") else failures


def broken_rule(fields: dict[str, str]) -> ParsedFailure:
    """Return a broken rule as a failure. `fields`: the groups of presets.toml."""
    message = " ".join(_FIXABLE.sub("", fields.get("message", "")).split())
    if detail := fields.get("detail"):
        message = f"{message}: {detail}"
    path, rule = fields.get("path", ""), fields.get("rule", "")
    place = fields.get("place", "").replace(",", ":")
    location = f"{path}:{place}: " if path and place else f"{path}: " if path else ""
    what = " ".join(part for part in (rule, message) if part)
    return ParsedFailure(
        title=location + what,
        message=message,
        identity=f"{path}\n{rule}",
        place=place,
        path=path,
        rule=rule,
        severity=_SEVERITIES.get(fields.get("severity", "").lower(), "error"),
    )


def _of_text(table: dict[str, Any], text: str) -> Iterator[dict[str, str]]:
    patterns, header = table["patterns"], table.get("header", "")
    if header:
        patterns = [*patterns, f"^(?P<header>{header})$"]
    context: dict[str, str] = {}
    for match in re.finditer(either(patterns), text, re.MULTILINE):
        groups = match.groupdict().items()
        fields = {name.rstrip(_DIGITS): value for name, value in groups if value is not None}
        if "header" in fields:
            context = fields
            continue
        if "indent" in fields:
            fields["place"] = f"{context.get('place', '')}:{len(fields['indent']) + 1}"
        fields = {**context, **{name: value for name, value in fields.items() if value}}
        if fields.get("path") or not header:
            yield fields


def either(patterns: list[str]) -> str:
    """Join patterns as alternatives, each group's name followed by its pattern's number."""
    return "|".join(
        re.sub(r"\(\?P<(\w+)>", rf"(?P<\g<1>{number}>", pattern)
        for number, pattern in enumerate(patterns)
    )


def _with_rule(failure: ParsedFailure, pattern: str) -> ParsedFailure:
    match = re.search(pattern, failure.message)
    return failure._replace(rule=match[1]) if match else failure


def _of_lines(table: dict[str, Any], text: str) -> Iterator[dict[str, str]]:
    from gitgates.core.limits import parse_json  # few tools print JSON

    for line in text.split("\n"):
        if not line.startswith("{"):
            continue
        try:
            document = parse_json(line)
        except ValueError:
            continue
        places = {name: find_in(document, keys.split(".")) for name, keys in table["lines"].items()}
        fields = {name: str(value) for name, value in places.items() if _is_plain(value)}
        fields["place"] = ":".join(fields[name] for name in ("line", "column") if name in fields)
        if fields.get("message") and not re.match(table["skip"], fields["message"]):
            yield fields


def find_in(value: Any, keys: Iterable[str | int]) -> Any:  # noqa: ANN401 - any JSON
    """Return what is at some keys of plain data; None if it is not there.

    `[KEY]` is the first item of a list that has something at KEY.
    """
    for key in keys:
        if isinstance(value, list):
            if isinstance(key, str):
                having = (item for item in value if find_in(item, [key.strip("[]")]))
                value = next(having, None)
            else:
                value = value[key] if 0 <= key < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


_BEGIN = re.compile(r"^\s*(?=\{)", re.MULTILINE)
_TRIES = 5  # of finding where the log begins: a tool may print something else before it
_RUNS = '"runs"'  # of another log
_NOTIFICATIONS = ("toolExecutionNotifications", "toolConfigurationNotifications")
_SHOWN = 100
_PLACE = ("physicalLocation", "artifactLocation")
_REGION = ("physicalLocation", "region")


def find_results(text: str) -> Iterator[ParsedFailure]:
    """Yield the results that are failures, and are not suppressed."""
    for run in _list(_log_and_rest(text)[0], "runs"):
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
            if why := _why_unsuccessful(invocation):
                return why
    return ""


def _why_unsuccessful(invocation: object) -> str:
    for note in (note for key in _NOTIFICATIONS for note in _list(invocation, key)):
        if find_in(note, ["level"]) == "error":
            text = _message(find_in(note, ["message"]))
            return f"its log has an error of the tool: `{plain_line(text, _SHOWN)}`"
    is_successful = find_in(invocation, ["executionSuccessful"]) is True
    return "" if is_successful else "its log does not say `executionSuccessful: true`"


def _log_and_rest(text: str) -> tuple[Any, str]:
    """Return the first log in an output, and what is before and after it."""
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
    rules, index = _list(run, "tool", "driver", "rules"), find_in(result, ["ruleIndex"])
    if isinstance(index, int):
        rule = find_in(rules, [index])
    else:
        same = (each for each in rules if find_in(each, ["id"]) == find_in(result, ["ruleId"]))
        rule = next(same, None)
    levels = (find_in(result, ["level"]), find_in(rule, ["defaultConfiguration", "level"]))
    location = find_in(result, ["locations", 0])
    lines = [find_in(location, [*_REGION, key]) for key in ("startLine", "startColumn")]
    return {
        "path": _path(run, find_in(location, _PLACE)),
        "place": ":".join(str(line) for line in lines if isinstance(line, int)),
        "rule": _text(find_in(result, ["ruleId"]), find_in(rule, ["id"])),
        "severity": _text(*levels, "warning"),
        "message": _message(find_in(result, ["message"])),
    }


def _path(run: object, artifact: object) -> str:
    base = _text(find_in(artifact, ["uriBaseId"]))
    folder = _text(find_in(run, ["originalUriBaseIds", base, "uri"]))
    return unquote(folder + _text(find_in(artifact, ["uri"]))).removeprefix("file://")


def _message(message: object) -> str:
    """Return a message's text; of one whose text is its rule's, the arguments."""
    arguments = " ".join(filter(None, map(_text, _list(message, "arguments"))))
    return _text(find_in(message, ["text"])) or arguments


def _list(value: object, *keys: str) -> list[Any]:
    found = find_in(value, keys)
    return found if isinstance(found, list) else []


def _text(*values: object) -> str:
    """Return the first text that is not empty."""
    return next((value for value in values if value and isinstance(value, str)), "")


PRESETS: dict[str, Callable[[str], Iterable[ParsedFailure]]] = {
    "pytest": _pytest,
    "go-test": _go_test,
    "cargo": _cargo,
    **{name: partial(find, table) for name, table in TABLES.items()},
    "sarif": find_results,
}
OF_PACKAGES = frozenset({"go-test"})
OF_JSON = frozenset({"sarif", *(name for name, table in TABLES.items() if "lines" in table)})


def patterns_of(name: str) -> list[str]:
    """Return the patterns of a tool's failures; none if a function finds them."""
    patterns: list[str] = TABLES.get(name, {}).get("patterns", [])
    return patterns


def preset_of(name: str, *, counts_warnings: bool) -> Callable[[str], Iterable[ParsedFailure]]:
    """Return the function that finds failures. `counts_warnings`: also if there are errors."""
    table = TABLES.get(name, {})
    if counts_warnings and table.get("errors_first"):
        return partial(find, {**table, "errors_first": False})
    return PRESETS[name]
