"""Keys of other tools' settings that are written here by habit, and what to write in their place.

Of pre-commit and prek, lefthook, hk, and the task tables of poe, taskipy and just. Cold: read only
where a configuration has a problem.
"""

from __future__ import annotations

_COMMAND = "Here that is `command`."
_FILES = 'Write `files = ["*.py"]`: patterns as in .gitignore, from the root.'
_EXCLUDE = 'Write `exclude = ["vendor/"]`: patterns as in .gitignore, from the root.'
_FIXER = "Write `writes = true`, and `restage = true` to have what it fixed staged."
_NAME = "Leave it out: the gate's name is that of its table."
_NO_TOOLS = "Leave it out: nothing is installed; `command` runs in your own environment."
_HOOKS = "List the gate's name in `gates` of each hook that is to run it."
_GATES = "Give each its table `[gates.NAME]` with `command`, and list the names in `gates`."
_SEQUENCE = (
    'Leave it out: with `strategy = "sequence"`, the default, a hook ends at the first failure.'
)
_COLLECT = 'Write `strategy = "collect"` in the hook: its gates run side by side, `jobs` at once.'
_FOLDER = 'Write `working_dir = "frontend"`; patterns stay relative to the root.'
_WARNING = 'Write `on_fail = "CONTINUE"`: a failure is a warning then.'
_SKIP = "For one run, name gates in the variable `GITGATES_SKIP`; else leave them out of `gates`."
_LOG = "Leave it out: each run keeps the logs of its gates; see `gitgates runs`."
_ORDER = "List the gates in `gates` in the order in which they are to run, or give them `priority`."
_FRAMEWORK = "To run hooks of .pre-commit-config.yaml, write `pre-commit = true`, or their ids."
_INPUT = "Write `pass_hook_input = true`: the hook's standard input, and its arguments."

FOREIGN_KEYS: dict[str, str] = {
    "additional_dependencies": _NO_TOOLS,
    "alias": _NAME,
    "allow_failure": _WARNING,
    "always_run": "Leave it out: a gate without `files`, `exclude` and `pass_files` always runs.",
    "args": "Write the arguments into `command`.",
    "check": _COMMAND,
    "cmd": _COMMAND,
    "commands": _GATES,
    "continue_on_error": _WARNING,
    "cwd": _FOLDER,
    "default_stages": _HOOKS,
    "depends": _ORDER,
    "dir": _FOLDER,
    "entry": _COMMAND,
    "exclude_types": _EXCLUDE,
    "fail_fast": _SEQUENCE,
    "fail_text": "Write it as `description`, or let the command print it.",
    "file_types": _FILES,
    "fix": f"Give what fixes a gate of its own. {_FIXER}",
    "follow": _SEQUENCE,
    "glob": _FILES,
    "group": _GATES,
    "id": _NAME,
    "jobs": "It stands at the top, and is a number. To say which gates run, list them in `gates`.",
    "language": _NO_TOOLS,
    "language_version": _NO_TOOLS,
    "log_file": _LOG,
    "name": _NAME,
    "only": _HOOKS,
    "parallel": _COLLECT,
    "pass_filenames": "Write `pass_files = true`; without it a command is given no paths.",
    "piped": _SEQUENCE,
    "repo": _FRAMEWORK,
    "repos": _FRAMEWORK,
    "require_serial": "Leave it out: the runs of one gate come one after another.",
    "root": _FOLDER,
    "run": _COMMAND,
    "script": _COMMAND,
    "scripts": _GATES,
    "shell": "Write `command` as text: `sh -c` runs it.",
    "skip": _SKIP,
    "stage": _FIXER,
    "stage_fixed": _FIXER,
    "stages": _HOOKS,
    "steps": _GATES,
    "tags": _HOOKS,
    "types": _FILES,
    "types_or": _FILES,
    "use_stdin": _INPUT,
    "verbose": f"Say it when running: `gitgates run --verbose`. {_LOG}",
}
