"""Checks that CI runs no more, or whose failure it lets pass; files hidden from diffs. Pure."""

from __future__ import annotations

import posixpath
import re
from collections import Counter

from gitgates.weakening.finding import BYPASSED, CI, HIDDEN, Finding
from gitgates.weakening.languages import is_test_name
from gitgates.weakening.source import read_side
from gitgates.weakening.yaml import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.weakening.finding import Pair

_CI = re.compile(
    r"^\.github/(?:workflows|actions)/.+\.ya?ml$|(?:^|/)action\.ya?ml$"
    r"|^(?:\.gitlab-ci|\.travis|azure-pipelines|bitbucket-pipelines|\.drone|\.woodpecker|appveyor|"
    r"cloudbuild|\.cirrus)\.ya?ml$|^\.(?:circleci|buildkite|woodpecker|gitlab|forgejo|gitea)/.+\.ya?ml$"
    r"|^Jenkinsfile$|^\.ci/"
)
_RELAXED = re.compile(
    r"\bcontinue-on-error:\s*(?!false\b)\S|\|\|\s*(?:true|:|exit\s+0|echo\b)|\bif:\s*(?:\$\{\{\s*)?['\"]?false\b"
    r"|\ballow_failure:\s*true|\bwhen:\s*(?:never|manual)\b|\bset\s+\+e\b|--exit-zero\b|--passWithNoTests\b"
    r"|-D(?:skipTests|maven\.test\.skip)\b|--no-fail-on\w*|\bpaths-ignore:|\bfail_ci_if_error:\s*false"
)
_CHECK = re.compile(
    r"\b(?:pytest|unittest|tox|nox|ruff|mypy|pyright|flake8|pylint|bandit|eslint|tsc|jest|vitest|playwright|cypress|"
    r"mocha|biome|stylelint|clippy|nextest|vet|golangci-lint|staticcheck|rspec|rubocop|phpunit|phpstan|psalm|"
    r"ctest|gitgates|pre-commit|prek|lefthook|shellcheck|hadolint|bats|semgrep|codeql|trivy|gitleaks|zizmor|"
    r"actionlint|coverage|codecov|sonar\w*|[\w:-]*lint|[\w:-]*tests?|check|verify|typecheck|audit)(?![\w./-]*/)\b"
)
_NO_CHECK = re.compile(r"\b(?:install|apt-get|cache|mkdir|echo|cp|mv|rm)\b")
_COMMAND = re.compile(
    r"^(?:-\s+)?(?:(?:run|uses|script|command|entry|sh)\s*:\s*[|>]?[+-]?\s*)?(.*)$"
)
_KEY = re.compile(r"^(?:-\s+)?(?!run|uses|script|command|entry)[\w.-]+\s*:")
_YAML = re.compile(r"\.ya?ml$")
_LONGEST = 2000  # characters of a line; what is longer is no command that a person wrote
_ATTRIBUTE = re.compile(r"\s(?:linguist-(?:generated|vendored)(?!=false)|-diff|binary)(?:\s|=|$)")
_SCRIPT = re.compile(
    r"\.(?:sh|bash|zsh|ksh|mk|ya?ml|just|cmd|bat|ps1)$|(?:^|/)(?:Makefile|GNUmakefile|Justfile|justfile|"
    r"package\.json|Dockerfile|Taskfile|Rakefile|\.envrc|\.env)$|^\.husky/|(?:^|/)mise\.toml$"
)
_BYPASS = re.compile(
    r"--no-verify\b|\bcore\.hooksPath\b|\bHUSKY=0\b|\bLEFTHOOK=(?:0|false)\b|\bGITGATES=0\b|\bGITGATES_SKIP\s*[=:]"
    r"|\bSKIP=\S+\s+git\b|\bgit\s+commit\b[^\n;&|]*\s-\w*n\w*\b|\bPRE_COMMIT_ALLOW_NO_CONFIG\b"
)


