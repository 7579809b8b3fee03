"""Git's hooks by configuration: a section `[hook "gitgates-HOOK"]` for each, and no file.

Git does not tell a command which hook it is run for, so each has a name of its own. Where a file in
the hooks folder runs the gates as well, they are left to that one.

Source: git-config(1), git-hook(1) and hook.c of git 2.54 and 2.55.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from contextlib import suppress

import gitgates
from gitgates.core.errors import GitError, StateError
from gitgates.core.lifecycle import GIT_HOOKS
from gitgates.core.record import Record
from gitgates.setup.install.githooks import HookFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Git

OLDEST_GIT = (2, 54)
LOCAL, GLOBAL = "local", "global"  # the scopes that are written
_VIA = {LOCAL: "config", GLOBAL: "global"}  # as entry/githook.py knows them
_NAME = "gitgates-"  # and the hook: the name of each
_MAIN = "/gitgates/__main__.py"
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from gitgates.__main__ import main; main()"
)
# Git runs it by `sh`, with the arguments of the hook behind it.
_COMMAND = (
    "gates() {{ if [ -x {python} ] && [ -r {main} ]; then"
    " exec {python} -I -S -c '{start}' {home} git-hook --via={via} {hook} \"$@\";"
    " elif command -v gitgates >/dev/null 2>&1; then"
    ' exec gitgates git-hook --via={via} {hook} "$@";'
    ' elif [ "$GITGATES" != 0 ]{where}; then echo "gitgates {hook}: nothing was checked: gitgates'
    " is gone. Install it again, and run: gitgates install-hooks {option}. Or take this hook out:"
    ' git config --{scope} --remove-section hook.gitgates-{hook}" >&2; exit 69; fi; }}; gates'
)
# A person's other repositories are not refused then.
_WHERE_CONFIGURED = " && grep -qs gitgates gitgates.toml pyproject.toml"


class ConfigHook(Record):
    """One hook of ours in git's configuration, as git sees it in a worktree."""

    hook: str
    command: str
    scope: str  # of the command: local, worktree, global, system, command
    file_abs: str  # which has it
    off: str = ""  # the key that switches it off
    off_scope: str = ""  # of that key

    @property
    def name(self) -> str:
        """The name of its section, as in a key."""
        return f"hook.{_NAME}{self.hook}"

    @property
    def is_for_all(self) -> bool:
        """Whether it is a person's own, for all repositories."""
        return f"--via={_VIA[GLOBAL]} " in self.command

    @property
    def as_file(self) -> HookFile:
        """The interpreter and the installation that it names, as those of a shim."""
        with suppress(ValueError, IndexError):
            words = shlex.split(self.command)
            python, main = (words[words.index(test) + 1] for test in ("-x", "-r"))
            home = main.removesuffix(_MAIN)
            scope = GLOBAL if self.is_for_all else LOCAL
            is_current = self.command == _command(self.hook, scope, python, home)
            shim = HookFile(self.file_abs, "shim", python=python, home=home, current=is_current)
            return shim._replace(executable=True)
        return HookFile(self.file_abs, "shim", executable=True)


def render(hook: str, scope: str) -> str:
    """Return the command of a hook: this interpreter and this installation are written into it."""
    package_abs = os.path.dirname(os.path.abspath(gitgates.__file__))
    return _command(hook, scope, sys.executable, os.path.dirname(package_abs))


def _command(hook: str, scope: str, python: str, home: str) -> str:
    return _COMMAND.format(
        python=shlex.quote(python),
        main=shlex.quote(home + _MAIN),
        home=shlex.quote(home),
        start=_START,
        via=_VIA[scope],
        hook=hook,
        where=_WHERE_CONFIGURED if scope == GLOBAL else "",
        option="--global" if scope == GLOBAL else "--config",
        scope=scope,
    )


def version_of(git: Git) -> tuple[int, ...]:
    """Return the first two numbers of git's version; none where it has no numbers."""
    match = re.search(rb"(\d+)\.(\d+)", git.out("version"))
    return tuple(map(int, match.groups())) if match else ()


def require_git(git: Git) -> None:
    """Refuse a git that knows no such hooks. Raises: GitError."""
    if version_of(git) < OLDEST_GIT:
        version = os.fsdecode(git.out("version")).strip()
        raise GitError(
            f"{version} has no hooks by configuration, and would run none of the gates: that"
            " needs git 2.54 or later",
            "Install them as files, which every git runs: gitgates install-hooks",
        )


