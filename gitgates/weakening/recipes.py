"""Checks that a Makefile, a justfile or a script runs no more, or whose failure it ignores. Pure.

Programs are counted, all over the change: one that another recipe runs now has only moved, and one
in whose place another check has come was replaced.
"""

from __future__ import annotations

import re
from collections import Counter

from gitgates.record import Record
from gitgates.weakening.finding import RECIPE, Finding
from gitgates.weakening.languages import is_test_name
from gitgates.weakening.source import read_side

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.weakening.finding import Pair

_MAKE = re.compile(r"(?:^|/)(?:(?:GNUm|[Mm])akefile|\.?[Jj]ustfile)$|\.(?:mk|make|just)$")
_OTHER = re.compile(
    r"(?:^|/)(?:Taskfile\.ya?ml|Rakefile)$"
    r"|(?:^|/)(?:\.?ci|\.github|\.gitlab|\.circleci|\.buildkite|scripts?|tools|hack|dev|bin)/"
    r"(?:[^/]+/)*[^/]+\.(?:sh|bash|zsh|ksh)$"
    r"|(?:^|/)(?:ci|\.ci|scripts?|bin|tools)/(?:test|check|lint|ci|verify|precommit|pre-commit|cibuild)$"
    r"|(?:^|/)(?:run[-_]?)?(?:tests?|checks?|lint|ci|verify)\.(?:sh|bash)$"
)
# Where a check may have moved to, or from: their own findings are others'.
_BESIDE = re.compile(
    r"^\.github/|(?:^|/)(?:\.gitlab-ci|\.travis|azure-pipelines)\.ya?ml$|^Jenkinsfile$|^\.ci/|^\.circleci/"
    r"|(?:^|/)(?:package\.json|composer\.json|tox\.ini|noxfile\.py|pyproject\.toml|gitgates\.toml|"
    r"\.pre-commit-config\.ya?ml|\.?lefthook\.ya?ml|mise\.toml)$|^\.husky/|\.(?:sh|bash)$"
)
_RUN = r"(?:\s+run)?(?:\s+-{1,2}[\w=-]+)*\s+"
_TOOL = re.compile(
    r"(?<![\w.-])(?:"
    r"pytest|py\.test|unittest|tox|nox|ruff|mypy|basedpyright|pyright|flake8|pylint|bandit|pyrefly|"
    r"eslint|tsc|jest|vitest|mocha|ava|playwright|cypress|biome|oxlint|stylelint|golangci-lint|"
    r"staticcheck|govulncheck|rspec|rubocop|phpunit|phpstan|psalm|ctest|gitgates|pre-commit|prek|lefthook|"
    r"shellcheck|hadolint|yamllint|actionlint|zizmor|semgrep|gitleaks|trivy|bats|lint-imports|vulture|"
    rf"(?:npm|pnpm|yarn|bun){_RUN}[\w:-]*(?:test|lint|check|typecheck|verify)[\w:-]*|npm\s+t\b|"
    r"go\s+(?:test|vet)|cargo\s+(?:\+\w+\s+)?(?:test|clippy|nextest|check|audit|deny|fmt\s+--check)|"
    r"(?:black|isort|gofmt\s+-l|prettier)\b(?=.*--(?:check|diff)\b)|"
    r"dotnet\s+test|mix\s+test|deno\s+(?:test|lint|check)|swift\s+test|bazel\s+test|"
    r"(?:mvnw?|gradlew?)\b(?=.*\b(?:test|check|verify)\b)"
    r")(?![\w./-]*/)(?![\w-])"
)
_NO_CHECK = re.compile(
    r"\b(?:install|add|uninstall|apt-get|brew|cache|mkdir|echo|printf|cp|mv|rm|which|command\s+-v|type)\b"
    r"|--(?:version|help|fix|write)\b|\bruff\s+format\b(?!.*--(?:check|diff))"
)
_GENERIC = re.compile(r"(?:^|[\s/:-])(?:tests?|checks?|lint|verify|ci)\b")
_RELAXED = re.compile(
    r"(?:\|\||;)\s*(?:true|:|exit\s+0|echo\b|/bin/true)|--exit-zero\b|--passWithNoTests\b"
)
_DASH = re.compile(r"[@+]*-[@+-]*\s*")
_PREFIX = re.compile(r"^[@+-]+\s*")
_HELD = re.compile(
    r"--(?:cov-fail-under|fail-under|max-warnings|cov|strict[\w-]*|check|locked|Werror)"
    r"(?:[= ][\w.]+)?|-W\s*error\b|-Werror\b|-D\s*warnings\b|(?<=\s)-race\b"
)
_LESS = re.compile(
    r"--(?:ignore|deselect|exclude|skip|testPathIgnorePatterns|extend-ignore|disable)\b\S*"
    r"|(?<=\s)-[km](?=\s+[\"'\w])(?!\s+(?:pytest|unittest|mypy|ruff|pip)\b)|(?<=\s)-short\b"
)
_ERREXIT = re.compile(r"^set\s+(?:-o\s+errexit|-\w*e)")
_OFF = re.compile(r"^set\s+\+e\b|^\.IGNORE\b|^MAKEFLAGS\s*\+?=.*(?:\s-i\b|--ignore-errors)")
_LONGEST = 2000


