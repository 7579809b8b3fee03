"""Install and copy what gates need into a folder that has only what git has.

`[tool.gitgates.worktree]` says what. Nothing there links into the user's working tree: an
installation that writes through a link would change that, and an editable one leads back.
"""

from __future__ import annotations

import os
import shutil
import stat
import time

from gitgates.config.load import table_of
from gitgates.core.clean import first_few, visible_line
from gitgates.core.errors import GitgatesError, Interrupted, StateError
from gitgates.core.record import Record
from gitgates.core.types import Command
from gitgates.git.checkout import env_in
from gitgates.proc.processes import Capture, Group, SignalPipe
from gitgates.store.files import no_folder_in, remove_file, remove_tree
from gitgates.store.proofs import digest
from gitgates.worktree.lock_files import LOCK_FILES, as_setting, install_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gitgates.core.types import Config
    from gitgates.git.repo import Git, Repo

_MOST_SHOWN = 2048  # bytes of the output
_TIMED_OUT = "did not end within the limit"


class WorktreeSettings(Record):
    """The table `[tool.gitgates.worktree]`."""

    setup: tuple[str, ...] = ()  # commands
    inputs: tuple[str, ...] = LOCK_FILES  # patterns of the files that decide what these install
    copy: tuple[str, ...] = ()  # paths that git ignores, of the working tree
    timeout_s: float = 600.0  # of all commands together
    agents: bool = False  # in linked worktrees of agents, too


def worktree_settings(config: Config) -> WorktreeSettings:
    """Return what to install and copy."""
    return table_of(config, "worktree", WorktreeSettings)


class SetupError(GitgatesError):
    """What gates need could not be installed, so none can run there."""

    exit_status = 1


def setup_key(settings: WorktreeSettings, inputs: Iterable[str]) -> str:
    """Return what an installation depends on, as an opaque key; empty: nothing is installed."""
    return digest(repr((settings.setup, [*inputs]))) if settings.setup else ""


def install(
    settings: WorktreeSettings,
    folder_abs: str,
    env: Mapping[str, str],
    *,
    log_abs: str,
    limit_s: float = 0.0,
) -> None:
    """Run the commands in a folder, one after the other.

    The output of each replaces that of the one before, in the file `log_abs`.

    `limit_s`: for all of them, if that is less than their own.

    Raises: SetupError if one fails; Interrupted.
    """
    limit_s = min(limit_s or settings.timeout_s, settings.timeout_s)
    until = time.monotonic() + limit_s
    for text in settings.setup:
        remove_file(log_abs)
        argv, capture = ("/bin/sh", "-c", text), Capture(_MOST_SHOWN, log_abs)
        command = Command(argv=argv, cwd_abs=folder_abs, env=env, shell=True)  # noqa: S604 - as the key says
        why = _run(command, capture, max(until - time.monotonic(), 0.0))
        if why == _TIMED_OUT:
            why = f"{why} of {limit_s:g} s"
        if why:
            said = os.fsdecode(capture.captured()[0]).strip().splitlines()[-3:]
            shown = "".join(f"\n    {visible_line(line)}" for line in said)
            raise SetupError(
                f"`{visible_line(text)}`, `setup` of [tool.gitgates.worktree], {why}: no gate can "
                f"run in {folder_abs}{shown}",
                f"Its whole output: {log_abs}" if said else "",
            )


def set_up(
    settings: WorktreeSettings,
    repo: Repo,
    source: Repo,
    *,
    log_abs: str,
    say: Callable[[str], None],
) -> None:
    """Copy from a working tree, and install, what gates need in a linked worktree.

    What that has already stays. Raises: SetupError, Interrupted; StateError.
    """
    folder_abs = repo.root_abs
    try:
        _copied, notes = copy_ignored(
            source, settings.copy, folder_abs, lambda name: os.path.lexists(f"{folder_abs}/{name}")
        )
    except OSError as error:
        raise StateError(f"{error.filename}: cannot be copied: {error.strerror}") from error
    for text in (*notes, *(f"setup: `{visible_line(text)}`" for text in settings.setup)):
        say(text)
    install(settings, folder_abs, env_in(folder_abs, source), log_abs=log_abs)


def _run(command: Command, capture: Capture, left_s: float) -> str:
    """Run a command; return what went wrong. Raises: Interrupted."""
    with SignalPipe() as signals, Group(signals) as group:
        child = group.start(command, left_s, capture)
        if isinstance(child, str):
            return child
        group.wait()
    if signals.received:
        raise Interrupted(f"interrupted by signal {signals.received[0]}")
    ending = child.ending()
    if ending.timed_out:
        return _TIMED_OUT
    if ending.signal:
        return f"was ended by signal {ending.signal}"
    return f"failed with exit status {ending.exit_status}" if ending.exit_status else ""


