"""Recipes of just. Source: just.systems/man; imported files and modules are not followed."""

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
_ATTRIBUTE = re.compile(r"\[(?P<words>[^\]]*)\]\s*$")
_NO_RECIPE = re.compile(r"(?:set|export|alias|import|mod)\b")


def find(name: str, project: Project) -> list[Task]:
    """Return the recipes of one file that can be called without arguments."""
    found: list[Task] = []
    is_private = False
    for line in project.texts[name].replace("\r\n", "\n").replace("\\\n", " ").split("\n"):
        if attribute := _ATTRIBUTE.match(line):
            is_private = is_private or "private" in attribute["words"]
        elif line.startswith((" ", "\t")):
            if found:
                body = f"{found[-1].body} && {line.strip().lstrip('@-')}"
                found[-1] = found[-1]._replace(body=body.removeprefix(" && "))
        elif (recipe := _RECIPE.match(line)) and not _NO_RECIPE.match(line):
            found.append(_task(recipe, name, is_private=is_private))
            is_private = False
    return [task for task in found if task.command]


def _task(recipe: re.Match[str], file: str, *, is_private: bool) -> Task:
    name = recipe["name"]
    is_callable = not is_private and not name.startswith("_")
    if _OPTIONAL.sub("", recipe["parameters"]).strip():
        is_callable = False
    return Task(
        name=name,
        command=f"just {name}" if is_callable else "",
        source=f"{file}: recipe {name}",
        needs=tuple(word for word in recipe["needs"].split() if word != "&&"),
    )
