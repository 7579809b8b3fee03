"""The pre-commit framework (or prek) as a host: it runs gitgates as one of its hooks.

It passes file names as arguments, and everything else as PRE_COMMIT_* variables. It has already
stashed unstaged work, and has put its own environment first in PATH: `undo_venv` removes that
again, because gates are the person's commands.

Source: pre_commit/commands/run.py and hook_impl.py of pre-commit 4.7; prek 0.5.
"""

from __future__ import annotations

import posixpath

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.types import Event, RefUpdate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Files that only a framework's environment has: the person's own may also contain gitgates.
ENVIRONMENT_MARKS = (".install_state_v2", ".prek-hook.json")
TO_REF = "PRE_COMMIT_TO_REF"
_ZEROS = "0" * 40
# The framework's variables with git's arguments to the hook, in git's order.
_ARGUMENTS = {
    "pre-push": ("PRE_COMMIT_REMOTE_NAME", "PRE_COMMIT_REMOTE_URL"),
    "post-checkout": ("PRE_COMMIT_FROM_REF", TO_REF, "PRE_COMMIT_CHECKOUT_TYPE"),
    "post-merge": ("PRE_COMMIT_IS_SQUASH_MERGE",),
    "post-rewrite": ("PRE_COMMIT_REWRITE_COMMAND",),
    "pre-rebase": ("PRE_COMMIT_PRE_REBASE_UPSTREAM", "PRE_COMMIT_PRE_REBASE_BRANCH"),
    "prepare-commit-msg": ("PRE_COMMIT_COMMIT_MSG_SOURCE", "PRE_COMMIT_COMMIT_OBJECT_NAME"),
}
# Scopes in which the framework passes the paths; in others, git is asked, as in git's hooks.
_NAMES_FILES = ("staged", "pushed", "caller")


def decode(
    stage: str, files: tuple[str, ...], env: Mapping[str, str], places: tuple[str, str]
) -> Event:
    """Return the event of a hook's run. `places`: the root and the current folder.

    `files` are relative to the current folder: prek runs hooks in the project's folder, which may
    be below the root.
    """
    root_abs, cwd_abs = places
    scope = HOOK_POINTS[stage].scope
    absolute = tuple(posixpath.normpath(posixpath.join(cwd_abs, name)) for name in files)
    argv = tuple(env[name] for name in _ARGUMENTS.get(stage, ()) if name in env)
    message = absolute[0] if scope == "message" and absolute else ""
    refs = (pushed,) if scope == "pushed" and (pushed := _pushed_ref(env)).has_code else ()
    return Event(
        host="pre-commit",
        name=stage,
        root_abs=root_abs,
        paths=tuple(_below(root_abs, p) for p in absolute) if scope in _NAMES_FILES else None,
        refs=refs,
        argv=(message, *argv) if message else argv,
        stdin=b"".join(_ref_line(ref) for ref in refs),
        message_file_abs=message,
        within_framework=True,
    )


def undo_venv(env: Mapping[str, str], *, has_venv: bool) -> dict[str, str]:
    """Return the environment without the framework's own virtual environment.

    `has_venv`: whether the person's first folder is in a virtual environment, whose VIRTUAL_ENV the
    framework has overwritten.
    """
    clean = {name: value for name, value in env.items() if name != "VIRTUAL_ENV"}
    clean["PATH"] = ":".join(_persons_folders(env))
    if has_venv:
        clean["VIRTUAL_ENV"] = posixpath.dirname(persons_first_folder(env))
    return clean


def persons_first_folder(env: Mapping[str, str]) -> str:
    """Return the first folder in PATH that neither the framework nor git has added."""
    folders = _persons_folders(env)
    return next((f for f in folders if posixpath.basename(f) != "git-core"), "")


def _persons_folders(env: Mapping[str, str]) -> list[str]:
    frameworks = posixpath.join(env.get("VIRTUAL_ENV", ""), "bin")
    return [folder for folder in env.get("PATH", "").split(":") if folder != frameworks]


def _pushed_ref(env: Mapping[str, str]) -> RefUpdate:
    return RefUpdate(
        local_ref=env.get("PRE_COMMIT_LOCAL_BRANCH", ""),
        local_id=env.get(TO_REF) or _ZEROS,
        remote_ref=env.get("PRE_COMMIT_REMOTE_BRANCH", ""),
        remote_id=env.get("PRE_COMMIT_FROM_REF") or _ZEROS,
    )


def _ref_line(ref: RefUpdate) -> bytes:
    return " ".join(ref).encode("utf-8", "surrogateescape") + b"\n"


def _below(root_abs: str, path_abs: str) -> str:
    return posixpath.relpath(path_abs, root_abs)
