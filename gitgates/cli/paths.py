"""The options that say which paths a verb is about, and what they mean."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from gitgates.errors import UsageError
from gitgates.git import paths as facts
from gitgates.git.repo import Repo
from gitgates.record import Record

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


_OPTIONS = (
    click.option("--staged", is_flag=True, help="What a commit would be about."),
    click.option("--all-files", is_flag=True, help="Every tracked file."),
    click.option(
        "--files",
        multiple=True,
        metavar="PATH",
        help="This file, or what git knows below this folder; again for more.",
    ),
    click.option(
        "--files0-from",
        metavar="FILE",
        default="",
        help="The paths in this file, each ended by a NUL byte; - is standard input.",
    ),
    click.option("--from-ref", metavar="A", default="", help="What differs from commit A …"),
    click.option("--to-ref", metavar="B", default="", help="… in commit B (default HEAD)."),
)


class PathSelection(Record):
    """What the caller said of the paths. Nothing at all: what has changed against HEAD."""

    staged: bool = False
    all_files: bool = False
    files: tuple[str, ...] = ()
    files0_from: str = ""
    from_ref: str = ""
    to_ref: str = ""


class PathCommand(click.Command):
    """A verb whose `--files` takes every argument up to the next option, as pre-commit's does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat `--files` before each of its paths, which is how click takes several."""
        return super().parse_args(ctx, list(_repeat_files(args)))


def _repeat_files(args: list[str]) -> Iterator[str]:
    taking = False
    for position, arg in enumerate(args):
        if arg == "--":
            yield from args[position:]
            return
        if arg == "--files":
            taking = True
        elif taking and not arg.startswith("-"):
            yield f"--files={arg}"
        else:
            taking = False
            yield arg


def path_options(function: Decorated) -> Decorated:
    """Add the options to a verb."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def select_paths(selection: PathSelection, repo: Repo) -> facts.Paths:
    """Return the paths, relative to the root, each once, sorted; and those that are deleted.

    Raises: UsageError where options contradict each other or a path is not there.
    """
    from_ref, to_ref = selection.from_ref, selection.to_ref
    asked = {
        "--staged": selection.staged,
        "--all-files": selection.all_files,
        "--files": selection.files,
        "--files0-from": selection.files0_from,
        "--from-ref": from_ref or to_ref,
    }
    match [name for name, value in asked.items() if value]:
        case []:
            return facts.changed_paths(repo.git)
        case ["--staged"]:
            return facts.staged_paths(repo, merging=False)
        case ["--all-files"]:
            return facts.tracked_paths(repo.git), ()
        case ["--files"]:
            return _named(selection.files, repo), ()
        case ["--files0-from"]:
            return _named(_listed(selection.files0_from), repo), ()
        case ["--from-ref"] if from_ref:
            return facts.range_paths(repo.git, from_ref, to_ref or "HEAD")
        case ["--from-ref"]:
            raise UsageError("--to-ref needs --from-ref", "Say both ends: --from-ref A --to-ref B")
        case given:
            raise UsageError(f"{' and '.join(given)} cannot be given together", "Choose one.")


def _listed(source: str) -> tuple[str, ...]:
    try:
        if source == "-":
            content = sys.stdin.buffer.read()
        else:
            with open(source, "rb") as file:
                content = file.read()
    except OSError as error:
        raise UsageError(f"--files0-from {source}: cannot be read: {error.strerror}") from error
    if content and b"\0" not in content:
        hint = "Make the list with `git ls-files -z` or `find … -print0`."
        raise UsageError(f"--files0-from {source}: has no NUL byte between the paths", hint)
    return tuple(os.fsdecode(name) for name in content.split(b"\0") if name)


def _named(names: tuple[str, ...], repo: Repo) -> tuple[str, ...]:
    found: set[str] = set()
    for name in names:
        # Without links in its folders; a link at its end stays what it is.
        folder, last = os.path.split(name.rstrip("/") or name)
        path_abs = os.path.realpath(name)
        if last not in ("", ".", ".."):
            path_abs = os.path.join(os.path.realpath(folder or "."), last)
        path = os.path.relpath(path_abs, os.path.realpath(repo.root_abs))
        if path == ".." or path.startswith("../"):
            raise UsageError(f"`{name}` lies outside of the repository {repo.root_abs}")
        if os.path.isdir(path_abs):
            listed = repo.git.names("ls-files", "-z", "-c", "-o", "--exclude-standard", "--", path)
            found |= {one for one in listed if os.path.isfile(os.path.join(repo.root_abs, one))}
        elif os.path.lexists(path_abs):
            found.add(path)
        else:
            raise UsageError(f"no such file: `{name}`", "Paths are relative to the current folder.")
    return tuple(sorted(found))