def find_in_ci(pairs: tuple[Pair, ...]) -> list[Finding]:
    """Return what CI has stopped to hold, and what keeps hooks or diffs from seeing a change."""
    ours = [pair for pair in pairs if _CI.search(pair.path) or _CI.search(pair.old_path)]
    found = [*_steps(ours)]
    for pair in ours:
        found += _new_lines(pair, _RELAXED, CI)
        found += _triggers(pair)
    for pair in pairs:
        if posixpath.basename(pair.path) == ".gitattributes":
            found += _new_lines(pair, _ATTRIBUTE, HIDDEN)
        elif _SCRIPT.search(pair.path) and not is_test_name(pair.path):
            found += _new_lines(pair, _BYPASS, BYPASSED)
    return found


def _lines(content: bytes | None) -> list[str]:
    """Return the lines of a file without comments."""
    if content is None:
        return []
    text = read_side(content.decode("utf-8", "replace"), "hash").text
    return [" ".join(line[:_LONGEST].split()) for line in text.split("\n")]


def _new_lines(pair: Pair, pattern: re.Pattern[str], what: str) -> Iterable[Finding]:
    """Yield lines with a match that were not there, nor another one in their place."""
    old = Counter(line for line in _lines(pair.before) if pattern.search(line))
    numbered = [
        (number, line)
        for number, line in enumerate(_lines(pair.after), start=1)
        if pattern.search(line)
    ]
    gone = sum((old - Counter(line for _, line in numbered)).values())
    for number, line in numbered:
        if old[line]:
            old[line] -= 1
        elif gone:
            gone -= 1
        else:
            yield Finding(pair.path, what, line, number)


def _steps(pairs: list[Pair]) -> Iterable[Finding]:
    """Yield commands that check, and that CI runs no more, or no more like that."""
    before = [Counter(_commands(pair.before)) for pair in pairs]
    after = [Counter(_commands(pair.after)) for pair in pairs]
    gone_all = sum(before, Counter[str]()) - sum(after, Counter[str]())
    for pair, old, new in zip(pairs, before, after, strict=True):
        gone = (old - new) & gone_all
        gone_all.subtract(gone)
        added = list((new - old).elements())
        if pair.after is None:
            if gone:
                yield Finding(pair.path, CI, f"deleted, and with it: {', '.join(list(gone)[:3])}")
            continue
        for command in gone.elements():
            alike = next((one for one in added if one.split()[:1] == command.split()[:1]), "")
            if alike:
                added.remove(alike)
                if _RELAXED.search(alike) and command in alike:
                    continue  # the line itself is a finding
            yield Finding(
                pair.path, CI, f"`{command}` is now `{alike}`" if alike else f"gone: `{command}`"
            )


def _commands(content: bytes | None) -> Iterable[str]:
    for line in _lines(content):
        if _KEY.match(line) or _NO_CHECK.search(line):
            continue
        match = _COMMAND.match(line)
        command = match[1].strip() if match else ""
        is_action = re.match(r"(?:-\s+)?uses\s*:", line)
        command = command.partition("@")[0] if is_action else command
        if _CHECK.search(command):
            yield command


def _triggers(pair: Pair) -> Iterable[Finding]:
    """Yield events that a workflow hears of no more."""
    if pair.before is None or pair.after is None or not _YAML.search(pair.path):
        return
    if pair.before == pair.after:
        return
    try:
        before = _events(pair.before)
    except ValueError:
        before = None
    try:
        after = _events(pair.after)
    except ValueError as error:
        yield Finding(pair.path, CI, f"cannot be read as YAML, and was not compared: {error}")
        return
    if before is None:
        yield Finding(pair.path, CI, "could not be read as YAML before, and was not compared")
        return
    for event in sorted(before - after):
        yield Finding(pair.path, CI, f"does not run on `{event}` any more")


def _events(content: bytes) -> set[str]:
    table = parse(content.decode("utf-8", "replace"))
    events = table.get("on", "") if isinstance(table, dict) else ""
    if isinstance(events, str):
        return {events} - {""}
    return {one for one in events if isinstance(one, str)}