def read(git: Git) -> dict[str, ConfigHook]:
    """Return our hooks in all of git's configuration that counts here, by the hook.

    Raises: GitError where git cannot read it.
    """
    fields = _fields(git, "--show-scope", "--show-origin", r"^hook\.")
    commands: dict[str, ConfigHook] = {}
    events: dict[str, list[str]] = {}
    off: dict[str, str] = {}
    # The last one counts: git lists them from the farthest scope to the nearest.
    for scope, origin, setting in zip(*(fields[at::3] for at in range(3)), strict=True):
        key, _, value = setting.partition("\n")
        name, _, variable = key.removeprefix("hook.").rpartition(".")
        match variable:
            case "command":
                hook = name.removeprefix(_NAME)
                file_abs = os.path.join(git.cwd_abs, origin.removeprefix("file:"))
                commands[name] = ConfigHook(hook, value, scope, file_abs)
            case "event" if value:
                events.setdefault(name, []).append(value)
            case "event":
                events.pop(name, None)
            case "enabled" if value.lower() in ("false", "no", "off", "0"):
                off[name] = scope
            case "enabled":
                off.pop(name, None)
    return {
        hook.hook: _switched(hook, off)
        for name, hook in commands.items()
        if name.startswith(_NAME) and hook.hook in events.get(name, ())
    }


def _switched(hook: ConfigHook, off: dict[str, str]) -> ConfigHook:
    """Return a hook with the key that switches it off; `off`: the scope of each such name."""
    names = (name for name in (f"{_NAME}{hook.hook}", hook.hook) if name in off)
    name = next(names, "")
    return hook._replace(off=f"hook.{name}.enabled", off_scope=off[name]) if name else hook


def install(git: Git, scope: str, hooks: tuple[str, ...]) -> list[tuple[str, str]]:
    """Write the hooks into the configuration of a scope; return each, and what was done.

    Raises: GitError for a git that would not run them; StateError where it cannot be written.
    """
    require_git(git)
    present = _present(git, scope)
    changes = []
    for hook in hooks:
        section = {"command": render(hook, scope), "event": hook}
        name, before = f"hook.{_NAME}{hook}", present.get(hook, {})
        # The command first: with an event alone, git would refuse to do anything.
        for variable, value in section.items():
            if before.get(variable) != value:
                _write(git, scope, "--replace-all", f"{name}.{variable}", value)
        is_same = before.items() >= section.items()
        what = "already installed" if is_same else "updated" if before else "installed"
        changes.append((name, what))
    return changes


def uninstall(git: Git, scope: str, hooks: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Remove these hooks, or all of ours, from the configuration of a scope; return what was done.

    Raises: GitError where it cannot be read; StateError where it cannot be written.
    """
    changes = []
    for hook in _present(git, scope):
        if not hooks or hook in hooks:
            _write(git, scope, "--remove-section", f"hook.{_NAME}{hook}")
            changes.append((f"hook.{_NAME}{hook}", "removed"))
    return changes


def _present(git: Git, scope: str) -> dict[str, dict[str, str]]:
    """Return our hooks in the configuration of one scope: hook → variable → last value."""
    sections: dict[str, dict[str, str]] = {}
    ours = {point.name for point in GIT_HOOKS}  # others may have a name that begins as ours do
    for setting in _fields(git, f"--{scope}", rf"^hook\.{_NAME}"):
        key, _, value = setting.partition("\n")
        name, _, variable = key.removeprefix(f"hook.{_NAME}").rpartition(".")
        if name in ours:
            sections.setdefault(name, {})[variable] = value
    return sections


def _fields(git: Git, *args: str) -> list[str]:
    """Return what git lists of settings that match; the pattern is the last argument.

    Raises: GitError where git cannot read them.
    """
    *options, pattern = args
    completed = git.configured("config", *options, "-z", "--get-regexp", pattern)
    if completed.exit_status not in (0, 1):  # 1: there are none
        problem = os.fsdecode(completed.stderr).strip()
        raise GitError(f"git's configuration cannot be read: {problem}", "See: git config --list")
    return os.fsdecode(completed.stdout).split("\0")[:-1]


def _write(git: Git, scope: str, *args: str) -> None:
    completed = git.configured("config", f"--{scope}", *args)
    if completed.exit_status:
        problem = os.fsdecode(completed.stderr).strip() or f"exit status {completed.exit_status}"
        raise StateError(f"git's {scope} configuration cannot be changed: {problem}")
