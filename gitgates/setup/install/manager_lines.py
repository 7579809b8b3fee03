"""The lines with which other hook managers run the gates. Pure."""

from __future__ import annotations

import json
import os
import tomllib

from gitgates.core.lifecycle import HOOK_POINTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

with open(f"{os.path.splitext(__file__)[0]}.toml", "rb") as _file:
    _LINES: dict[str, Any] = tomllib.load(_file)


def of_script(manager: str, hook: str, *, is_alone: bool) -> str:
    """Return the lines of a script; `is_alone`: no other command of it needs standard input."""
    needs_input = HOOK_POINTS[hook].reads_stdin and not is_alone
    lines = _LINES["script_with_input" if needs_input else "script"]
    return str(lines.replace("@MANAGER@", manager).replace("@HOOK@", hook))


def of_json(manager: str, hooks: Sequence[str], text: str) -> str:
    """Return the keys of the object that simple-git-hooks reads; `text`: of its file."""
    lines = ""
    for hook in hooks:
        is_alone = f'"{hook}"' not in text
        call = of_script(manager, hook, is_alone=is_alone).rstrip("\n")
        if not is_alone:
            call = f"{call}\n…" if HOOK_POINTS[hook].reads_stdin else f"… && {call}"
        lines += f"  {json.dumps(hook)}: {json.dumps(call, ensure_ascii=False)},\n"
    return lines


def of_lefthook(hooks: Sequence[str], file: str, *, has_jobs: bool) -> str:
    """Return a command for each hook, or a job if the file has jobs."""
    lines = ""
    for hook in hooks:
        template = _LINES["lefthook"]["jobs" if has_jobs else "commands"]
        arguments = _LINES["lefthook"]["arguments"].get(hook, "{0}")
        is_read = json.dumps(HOOK_POINTS[hook].reads_stdin)
        filled = template.replace("@HOOK@", hook).replace("@ARGUMENTS@", arguments)
        lines += filled.replace("@FILE@", file).replace("@STDIN@", is_read)
    return lines


def of_framework(stages: Sequence[str], file: str) -> str:
    """Return the hooks as an item of `repos`."""
    rows, is_toml = _LINES["framework"], file.endswith(".toml")
    template = rows["toml" if is_toml else "yaml"]
    passes = {stage: json.dumps(stage not in rows["without_files"]) for stage in stages}
    filled = (template.replace("@HOOK@", s).replace("@PASSES@", p) for s, p in passes.items())
    if is_toml:
        return f'[[repos]]\nrepo = "local"\nhooks = [\n{"".join(filled)}]\n'
    return f"- repo: local\n  hooks:\n{''.join(filled)}"


def install_types(hooks: Sequence[str], file: str) -> str:
    """Return the setting with which everybody's `pre-commit install` installs these hooks."""
    names = ", ".join(f'"{hook}"' if file.endswith(".toml") else hook for hook in hooks)
    sign = " =" if file.endswith(".toml") else ":"
    return f"default_install_hook_types{sign} [{names}]\n"