class _Step(Record):
    """One line that runs a check."""

    program: str
    line: str
    number: int
    relaxed: bool


class _Recipes(Record):
    """One side of a file."""

    steps: tuple[_Step, ...] = ()
    stops: int = 0  # how often it says that a failure ends it
    goes_on: tuple[tuple[int, str], ...] = ()  # lines that say that none does
    others: int = 0  # what else looks as if it checked


def find_in_recipes(pairs: tuple[Pair, ...]) -> list[Finding]:
    """Return which checks recipes have lost, and which may fail now without an effect."""
    ours = [pair for pair in pairs if _is_ours(pair.path) or _is_ours(pair.old_path)]
    if not ours:
        return []
    stock = _moved(pairs)
    found: list[Finding] = []
    for pair in ours:
        before, after = _read(pair.before, pair.old_path), _read(pair.after, pair.path)
        found += _compare(pair, (before, after), stock)
    return found


def is_recipe(path: str) -> bool:
    """Tell whether a file holds recipes."""
    return bool(_MAKE.search(path) or _OTHER.search(path))


def _is_ours(path: str) -> bool:
    # What stands in the folders of CI is CI's.
    return is_recipe(path) and not path.startswith(".ci/") and not is_test_name(path)


def _moved(pairs: tuple[Pair, ...]) -> Counter[str]:
    """Return how many runs of each program are gone, all over the change."""
    total: Counter[str] = Counter()
    for pair in pairs:
        for content, path, sign in ((pair.before, pair.old_path, 1), (pair.after, pair.path, -1)):
            if is_recipe(path) or _BESIDE.search(path):
                for step in _read(content, path).steps:
                    total[step.program] += 0 if step.relaxed else sign
    return total


def _read(content: bytes | None, path: str) -> _Recipes:
    if content is None:
        return _Recipes()
    is_make = bool(_MAKE.search(path))
    text = read_side(content.decode("utf-8", "replace"), "hash").text
    lines = [" ".join(line[:_LONGEST].split()) for line in text.split("\n")]
    steps = []
    others = 0
    for number, line in enumerate(lines, start=1):
        command = _PREFIX.sub("", line) if is_make else line
        if _NO_CHECK.search(re.split(r"\|\||;", command)[0]):
            continue  # whatever is run when it fails
        if found := _TOOL.search(command):
            is_relaxed = bool(_RELAXED.search(command[found.start() :]))
            is_relaxed |= is_make and bool(_DASH.match(line))
            steps.append(_Step(" ".join(found.group().split()), line, number, is_relaxed))
        elif _GENERIC.search(command) and not command.endswith(":"):
            others += 1
    return _Recipes(
        steps=tuple(steps),
        stops=sum(1 for line in lines if _ERREXIT.match(line)),
        goes_on=tuple((n, line) for n, line in enumerate(lines, start=1) if _OFF.match(line)),
        others=others,
    )


def _compare(
    pair: Pair, sides: tuple[_Recipes, _Recipes], stock: Counter[str]
) -> Iterable[Finding]:
    before, after = sides
    was = Counter(step.program for step in before.steps if not step.relaxed)
    now = Counter(step.program for step in after.steps if not step.relaxed)
    gone, came = was - now, now - was
    replaced = came.total() + max(0, after.others - before.others)
    old_lines = Counter(step.line for step in before.steps)
    for step in after.steps:
        if step.relaxed and not old_lines[step.line] and gone[step.program]:
            gone[step.program] -= 1
            stock[step.program] -= 1
            yield Finding(pair.path, RECIPE, step.line, step.number)
    for program in sorted(gone):
        count = min(gone[program], stock[program])
        for step in [one for one in before.steps if one.program == program][: max(0, count)]:
            if replaced > 0:
                replaced -= 1
                continue
            stock[program] -= 1
            yield Finding(pair.path, RECIPE, f"gone: `{_PREFIX.sub('', step.line)}`")
    yield from _less(pair, before, after)
    if after.steps and before.stops > after.stops:
        yield Finding(pair.path, RECIPE, "`set -e` is gone: a failure ends it no more")
    for number, line in after.goes_on:
        if after.steps and line not in [one for _, one in before.goes_on]:
            yield Finding(pair.path, RECIPE, line, number)


def _less(pair: Pair, before: _Recipes, after: _Recipes) -> Iterable[Finding]:
    """Yield checks that run with less: where one line of a program has taken another's place."""
    for program in sorted({step.program for step in before.steps}):
        old = [step for step in before.steps if step.program == program]
        new = [step for step in after.steps if step.program == program]
        kept = {step.line for step in old} & {step.line for step in new}
        lost = [step for step in old if step.line not in kept]
        came = [step for step in new if step.line not in kept and not step.relaxed]
        if len(lost) != 1 or len(came) != 1:
            continue
        one, other = lost[0], came[0]
        held = set(_HELD.findall(one.line)) - set(_HELD.findall(other.line))
        if held or set(_LESS.findall(other.line)) - set(_LESS.findall(one.line)):
            text = f"`{_PREFIX.sub('', one.line)}` is now `{_PREFIX.sub('', other.line)}`"
            yield Finding(pair.path, RECIPE, text, other.number)
