"""The repository of the current folder, and its configuration, for verbs."""

from __future__ import annotations

import os

import click

from gitgates import environ
from gitgates.config.load import FILES, load
from gitgates.errors import ConfigError, GitError, GitgatesError, OwnershipError
from gitgates.git.repo import Repo, current_folder, find_repo
from gitgates.store.messages import Message, post
from gitgates.types import Config
from gitgates.worktree.isolate import recover_and_report


def current_repo() -> Repo:
    """Return the repository of the current folder.

    Raises: GitError if there is none.
    """
    return find_repo(current_folder(), environ.read())


def restore_interrupted(verb: str) -> None:
    """Restore what a killed run had stashed here, as every verb does first.

    Raises: StateError where something was damaged; `doctor` goes on to say what is wrong.
    """
    try:
        repo = current_repo()
    except GitError:
        return  # a verb that needs a repository says so itself
    try:
        recover_and_report(repo, lambda text: click.echo(f"gitgates: {text}", err=True))
    except GitgatesError as error:
        if verb != "doctor":
            raise
        if not os.path.isdir(f"{repo.state_abs}/rescue"):  # else it is one of the findings
            click.echo(f"gitgates: {error}", err=True)


def config_root(cwd_abs: str) -> str:
    """Return the folder of the configuration: the root of the repository.

    Outside of one: the nearest folder upwards with one of our files, so that a configuration can be
    checked where git is not.

    Raises: OwnershipError where git does not trust the repository.
    """
    try:
        return find_repo(cwd_abs, environ.read()).root_abs
    except OwnershipError:
        raise
    except GitError:
        folder = cwd_abs
        while not any(os.path.isfile(os.path.join(folder, name)) for name in FILES):
            if folder == os.path.dirname(folder):
                return cwd_abs
            folder = os.path.dirname(folder)
        return folder


def configuration(repo: Repo) -> Config:
    """Return the configuration of a repository.

    Raises: ConfigError where it has problems, or if there is none.
    """
    config = load(repo.root_abs, f"{repo.state_abs}/config.marshal")
    if config is None:
        raise no_configuration(repo.root_abs)
    return config


def no_configuration(root_abs: str) -> ConfigError:
    """Return the error for a folder without a configuration."""
    message = f"{root_abs}: no [tool.gitgates] in pyproject.toml, and no gitgates.toml"
    return ConfigError(message, "Start with: gitgates init")


def post_message(repo: Repo, draft: Message) -> str:
    """Append to the message log, with the commit and branch; return the message's id.

    Raises: UsageError where the draft makes no sense; GitError where git is not there; StateError
    where the log cannot be written.
    """
    branch, commit = repo.git.ask_all(
        ("symbolic-ref", "--quiet", "HEAD"),
        ("rev-parse", "--verify", "--quiet", "HEAD^{commit}"),
    )
    try:
        # Not each file of an untracked folder: one name is as good as a thousand.
        status = repo.git.ask("status", "--porcelain", "-z", "--untracked-files=normal")
        dirty = bool(status.exit_status or status.stdout)
    except GitError:
        dirty = True  # it did not come to an end
    draft = draft._replace(
        commit=commit.stdout.decode("ascii", "replace").strip(),
        branch=os.fsdecode(branch.stdout).rstrip("\n").removeprefix("refs/heads/"),
        dirty=dirty,
    )
    return post(repo.shared_state_abs, draft).id
