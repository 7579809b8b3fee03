"""Which files configure the tools that check, and how each is read. Pure."""

from __future__ import annotations

import configparser
import json
import re
import tomllib

from gitgates.record import Record
from gitgates.weakening.source import read_side
from gitgates.weakening.yaml import parse as parse_yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Settings: TypeAlias = dict[str, "str | tuple[str, ...]"]  # dotted key → a value, or a list

_PYTHON = (
    r"ruff(?!\.format|\.lint\.isort)|mypy|pytest|coverage|pylint|flake8|bandit|(?:based)?pyright|ty|"
    r"pyrefly|pyre|import-?linter|vulture|deptry|interrogate|pydocstyle|pycodestyle|tox|codespell"
)
_STRICT = (
    r"(?:compilerOptions\.(?:strict\w*|no[A-Z]\w*|allow\w*|skip\w*|checkJs|exact\w*|useUnknown\w*|"
    r"suppress\w*|forceConsistent\w*)|include|exclude|files)$"
)
_SCRIPTS = r"scripts\.(?:[\w:-]*(?:test|lint|check|type|verify|validate|ci)[\w:-]*|prepare|pre\w+)$"
_NODE = rf"(?:jest|eslintConfig|nyc|c8|mocha|ava|xo|stylelint|husky|lint-staged)\b|{_SCRIPTS}"
_JSON_NAMES = (
    r"\.eslintrc(?:\.json)?|\.oxlintrc\.json|biome\.jsonc?|\.nycrc(?:\.json)?|\.c8rc\.json|tslint\.json|"
    r"\.mocharc\.jsonc?|\.stylelintrc(?:\.json)?|\.jshintrc|pyrightconfig\.json|jest\.config\.json|"
    r"\.markdownlint(?:-cli2)?\.jsonc?|\.golangci\.json|deno\.jsonc?"
)
_YAML_NAMES = (
    r"\.golangci\.ya?ml|\.rubocop\w*\.ya?ml|\.pre-commit-config\.ya?ml|\.eslintrc\.ya?ml|\.?codecov\.ya?ml|"
    r"detekt\.ya?ml|\.swiftlint\.ya?ml|\.yamllint(?:\.ya?ml)?|\.hadolint\.ya?ml|\.?lefthook(?:-local)?\.ya?ml|"
    r"\.mocharc\.ya?ml|\.stylelintrc\.ya?ml|\.codeclimate\.ya?ml|\.reek\.ya?ml|analysis_options\.ya?ml|"
    r"\.nycrc\.ya?ml|\.ansible-lint|\.markdownlint\.ya?ml"
)
_LINES_NAMES = (
    r"(?:eslint|jest|vitest|playwright|karma|stylelint|commitlint|cypress)\.(?:config|conf|workspace)\.[cm]?[jt]s|"
    r"\.eslintrc\.[cm]?js|phpunit\.xml(?:\.dist)?|phpstan\.neon(?:\.dist)?|psalm\.xml(?:\.dist)?|"
    r"(?:checkstyle|pmd|spotbugs)[\w-]*\.xml|noxfile\.py|\.simplecov|\.shellcheckrc|\.rspec|"
    r"sonar-project\.properties|\.credo\.exs|\.luacheckrc|\.php-cs-fixer(?:\.dist)?\.php"
)
_IGNORE_NAMES = (
    r"\.(?:eslint|stylelint|semgrep|gitleaks|trivy|ruff|snyk|codespell|markdownlint|bandit|"
    r"secretlint)ignore"
)


class Tool(Record):
    """How a settings file is read, and what of it counts."""

    kind: str  # toml, ini, json, yaml, lines; ignored: each line is a path that is not checked
    wanted: str = ""  # which dotted keys; empty: all


