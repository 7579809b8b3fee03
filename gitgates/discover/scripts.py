"""Scripts that are named like tasks: `scripts/lint`, `script/test`, `./check.sh`."""

from __future__ import annotations

import re

from gitgates.discover.task import Project, Task
from gitgates.discover.words import find_word

FOLDERS = ("scripts", "script", ".")
_SHELL = re.compile(r"#! ?\S*/(?:env +)?(?:ba|z|k|da)?sh\b")
# It ends without its first argument.
_ASKS = re.compile(r"\$\{1:?\?|\[ *\$# -(?:lt|eq|ne) ")


def includes(project: Project) -> list[str]:
    """Return the scripts that are named like a task, the first folder's first."""
    found = []
    for folder in FOLDERS:
        for name in sorted(project.names):
            where, _, file = name.rpartition("/")
            stem, dot, end = file.partition(".")
            is_script = end == "sh" or not dot
            if where == folder and is_script and find_word(stem):
                found.append(name)
    return found


def find_files(project: Project) -> list[Task]:
    """Return those scripts as tasks, but for one that ends without an argument."""
    found = []
    for name in includes(project):
        text = project.texts.get(name, "")
        if _SHELL.match(text) and not _ASKS.search(text):
            found.append(
                Task(
                    name=name.rpartition("/")[2].partition(".")[0],
                    command=name,
                    source=name,
                    body=text.partition("\n")[2],
                )
            )
    return found
