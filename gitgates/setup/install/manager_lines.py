"""The lines with which other hook managers run the gates. Pure."""

from __future__ import annotations

import json

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.edit import blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LEFTHOOK_ARGUMENTS = {"commit-msg": '"{1}"', "applypatch-msg": '"{1}"', "pre-push": '"{1}" "{2}"'}
# Git's standard input can be read only once, so the script gets it again.
_TWICE = """\
gitgates_refs=$(cat)
if [ "$gitgates_refs" ]; then
{call} <<REFS || exit
$gitgates_refs
REFS
exec <<REFS
$gitgates_refs
REFS
fi
"""
# If the framework knows no files, to be given none would mean that none has changed.
_WITHOUT_FILES = ("post-checkout", "post-commit", "post-merge", "post-rewrite", "pre-rebase")


def of_script(manager: str, hook: str, *, is_alone: bool) -> str:
    """Return the lines of a script; `is_alone`: no other command of it needs standard input."""
    call = f'gitgates git-hook --via={manager} {hook} "$@"'
    if HOOK_POINTS[hook].reads_stdin and not is_alone:
        return _TWICE.format(call=call)
    return f"{call}\n"


def of_json(manager: str, hooks: Sequence[str], text: str) -> str:
    """Return the keys of the object that simple-git-hooks reads; `text`: of its file."""
    lines = []
    for hook in hooks:
        is_alone = f'"{hook}"' not in text
        call = of_script(manager, hook, is_alone=is_alone)
        if not HOOK_POINTS[hook].reads_stdin:
            call = call.rstrip("\n") if is_alone else f"… && {call.rstrip()}"
        elif is_alone:
            call = call.rstrip("\n")
        else:
            call += "…"
        lines.append(f"  {json.dumps(hook)}: {json.dumps(call, ensure_ascii=False)},\n")
    return "".join(lines)


def of_lefthook(hooks: Sequence[str], file: str, *, has_jobs: bool) -> str:
    """Return a command for each hook, or a job if the file has jobs.

    Lefthook must not skip it: it does so if no path has changed, and compares a push with what is
    checked out, not with what is pushed. It always runs a command whose `files` lists a file that
    exists. Commands run in the order of their names, and ours must see what the others leave.
    """
    entries: dict[str, object] = {}
    for hook in hooks:
        call = f"gitgates git-hook --via=lefthook {hook} {_LEFTHOOK_ARGUMENTS.get(hook, '{0}')}"
        keys: dict[str, str | bool] = {"files": f"echo {file}", "run": f"true {{files}} && {call}"}
        if HOOK_POINTS[hook].reads_stdin:
            keys["use_stdin"] = True
        jobs = [{"name": "gitgates", **keys}]
        entries[hook] = {"jobs": jobs} if has_jobs else {"commands": {"zz-gitgates": keys}}
    return blocks.yaml_lines(entries)


def of_framework(stages: Sequence[str], file: str) -> str:
    """Return the hooks as an item of `repos`."""
    hooks: list[dict[str, str | bool | list[str]]] = [
        {
            "id": f"gitgates-{stage}",
            "name": f"gitgates {stage}",
            "entry": f"gitgates pre-commit-hook {stage}",
            "language": "system",
            "stages": [stage],
            "always_run": True,
            "pass_filenames": stage not in _WITHOUT_FILES,
            "require_serial": True,
        }
        for stage in stages
    ]
    if not file.endswith(".toml"):
        return blocks.yaml_lines([{"repo": "local", "hooks": hooks}])
    tables = [
        ", ".join(f"{key} = {json.dumps(value)}" for key, value in hook.items()) for hook in hooks
    ]
    lines = "".join(f"  {{ {table} }},\n" for table in tables)
    return f'[[repos]]\nrepo = "local"\nhooks = [\n{lines}]\n'


def install_types(hooks: Sequence[str], file: str) -> str:
    """Return the setting with which everybody's `pre-commit install` installs these hooks."""
    names = ", ".join(f'"{hook}"' if file.endswith(".toml") else hook for hook in hooks)
    sign = " =" if file.endswith(".toml") else ":"
    return f"default_install_hook_types{sign} [{names}]\n"
