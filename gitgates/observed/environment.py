"""The environment that a gate got, except for variables that cannot affect the result.

Values are kept as digests: some are secret.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _blake2 import blake2b
    from collections.abc import Callable, Collection, Mapping
else:
    from _blake2 import blake2b  # hashlib takes longer to import than this to use

# The person's terminal and session. The reference of `reuse` lists these.
VOLATILE = frozenset(
    (
        *("_", "AI_AGENT", "COLUMNS", "COREPACK_ENABLE_AUTO_PIN", "GIT_EXEC_PATH", "LINES"),
        *("MAKELEVEL", "NoDefaultCurrentDirectoryInExePath", "OLDPWD", "PWD"),
        *("PYTEST_CURRENT_TEST", "SHELL", "SHLVL", "WINDOWID"),
    )
)
INDEX = "GIT_INDEX_FILE"  # counts if a run has read an index
ANY = ""  # the state of a variable that may have any value, or be unset
VOLATILE_STARTS = ("CLAUDE", "GITGATES_", "SSH_", "TMUX", "XDG_SESSION_")
VOLATILE_ENDS = ("_SESSION_ID", "_SESSION", "_PID", "_RUN_ID", "_THREAD_ID", "_TOOL_CALL_ID")
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - other programs use them
_DIGEST_BYTES = 16


def environment_state(env: Mapping[str, str], root_abs: str, named: str = "") -> dict[str, str]:
    """Return the variables that count, with a digest of each value.

    A variable in `named`, the command's text, always counts. The root may be a different one next
    time.
    """
    return {
        name: _digest(_without_root(value, root_abs))
        for name, value in env.items()
        if (name in named and name != "_") or not _is_volatile(name)
    }


def temporary_folders(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders for temporary files."""
    named = {env[name] for name in ("TMPDIR", "TMP", "TEMP") if env.get(name, "").startswith("/")}
    return (*sorted(named), *_TEMPORARY)


def environment_difference(
    was: Mapping[str, str],
    now: Mapping[str, str],
    ignored: Callable[[], Collection[str]] = tuple,
) -> str:
    """Return the first difference, as text; empty if there is none.

    If anything differs, `ignored` returns the variables that do not count, such as those that an
    agent sets for its child processes.
    """
    different = {name for name in {*was, *now} if was.get(name) not in (now.get(name), ANY)}
    for name in sorted(different.difference(ignored()) if different else ()):
        if name not in now:
            return f"the variable {name} is no longer set"
        return f"the variable {name} {'has another value' if name in was else 'is set now'}"
    return ""


def _is_volatile(name: str) -> bool:
    return name in VOLATILE or name.startswith(VOLATILE_STARTS) or name.endswith(VOLATILE_ENDS)


def _without_root(value: str, root_abs: str) -> str:
    """Return a value with the root's path replaced, so that it is the same in any worktree."""
    parts = value.split(":")
    inside = [
        "\0" + part[len(root_abs) :] if f"{part}/".startswith(f"{root_abs}/") else part
        for part in parts
    ]
    return ":".join(inside)


def _digest(value: str) -> str:
    text = value.encode("utf-8", "surrogateescape")
    return blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()
