"""The files of a review beside an agent's hooks: written, renewed, taken out, told of."""

from __future__ import annotations

import os

import click

from gitgates.install import review_files
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.install.review_files import File, Found
    from gitgates.types import Config

_LEFT = "has been changed since we wrote it, and is left as it is"
_TOLD = {
    review_files.MISSING: "written",
    review_files.OLD: "brought up to date",
    review_files.CURRENT: "is there already",
    review_files.EDITED: _LEFT,
    review_files.FOREIGN: "is there, not from us, and is used as it is",
    review_files.DANGLING: "is a link to what is not there, and is left as it is",
}


class Task(Record):
    """What is to be done in one folder of settings."""

    folder_abs: str
    files: tuple[File, ...]
    found: tuple[Found, ...]
    remarks: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to do, and nothing to tell of."""
        return not (self.found or self.remarks)


def look(config: Config, folder_abs: str, show: Callable[[str], str]) -> Task:
    """Return what is to be done for a configuration; `show` names a path for people.

    Raises: ConfigError where a file in the place of ours cannot be read.
    """
    files = review_files.wanted(config)
    if not files:
        return Task(folder_abs, (), review_files.look(folder_abs, ()))
    reviewer = config.review.reviewer
    remarks: tuple[str, ...] = ()
    if not review_files.may_define(reviewer):
        remark = (
            f"gitgates: no file is written for the reviewer `{reviewer}`: a plugin, or Claude Code "
            "itself, is to have it"
        )
        remarks = (remark,)
    theirs = review_files.agents_in(folder_abs).get(reviewer)
    own = os.path.join(review_files.AGENTS, f"{reviewer}.md")
    if theirs and theirs != own:
        files = tuple(file for file in files if file.path != own)
        path = show(os.path.join(folder_abs, theirs))
        remarks = (f"{path}: defines the agent `{reviewer}`, and is used as it is",)
    return Task(folder_abs, files, review_files.look(folder_abs, files), remarks)


def show_all(task: Task, show: Callable[[str], str]) -> None:
    """Print each file as it would be."""
    for file in task.files:
        click.echo(f"\n{show(os.path.join(task.folder_abs, file.path))}:\n\n{file.text}", nl=False)


def write(task: Task, show: Callable[[str], str]) -> None:
    """Write what is missing or no longer right, take out what is not wanted; say what was done.

    Raises: StateError where a file cannot be written.
    """
    files = {file.path: file for file in task.files}
    for found in task.found:
        if found.path not in files:
            _take(task.folder_abs, found, show)
            continue
        if found.state in (review_files.MISSING, review_files.OLD):
            review_files.put(task.folder_abs, files[found.path], found)
        _say(show(os.path.join(task.folder_abs, found.path)), _TOLD[found.state])
    for remark in task.remarks:
        click.echo(remark)


def take_out(folder_abs: str, show: Callable[[str], str]) -> None:
    """Take out what is ours and as we wrote it; say what was done.

    Raises: ConfigError, StateError where a file cannot be read, or removed.
    """
    for found in review_files.look(folder_abs, ()):
        _take(folder_abs, found, show)


def _take(folder_abs: str, found: Found, show: Callable[[str], str]) -> None:
    path = show(os.path.join(folder_abs, found.path))
    if found.state == review_files.OLD:
        review_files.take(folder_abs, found)
        _say(path, "removed")
    elif found.state == review_files.EDITED:
        _say(path, _LEFT)


def _say(path: str, what: str) -> None:
    click.echo(f"{path}: {what}")
