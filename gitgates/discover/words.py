"""The words that projects use for their tasks, and the programs that they run. Data."""

from __future__ import annotations

import re

from gitgates.record import Record


class Word(Record):
    """One kind of gate."""

    name: str  # the gate's
    spellings: tuple[str, ...]  # best first
    description: str
    timeout: str
    fast: bool = False  # before each commit, too; the others before a push only


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split(", "))


# Of two spellings the one that only looks is better than the one that rewrites.
WORDS: tuple[Word, ...] = (
    Word(
        "format",
        (
            *("format-check", "formatcheck", "check-format", "checkformat", "format-ci"),
            *("fmt-check", "fmtcheck", "check-fmt", "prettier-check", "check-prettier"),
            *("check-formatting", "check-style", "format", "fmt", "formatting"),
        ),
        "Formatting",
        "1m",
        fast=True,
    ),
    Word(
        "lint",
        (
            *("lint-check", "check-lint", "lint", "lints", "linting", "lint-ci", "linters"),
            *("style", "codestyle", "code-style", "static-analysis", "eslint", "clippy"),
            *("flake8", "pylint", "golangci-lint"),
        ),
        "Linting",
        "2m",
        fast=True,
    ),
    Word(
        "typecheck",
        (
            *("typecheck", "type-check", "check-types", "types", "typing", "type", "typechecking"),
            *("type-checking", "types-check", "mypy", "pyright", "tsc"),
        ),
        "Types",
        "3m",
        fast=True,
    ),
    Word("check", ("check", "checks", "verify"), "The project's own checks", "5m", fast=True),
    Word(
        "test",
        (
            *("test", "tests", "test-run", "test-once", "run-tests", "test-all", "test-unit"),
            *("unit-test", "unit-tests", "unit", "test-ci", "spec", "runtest", "runtests"),
        ),
        "Tests",
        "10m",
    ),
    Word("build", ("build",), "Build", "10m"),
)

# kind → the programs of that kind, as `program_of` names them
KINDS: dict[str, frozenset[str]] = {
    kind: _set(programs)
    for kind, programs in {
        "format": "black, ruff format, isort, yapf, autopep8, autoflake, pyupgrade, blacken-docs, "
        "gofmt, go fmt, gofumpt, goimports, golangci-lint fmt, cargo fmt, rustfmt, prettier, "
        "oxfmt, dprint, biome format, deno fmt, clang-format, shfmt, stylua, mix format",
        "lint": "ruff check, flake8, pylint, hatch fmt, codespell, cargo clippy, go vet, "
        "golangci-lint run, staticcheck, eslint, oxlint, xo, standard, biome check, biome lint, "
        "biome ci, deno lint, stylelint, markdownlint, shellcheck, yamllint, rubocop, hadolint, "
        "actionlint, luacheck",
        "typecheck": "mypy, pyright, basedpyright, ty check, pyrefly check, tsc, vue-tsc, "
        "svelte-check, tsd, deno check",
        "test": "pytest, unittest, coverage run, hatch test, tox, nox, cargo test, cargo nextest, "
        "go test, gotestsum, jest, vitest, mocha, ava, c8, nyc, deno test, bun test, ctest, bats, "
        "make check, make test, rspec, dotnet test, mvn test, mvn verify, swift test, mix test, "
        "meson test, sbt test, cabal test, stack test, phpunit",
    }.items()
}

PYTHON = "python"
JAVASCRIPT = "javascript"
_LANGUAGES = {
    PYTHON: "black ruff isort flake8 pylint mypy pyright basedpyright ty pytest unittest coverage",
    JAVASCRIPT: "prettier eslint tsc vue-tsc vitest jest mocha biome oxlint oxfmt xo ava",
    "go": "go gofmt gofumpt golangci-lint gotestsum staticcheck",
    "rust": "cargo rustfmt",
}
_LANGUAGE_OF = {name: scope for scope, names in _LANGUAGES.items() for name in names.split()}
# Who runs the first has run the second.
IMPLIES = {"cargo clippy": "cargo check", "cargo nextest": "cargo test", "coverage run": "pytest"}

