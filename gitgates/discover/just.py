"""Recipes of just. Source: just.systems/man; modules are not followed."""

from __future__ import annotations

import re

from gitgates.discover.task import Project, Task

FILES = ("justfile", "Justfile", "JUSTFILE", ".justfile")
FIRST_ONLY = True

_RECIPE = re.compile(
    r"@?(?P<name>[A-Za-z_][\w-]*)(?P<parameters>(?:[ \t][^:\n]*)?):(?!=)(?P<needs>[^#]*)"
)
# What may be left out when the recipe is called: `*rest`, `x="default"`.
_OPTIONAL = re.compile(r"""\*\$?[\w-]+(?:=\S+)?|\+?\$?[\w-]+=(?:"[^"]*"|'[^']*'|\S+)""")
_ARGUMENTS = re.compile(r"\(\s*([\w-]+)[^()]*\)")
_NEED = re.compile(r"[A-Za-z_][\w-]*")
_ATTRIBUTE = re.compile(r"\[(?P<words>[^\]]*)\]\s*$")
_IMPORT = re.compile(r"""^import\??[ \t]+['"]([^'"]+)['"]""", re.MULTILINE)
_NO_RECIPE = re.compile(r"(?:set|export|alias|import|mod)\b")


def find(name: str, project: Project) -> list[Task]:
    """Return the recipes of one file; one that cannot be called as it is is private."""
    found: list[Task] = []
    is_private = False
    read = (name, *(file for file in includes(name, project) if file in project.texts))
    text = "\n".join(project.texts[file] for file in read)
    for line in text.replace("\r\n", "\n").replace("\\\n", " ").split("\n"):
        if attribute := _ATTRIBUTE.match(line):
            is_private = is_private or "private" in attribute["words"]
        elif line.startswith((" ", "\t")):
            if found:
                body = f"{found[-1].body}\n{line.strip().lstrip('@-')}"
                found[-1] = found[-1]._replace(body=body.removeprefix("\n"))
        elif (recipe := _RECIPE.match(line)) and not _NO_RECIPE.match(line):
            found.append(_task(recipe, name, is_private=is_private))
            is_private = False
    return found


def includes(name: str, project: Project) -> tuple[str, ...]:
    """Return the files that a justfile imports."""
    return tuple(_IMPORT.findall(project.texts[name]))


def _task(recipe: re.Match[str], file: str, *, is_private: bool) -> Task:
    name = recipe["name"]
    is_callable = not is_private and not name.startswith("_")
    if _OPTIONAL.sub("", recipe["parameters"]).strip():
        is_callable = False
    return Task(
        name=name,
        command=f"just {name}",
        source=f"{file}: recipe {name}",
        # `(other "argument")` needs `other`
        needs=tuple(_NEED.findall(_ARGUMENTS.sub(r"\1", recipe["needs"]))),
        is_private=not is_callable,
    )
