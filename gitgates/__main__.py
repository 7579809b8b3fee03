"""The entry point: hooks go to `entry`, all other commands to `cli`. The only place that exits."""

from __future__ import annotations

import gc
import os
import sys

from gitgates.core import errors, pyc_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


def main() -> NoReturn:
    """Run gitgates and exit."""
    if os.name == "nt":  # before a module of POSIX is imported
        _refuse_windows()
    _open_closed_streams()
    _restart_in_utf8()
    gc.disable()  # a hook makes little garbage, and what it imports would be searched for some
    pyc_import.install()
    verb, *rest = sys.argv[1:] or [""]
    match verb:
        case "git-hook":
            from gitgates.entry.githook import run
        case "pre-commit-hook":
            from gitgates.entry.precommit import run
        case "agent-hook":
            from gitgates.entry.agent import run
        case "rescue":
            from gitgates.entry.rescue import run
        case _:
            from gitgates.cli import run_cli

            gc.enable()
            sys.exit(run_cli())
    _leave(_guarded(run, rest))


def _refuse_windows() -> NoReturn:
    from gitgates.core import windows  # only there

    error = windows.unsupported()
    if sys.argv[1:2] == ["agent-hook"]:
        print(windows.answer(error))
        sys.exit(0)
    print(f"gitgates: {error}", file=sys.stderr)
    sys.exit(error.exit_status)


def _open_closed_streams() -> None:
    """Open the null device for each closed standard stream.

    The next file that is opened would have its number, and what is meant for a person would be
    written there. For reading only: what is written is refused, as on a closed one.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest number that is free


def _restart_in_utf8() -> None:
    """Restart in UTF-8 mode if the file system encoding cannot hold all paths.

    So it is with LC_ALL=C and PYTHONUTF8=0. What our child processes inherit stays as it was.
    """
    if sys.getfilesystemencoding() != "utf-8" and sys.executable and not sys.flags.utf8_mode:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - ourselves


def _guarded(run: Callable[[list[str]], int], args: list[str]) -> int:
    """Run an entry; turn each error into a message on stderr and an exit status."""
    try:
        return run(args)
    except errors.GitgatesError as error:
        _say(f"gitgates: {error}")
        return error.exit_status
    except KeyboardInterrupt:
        _say("gitgates: interrupted; no decision was made")
        return errors.Interrupted.exit_status
    except Exception as error:  # noqa: BLE001 - what comes here is our bug
        from gitgates.store.owners import denied  # seldom needed

        if full := denied(error) or errors.unwritable(error):
            _say(f"gitgates: {full}")
            return full.exit_status
        import traceback

        _say(f"{traceback.format_exc()}gitgates: internal error; please report this bug")
        return errors.GitgatesError.exit_status


def _say(text: str) -> None:
    from gitgates.core.clean import visible  # only trouble is said

    text = visible(text)
    try:
        if sys.stdout:
            sys.stdout.flush()
        os.write(2, text.encode("utf-8", "surrogateescape") + b"\n")
    except OSError:
        return  # nobody reads it, or nobody can: the status still tells


def _leave(status: int) -> NoReturn:
    # Nothing is left to tidy up, and the interpreter's own tidying takes longer than a gate.
    os._exit(status)


if __name__ == "__main__":
    main()