def copy_ignored(
    repo: Repo, names: tuple[str, ...], folder_abs: str, is_there: Callable[[str], bool]
) -> tuple[list[str], list[str]]:
    """Copy paths of a working tree that git ignores; return those copied, and notes.

    One that the linked worktree does not have is copied from the main one. `is_there`: whether
    what the folder has at a path must stay.

    Raises: OSError if nothing can be written.
    """
    copied, notes = [], list[str]()
    plain = dict.fromkeys(os.path.normpath(name.strip("/")) for name in names)
    inside = [name for name in plain if name != "." and name.split("/")[0] != ".."]
    notes += [
        f"`{name}` is not copied: it is not below the root" for name in plain if name not in inside
    ]
    ignored = _ignored(repo.git, inside)
    for name in inside:
        source_abs = _source(repo, name)
        if not source_abs:
            notes.append(f"`{name}` is not copied: the working tree does not have it")
        elif name not in ignored:
            notes.append(f"`{name}` is not copied: git does not ignore it")
        elif is_there(name):
            notes.append(f"`{name}` is not copied: that path exists in the checked content")
        elif path_abs := no_folder_in(folder_abs, os.path.dirname(name)):
            notes.append(f"`{name}` is not copied: {path_abs} is no folder")
        else:
            os.makedirs(os.path.dirname(f"{folder_abs}/{name}"), exist_ok=True)
            root_abs = source_abs.removesuffix(f"/{name}")
            notes += _copy(source_abs, f"{folder_abs}/{name}", root_abs)
            copied.append(name)
    return copied, notes


def _ignored(git: Git, names: list[str]) -> set[str]:
    """Return which paths git ignores, also a folder that ignores all that is in it."""
    ends = ("", "/", "/any")
    forms = {
        f"{name}{end}": name
        for name in names
        # Git refuses to look beyond a link, and then tells of no other path either.
        if not no_folder_in(git.cwd_abs, os.path.dirname(name))
        for end in (ends[:1] if os.path.islink(f"{git.cwd_abs}/{name}") else ends)
    }
    return {forms[form] for form in git.ignored(forms)} if names else set()


def _source(repo: Repo, name: str) -> str:
    main_abs = os.path.dirname(repo.common_dir_abs)
    for root_abs in (repo.root_abs, main_abs):
        if os.path.exists(f"{root_abs}/{name}"):
            return f"{root_abs}/{name}"
    return ""


def _copy(source_abs: str, target_abs: str, root_abs: str) -> list[str]:
    """Copy a file or folder, following it if it is a link itself; return notes."""
    source_abs = os.path.realpath(source_abs)
    if os.path.isdir(target_abs) and not os.path.islink(target_abs):
        remove_tree(target_abs)
    remove_file(target_abs)
    if not os.path.isdir(source_abs):
        shutil.copy2(source_abs, target_abs)
        return []
    notes = []

    def without(folder_abs: str, names: list[str]) -> list[str]:
        refused = []
        for name in names:
            path_abs = f"{folder_abs}/{name}"
            mode = os.lstat(path_abs).st_mode
            if stat.S_ISLNK(mode):
                is_kept = _leads_there_too(path_abs, source_abs, os.path.realpath(root_abs))
            else:
                is_kept = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
            if not is_kept:
                refused.append(name)
                why = f"leads out of {source_abs}" if stat.S_ISLNK(mode) else "is no file"
                notes.append(f"{path_abs} is not copied: it {why}")
        return refused

    shutil.copytree(source_abs, target_abs, symlinks=True, ignore=without)
    return notes


def _leads_there_too(link_abs: str, source_abs: str, root_abs: str) -> bool:
    """Return whether the copy of a link leads to what belongs to the copy.

    That is something in the copied folder; or, in a folder of packages, something in the working
    tree that the commit has, too (npm's workspaces). A system program, such as a virtual
    environment's Python, is nobody's work.
    """
    target, end_abs = os.readlink(link_abs), os.path.realpath(link_abs)
    step_abs = os.path.normpath(os.path.join(os.path.dirname(link_abs), target))
    if not _is_below(end_abs, root_abs):
        is_program = os.path.isfile(end_abs) and os.access(end_abs, os.X_OK)
        return is_program and (os.path.isabs(target) or _is_below(step_abs, source_abs))
    if os.path.isabs(target):
        return False  # the user's own
    is_packages = os.path.basename(source_abs) == "node_modules"
    return _is_below(end_abs, source_abs) or (is_packages and _is_below(step_abs, root_abs))


def _is_below(path_abs: str, folder_abs: str) -> bool:
    return f"{path_abs}/".startswith(f"{folder_abs}/")


_MOST_NAMED = 4
_ANY = "the command that installs it"  # if no lock file tells
_CACHES = ("__pycache__", "_cache")


def setup_hints(repo: Repo, config: Config, hook: str = "") -> tuple[str, ...]:
    """Return why gates may have missed something in a checkout, and the ways to change that.

    Nothing if `setup` is declared, or if the working tree has no more than git has, and no lock
    file. With a `hook`, also the ways without a checkout.
    """
    import json  # nothing is missing in most

    if worktree_settings(config).setup:
        return ()
    ignored, commands = ignored_in(repo), install_commands(repo.root_abs)
    if not (ignored or commands):
        return ()
    has = f": {first_few(ignored, _MOST_NAMED)}" if ignored else ""
    setup = json.dumps(as_setting(commands) or _ANY)
    source = next(iter(config.sources), "pyproject.toml")
    table = "tool.gitgates.worktree" if source.endswith("pyproject.toml") else "worktree"
    ways = f"[{table}] setup = {setup} in {source}"
    if hook:
        ways += "; or commit or stash your changes first; "
        ways += f'or write unstaged = "hide" in the table of {hook}'
    return (
        f"private checkouts lack what git ignores in the working tree{visible_line(has)}",
        f"if gates need it, have it installed there: {ways}",
    )


def ignored_in(repo: Repo) -> list[str]:
    """Return what git ignores in a working tree, except for caches: folders, then files."""
    ask = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    names = [
        name
        for name in repo.git.names(*ask)
        if not any(part.endswith(_CACHES) for part in name.split("/"))
    ]
    return sorted(names, key=lambda name: not name.endswith("/"))
