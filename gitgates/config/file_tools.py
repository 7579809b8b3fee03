"""Commands that are known to look at files only, and what a reused pass of them depends on.

`reads`: what they look at outside of the repository: `~/NAME`, or `../NAME` in the folders above
its root. `configuration`: where the verdict on a file depends on that file and its
configuration alone, the patterns of the latter.
"""

from __future__ import annotations

import os
import shlex

from gitgates.core.record import Record
from gitgates.core.types import AUTO, BY_FILE, Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class FileTool(Record):
    """A command that looks at files only."""

    words: str  # the program, and the first argument where that matters
    configuration: tuple[str, ...] = ()  # of one that checks each file on its own
    reads: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()  # that it heeds; `NAME*`: all that begin so
    quick: bool = False  # takes some 10 ms for a few files: no more than to look at all files


_RUFF = {
    "configuration": ("*.toml", ".gitignore"),  # `extend` names any file
    "reads": (
        *("../ruff.toml", "../.ruff.toml", "../pyproject.toml", "../.ignore"),
        *("~/.config/git/ignore", "~/.gitignore", "~/.gitignore_global"),
        *("~/.config/ruff/ruff.toml", "~/.config/ruff/.ruff.toml", "~/.config/ruff/pyproject.toml"),
    ),
    "variables": ("RUFF_*", "XDG_CONFIG_HOME"),
}
_BLACK = ("../pyproject.toml", "~/.config/black")
_FLAKE8 = ("../setup.cfg", "../tox.ini", "../.flake8")
_ISORT = ("../pyproject.toml", "../.isort.cfg", "../setup.cfg", "../tox.ini", "../.editorconfig")
_MYPY = (
    *("../mypy.ini", "../.mypy.ini", "../pyproject.toml", "../setup.cfg"),
    *("~/.config/mypy/config", "~/.mypy.ini"),
)
_PYRIGHT = ("../pyrightconfig.json", "../pyproject.toml")
_SCRIPTS = ("js", "mjs", "cjs", "ts", "mts", "cts")
_PRETTIER = tuple(
    f"../{name}"
    for name in (
        *(".prettierrc", "package.json", "package.yaml", ".editorconfig"),
        *(f".prettierrc.{end}" for end in ("json", "yml", "yaml", "json5", "toml", *_SCRIPTS)),
        *(f"prettier.config.{end}" for end in _SCRIPTS),
    )
)
_ESLINT = tuple(
    f"../{name}"
    for name in (
        *(".eslintrc", "package.json"),
        *(f".eslintrc.{end}" for end in ("js", "cjs", "json", "yml", "yaml")),
        *(f"eslint.config.{end}" for end in _SCRIPTS),
    )
)
_TSC = ("../tsconfig.json", "../package.json")
_RUSTFMT = (
    *("../rustfmt.toml", "../.rustfmt.toml", "../rust-toolchain.toml", "../rust-toolchain"),
    *("~/rustfmt.toml", "~/.rustfmt.toml"),
    *("~/.config/rustfmt/rustfmt.toml", "~/.config/rustfmt/.rustfmt.toml"),
)
_SHELLCHECK = (
    *("../.shellcheckrc", "../shellcheckrc", "~/.shellcheckrc", "~/shellcheckrc"),
    "~/.config/shellcheckrc",
)
_YAMLLINT = (
    *("../.yamllint", "../.yamllint.yaml", "../.yamllint.yml"),
    "~/.config/yamllint/config",
)
_EDITORCONFIG = ("../.editorconfig",)