_TOOLS: tuple[tuple[re.Pattern[str], Tool], ...] = tuple(
    (re.compile(rf"(?:^|/)(?:{names})$"), tool)
    for names, tool in (
        (r"pyproject\.toml", Tool("toml", rf"tool\.(?:{_PYTHON})\b")),
        (r"Cargo\.toml", Tool("toml", r"(?:workspace\.)?lints\b")),
        (r"\.?ruff\.toml", Tool("toml", r"(?!format\b|lint\.isort\b)")),
        (r"\.?clippy\.toml|deny\.toml|\.golangci\.toml|selene\.toml|\.?taplo\.toml", Tool("toml")),
        (r"\.?rubocop\.toml|\.codespellrc", Tool("ini")),
        (r"setup\.cfg", Tool("ini", rf"(?:tool:pytest|{_PYTHON})\b")),
        (r"tox\.ini", Tool("ini", rf"(?:{_PYTHON}|tool:pytest|testenv)\b")),
        (r"\.?mypy\.ini|\.flake8|\.?pytest\.ini|\.coveragerc|\.?pylintrc|\.bandit", Tool("ini")),
        (r"\.importlinter", Tool("ini")),
        (r"[tj]sconfig[\w.-]*\.json", Tool("json", _STRICT)),
        (r"package\.json", Tool("json", _NODE)),
        (r"composer\.json", Tool("json", _SCRIPTS)),
        (_JSON_NAMES, Tool("json")),
        (_YAML_NAMES, Tool("yaml")),
        (_LINES_NAMES, Tool("lines")),
        (r"\.husky/[\w-]+", Tool("lines")),
        (_IGNORE_NAMES, Tool("ignored")),
    )
)


def tool_of(path: str) -> Tool | None:
    """Return how a file is read; None for one that configures no tool that we know."""
    return next((tool for pattern, tool in _TOOLS if pattern.search(path)), None)


def read_settings(text: str, tool: Tool) -> Settings:
    """Return the settings that count.

    Raises: ValueError where the text cannot be read.
    """
    table: Any
    match tool.kind:
        case "toml":
            table = tomllib.loads(text)
        case "json":
            table = json.loads(_without_extras(text))
        case "ini":
            table = _ini(text)
        case _:
            table = parse_yaml(text)
    found: Settings = {}
    _flatten(table, "", found)
    wanted = re.compile(tool.wanted)
    return {key: value for key, value in found.items() if wanted.match(key)}


def read_lines(text: str) -> list[str]:
    """Return the lines of a file that say something, without comments at their beginning."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("#", "//", "/*", "*", "<!--"))]


def _without_extras(text: str) -> str:
    """Return JSON without comments, and without commas before a closing bracket."""
    side = read_side(text, "json")
    commas = [found.start() for found in re.finditer(r",(?=\s*[}\]])", side.code)]
    plain = list(side.text)
    for place in commas:
        plain[place] = " "
    return "".join(plain)


def _ini(text: str) -> dict[str, dict[str, Any]]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error)) from error
    return {
        section: {key: _many(value or "") for key, value in parser.items(section)}
        for section in parser.sections()
    }


def _many(value: str) -> object:
    """Return a list where a value of an INI file is one: on lines of its own, or after commas."""
    lines = [line.strip() for line in value.splitlines() if line.strip()]
    if len(lines) > 1:
        return [
            part for line in lines for part in [line.rstrip(",").strip()] if line[0] not in "#;"
        ]
    if "," in value:
        return [part.strip() for part in value.split(",") if part.strip()]
    return value.strip()


def _flatten(value: object, key: str, found: Settings) -> None:
    """Put a value under its dotted key; what stands in a list of tables becomes lists."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _flatten(inner, f"{key}.{name}" if key else str(name), found)
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, dict | list):
                part: Settings = {}
                _flatten(inner, f"{key}[]" if isinstance(inner, dict) else key, part)
                for name, one in part.items():
                    found[name] = (*_listed(found.get(name, ())), *_listed(one))
            else:
                found[key] = (*_listed(found.get(key, ())), _shown(inner))
        found.setdefault(key, ())
    else:
        found[key] = _shown(value)


def _listed(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def _shown(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value)