_SEPARATOR = re.compile(r"[:_.\s]+")
_CHECK_MODE = re.compile(
    r"--check(?:-only)?\b|--diff\b|--list-different\b|--dry-run\b|--verify-no-changes\b|gofmt -l\b"
    r"|prettier -[cl]\b|\bcheck[-:]?f|f(?:orma|m)t[-_:]?check|--set-exit-if-changed"
    r"|pre[-_]commit"
)
_FIXES = re.compile(
    r"--fix(?![\w-])|--write\b|--autocorrect\b|\brubocop (?:.* )?-[aA]\b|--in-place"
)
# What never ends by itself, or talks to a person: as a program or its first argument.
_ENDLESS = _set(
    "watch, watchexec, watchfiles, watchman, nodemon, entr, ptw, pytest-watch, serve, server, dev, "
    "start, live-server, http-server, http.server, browser-sync, storybook, webpack-dev-server"
)
_ENDLESS_OPTION = re.compile(
    r"\s(?:--watch(?:-all|All)?(?!=false)|--ui|--reload|--inspect(?:-brk)?|--open)(?=\s|$)"
    r"|\btsc (?:.* )?-w\b|\bread -p\b|\bdocker (?:run|exec)\b.* (?:-it|-ti|--tty)\b"
)
_LINES = re.compile(r"&&|\|\||[;\n]|(?<!&)&(?!&)")
_GLUE = re.compile(
    r"(?:set|cd|echo|printf|export|true|exit|if|then|else|elif|fi|for|while|do|done|mkdir|rm|\[|test"
    r"|pip|uv sync|uv pip|npm ci|npm install|sleep|local|source|\.|shopt|trap|unset)\b|[#}{)\[.]|$"
)
_PREFIX = re.compile(
    r"(?:[@+-]+(?=[\w.$])|[A-Za-z_]\w*=\S*\s+|\$[({]\w+[)}]/?"
    r"|(?:exec|time|command|env|cross-env)\s+"
    r"|(?:uv|poetry|pdm|pipenv|rye|hatch)\s+run\s+(?:--?[\w-]+(?:[= ](?!\w+ \w)\S+)?\s+)*"
    r"|(?:npx|bunx|pnpx|uvx|pipx run)\s+(?:--?[\w-]+\s+)*"
    r"|(?:pnpm|npm|yarn|bundle)\s+exec\s+(?:--\s+)?"
    r"|python[\d.]*\s+(?:-[A-Z]\s+\w+\s+)?-m\s+|\S*(?:/bin/|\.bin/))"
)
# Programs that do different things by their first argument.
_TWO_WORDS = _set(
    "ruff, ty, pyrefly, coverage, nox, tox, hatch, uv, go, golangci-lint, cargo, biome, npm, "
    "pnpm, yarn, bun, deno, make, just, task, mise, docker, dotnet, cabal, stack, "
    "mvn, swift, mix, meson, sbt, terraform"
)
_TESTS = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, KINDS['test']))})(?![\w-])")
_INTERPRETERS = _set("node, python, python3, sh, bash, ruby, perl")


def spell(name: str) -> str:
    """Return a task's name in one spelling: lower case, joined by `-`."""
    return _SEPARATOR.sub("-", name.strip().lower())


def find_word(name: str) -> Word | None:
    """Return the word that a task's name spells."""
    plain = spell(name)
    return next((word for word in WORDS if plain in word.spellings), None)


def kind_of(program: str) -> str:
    """Return what kind of gate a program is for; empty if that is not known."""
    return next((kind for kind, programs in KINDS.items() if program in programs), "")


def language_of(program: str) -> str:
    """Return the language that a program is about; empty if that is not known."""
    return _LANGUAGE_OF.get(program.partition(" ")[0], "")


def lines_of(body: str) -> list[str]:
    """Return the commands of a shell text, without what only holds them together."""
    lines = (line.strip() for line in _LINES.split(body.replace("\\\n", " ")))
    return [line for line in lines if line and not _GLUE.match(line)]


def program_of(line: str) -> str:
    """Return the program that a command runs, with its first argument where that matters."""
    if "|" in line or "<" in line:
        return line  # several programs, known by their text only
    while found := _PREFIX.match(line):
        line = line[found.end() :]
    words = [word for word in line.split() if not word.startswith("+")] or [line]
    first, second = words[0], " ".join(words[1:2])
    if first == "ruff" and second not in ("format", "check"):
        second = "check"
    if first in ("prek", "pre_commit"):
        first = "pre-commit"
    if first in _INTERPRETERS:
        return " ".join(words)  # known by the script, and by what it is asked for
    return f"{first} {second}".rstrip() if first in _TWO_WORDS else first


def is_endless(line: str) -> bool:
    """Return whether a command watches, serves, or asks a person."""
    while found := _PREFIX.match(line):
        line = line[found.end() :]
    return bool(_ENDLESS & set(line.split()[:2]) or _ENDLESS_OPTION.search(line))


def is_fixing(line: str) -> bool:
    """Return whether a command rewrites files, as far as its words show."""
    if _FIXES.search(line):
        return True
    program = program_of(line)
    return (kind_of(program) == "format" or program == "hatch fmt") and not _CHECK_MODE.search(line)


def names_tests(text: str) -> bool:
    """Return whether a text has the name of a program in it that runs tests."""
    return bool(_TESTS.search(text))


def is_check_mode(text: str) -> bool:
    """Return whether words say that something only looks."""
    return "check" in spell(text) or bool(_CHECK_MODE.search(text))