TOOLS = (
    FileTool(words="ruff check", quick=True, **_RUFF),
    FileTool(words="ruff format", quick=True, **_RUFF),
    # Which configuration it takes depends on all the paths that are passed.
    FileTool(words="black", reads=_BLACK, variables=("BLACK_*",)),
    FileTool(words="isort", reads=(*_ISORT, "~/.isort.cfg")),  # which looks for local packages
    FileTool(words="flake8", reads=_FLAKE8),  # which may have plugins in the repository
    FileTool(words="mypy", reads=_MYPY, variables=("MYPY*", "XDG_CONFIG_HOME")),
    FileTool(words="pyright", reads=_PYRIGHT, variables=("PYRIGHT_*",)),
    FileTool(words="basedpyright", reads=_PYRIGHT, variables=("PYRIGHT_*", "BASEDPYRIGHT_*")),
    FileTool(words="eslint", reads=(*_ESLINT, "~/.eslintrc"), variables=("ESLINT_*",)),
    FileTool(words="prettier", reads=_PRETTIER),  # whose configuration imports any file
    FileTool(words="tsc --noEmit", reads=_TSC),  # without that, others need what it writes
    FileTool(words="gofmt", configuration=("go.mod",), quick=True),
    FileTool(words="cargo fmt", reads=(*_RUSTFMT, "../Cargo.toml")),
    FileTool(words="rustfmt", reads=_RUSTFMT, quick=True),
    FileTool(words="shfmt", configuration=(".editorconfig",), reads=_EDITORCONFIG, quick=True),
    FileTool(words="shellcheck", reads=_SHELLCHECK, variables=("SHELLCHECK_OPTS",)),
    FileTool(words="yamllint", reads=_YAMLLINT, variables=("YAMLLINT_*",)),  # with `extends`
)
_BY_WORDS = {tool.words: tool for tool in TOOLS}
# What may stand before a program.
_LAUNCHERS = (
    *("uv run", "poetry run", "pdm run", "python -m", "python3 -m"),
    *("npx", "bunx", "pnpm exec", "yarn exec"),
)
# A shell does more with these than start one program; a path could lead out of the repository.
_NOT_PLAIN = frozenset("$`(){}*?<>|&;#~!\n\\")
_DERIVED = ("inputs", "reads", "env_inputs")
_WATCHES = ("-w", "--watch", "--watchAll", "-W")
# They write a file for others, which may be one that git ignores.
_REPORTS = ("-o", "--output-file", "--junit-xml", "--tee")


def file_tool(command: str | tuple[str, ...] | None) -> FileTool | None:
    """Return what is known of a command; None if it may look at something else than files."""
    if command is None or (isinstance(command, str) and set(command) & _NOT_PLAIN):
        return None
    try:
        words = shlex.split(command) if isinstance(command, str) else [*command]
    except ValueError:
        return None
    for launcher in _LAUNCHERS:
        head = launcher.split()
        if words[: len(head)] == head:
            words = words[len(head) :]
            break
    if not words or words[0].startswith("-"):
        return None
    name, rest = os.path.basename(words[0]), words[1:]
    if any(word in _WATCHES or _writes_report(word) or _leads_out(word) for word in rest):
        return None
    heads = [*rest[:1], *(word for word in rest if word.startswith("--")), ""]
    return next(filter(None, (_BY_WORDS.get(f"{name} {head}".rstrip()) for head in heads)), None)


def with_defaults(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a gate, with what is known of its command where nothing is written."""
    command, asked = fields.get("command"), fields.get("reuse", AUTO)
    tool = file_tool(command) if asked else None
    if tool is None:
        return fields
    by_file = tool.configuration if fields.get("pass_files") else ()
    known = {
        "inputs": (*by_file, *_named_files(command)) if by_file and command else (),
        "reads": tool.reads,
        "env_inputs": tool.variables,
    }
    if asked == AUTO and not tool.quick:
        asked = True
    return {**known, **fields, "reuse": BY_FILE if by_file and asked is True else asked}


def without_defaults(gate: Gate) -> dict[str, Any]:
    """Return the fields of a gate, but for what is known of its command as if it were not there."""
    fields = gate._asdict()
    written = {"command": gate.command, "pass_files": gate.pass_files, "reuse": gate.reuse}
    known = with_defaults(written)
    unset = Gate(name=gate.name)._asdict()
    return {
        name: unset[name] if name in _DERIVED and known.get(name) == value else value
        for name, value in fields.items()
    }


def _named_files(command: str | tuple[str, ...]) -> Iterator[str]:
    """Yield patterns of the files that arguments may name, such as `lint.toml` of `--config`."""
    words = shlex.split(command) if isinstance(command, str) else command
    for word in words[1:]:
        # Also of `--config=lint.toml` and `-clint.toml`.
        for name in (word, word.partition("=")[2], word[2:] if word[:1] == "-" else ""):
            path = os.path.normpath(name).strip("/")
            if name and not name.startswith("-") and path != ".":
                yield "**/" + "".join(f"\\{c}" if c in "*?[\\" else c for c in path)


def _leads_out(word: str) -> bool:
    """Return whether an argument may name something outside of the repository."""
    value = word[2:] if word[:1] == "-" else word  # of `-c/etc/NAME`
    return ".." in word or value.startswith("/") or word.partition("=")[2].startswith("/")


def _writes_report(word: str) -> bool:
    option = word.partition("=")[0]
    return option in _REPORTS or (option.startswith("--") and option.endswith("-report"))
