"""Targets of make. Source: the GNU make manual, 4.2; files included by a pattern are left out."""

from __future__ import annotations

import re

from gitgates.discover.task import Project, Task

FILES = ("GNUmakefile", "makefile", "Makefile")
FIRST_ONLY = True  # make reads the first of them

# `a b: c ; recipe`, not `a := b`, and not the target-specific variable `a: b = c`.
_RULE = re.compile(
    r"(?P<targets>[A-Za-z0-9_./-]+(?:[ ]+[A-Za-z0-9_./-]+)*)[ \t]*::?(?![:=])"
    r"(?![ \t]*(?:export[ \t]+|override[ \t]+|private[ \t]+)*[A-Za-z_]\w*[ \t]*(?::{0,3}|\+|\?|!)=)"
    r"(?P<needs>[^;#]*)(?:;(?P<inline>[^#]*))?"
)
_INCLUDE = re.compile(r"^[-s]?include[ \t]+([\w./-]+)[ \t]*$", re.MULTILINE)
_DEFINE = re.compile(r"(?:override[ \t]+|export[ \t]+)*define\b")


def find(name: str, project: Project) -> list[Task]:
    """Return the targets of one file."""
    bodies: dict[str, list[str]] = {}
    needs: dict[str, list[str]] = {}
    current: list[str] = []
    read = (name, *(file for file in includes(name, project) if file in project.texts))
    for line in _logical_lines("\n".join(project.texts[file] for file in read)):
        if line.startswith("\t"):
            for target in current:
                bodies[target].append(line.strip().lstrip("@-+ "))
        elif rule := _RULE.match(line):
            current = rule["targets"].split()
            for target in current:
                bodies.setdefault(target, [])
                needs.setdefault(target, []).extend(rule["needs"].replace("|", " ").split())
                if rule["inline"]:
                    bodies[target].append(rule["inline"].strip())
        elif line.strip() and not line.startswith("#"):
            current = []
    return [
        Task(
            name=target,
            command=f"make {target}",
            source=f"{name}: target {target}",
            body="\n".join(body),
            needs=tuple(needs[target]),
        )
        for target, body in bodies.items()
        if not target.startswith((".", "-"))
    ]


def includes(name: str, project: Project) -> tuple[str, ...]:
    """Return the files that a makefile includes by their names."""
    return tuple(_INCLUDE.findall(project.texts[name]))


def _logical_lines(text: str) -> list[str]:
    """Join continued lines, and leave out what stands between `define` and `endef`."""
    found = []
    is_open = False
    for line in text.replace("\r\n", "\n").replace("\\\n", " ").split("\n"):
        if _DEFINE.match(line):
            is_open = True
        elif is_open:
            is_open = not line.startswith("endef")
        else:
            found.append(line)
    return found
