"""Turn one step into the commands that run it: each path exactly once, under the system's limit."""

from __future__ import annotations

from gitgates.record import Record
from gitgates.types import Command, Event, Gate, Step

# Stages that pre-commit takes `--files` for; elsewhere its hooks run as before a commit.
_FILE_STAGES = ("pre-commit", "pre-merge-commit", "pre-push", "manual")
_MESSAGE_STAGES = ("commit-msg", "prepare-commit-msg")


class Setting(Record):
    """What the commands of one gate run in."""

    root_abs: str
    env: tuple[tuple[str, str], ...]
    stdin_abs: str  # the hook's standard input, kept in a file; empty: none
    runner: tuple[str, ...]  # the program that runs pre-commit hooks
    limit: int  # bytes that all arguments together may take


def make_commands(step: Step, event: Event, setting: Setting) -> tuple[Command, ...]:
    """Return the commands of a step, in order."""
    gate = step.gate
    if gate.pre_commit is not None:
        fixed = _pre_commit_commands(gate, event, setting.runner)
    else:
        fixed = (_base(gate, event),)
    paths = tuple(_argument(path, gate.working_dir) for path in step.paths)
    passes = gate.pass_files or (gate.pre_commit is not None and _takes_files(event))
    return tuple(
        Command(
            argv=(*argv, *chunk),
            cwd_abs=_join(setting.root_abs, gate.working_dir),
            env=setting.env,
            stdin_abs=setting.stdin_abs if gate.pass_hook_input else "",
            shell=isinstance(gate.command, str),
        )
        for argv in fixed
        for chunk in (chunks(paths, setting.limit - _cost(argv)) if passes else ((),))
    )


def chunks(paths: tuple[str, ...], limit: int) -> tuple[tuple[str, ...], ...]:
    """Cut paths into runs of at most `limit` bytes, in order; a run has at least one."""
    found: list[list[str]] = [[]]
    room = limit
    for path in paths:
        cost = _cost((path,))
        if found[-1] and cost > room:
            found.append([])
            room = limit
        found[-1].append(path)
        room -= cost
    return tuple(tuple(chunk) for chunk in found)


def _base(gate: Gate, event: Event) -> tuple[str, ...]:
    hook_args = event.argv if gate.pass_hook_input else ()
    if isinstance(gate.command, tuple):
        return (*gate.command, *hook_args)
    text = gate.command or ""
    if (hook_args or gate.pass_files) and not _uses_arguments(text):
        text = f'{text.rstrip()} "$@"'
    return ("/bin/sh", "-c", text, gate.name, *hook_args)


def _uses_arguments(text: str) -> bool:
    """Tell whether a shell text places its arguments itself.

    `$1` counts only in double quotes: elsewhere it is more often awk's than the shell's.
    """
    places = ("$@", "${@", "$*", "${*", *(f'"${digit}"' for digit in range(1, 10)))
    return any(place in text for place in places)


def _argument(path: str, working_dir: str) -> str:
    """Return a path as the command will name it: from its folder, and never like an option."""
    if working_dir != ".":
        inside = path.startswith(working_dir + "/")
        up = "../" * (working_dir.count("/") + 1)
        path = path[len(working_dir) + 1 :] if inside else up + path
    return f"./{path}" if path.startswith("-") else path


def _pre_commit_commands(
    gate: Gate, event: Event, runner: tuple[str, ...]
) -> tuple[tuple[str, ...], ...]:
    stage = event.name if event.name in (*_FILE_STAGES, *_MESSAGE_STAGES) else "pre-commit"
    about: tuple[str, ...] = ("--files",)
    if stage in _MESSAGE_STAGES:
        # Without files it would hide unstaged work first, which is not its business here.
        about = ("--commit-msg-filename", event.message_file_abs, "--files", event.message_file_abs)
    ids: tuple[tuple[str, ...], ...] = tuple((name,) for name in gate.pre_commit or ()) or ((),)
    return tuple((*runner, "run", *name, "--hook-stage", stage, *about) for name in ids)


def _takes_files(event: Event) -> bool:
    return event.name not in _MESSAGE_STAGES


def _join(root_abs: str, folder: str) -> str:
    return root_abs if folder == "." else f"{root_abs}/{folder}"


def _cost(argv: tuple[str, ...]) -> int:
    # Each argument costs its bytes, a NUL and a pointer. execve(2)
    return sum(len(arg.encode("utf-8", "surrogateescape")) + 9 for arg in argv)
