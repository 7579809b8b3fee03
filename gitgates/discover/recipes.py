"""Read makefiles and justfiles, line by line.

Sources: the GNU make manual, 4.2; just.systems/man. Files that are included by a pattern, and
modules of just, are left out.
"""

from __future__ import annotations

import re

from gitgates.discover.project import Project, Task

MAKE = ("GNUmakefile", "makefile", "Makefile")
JUST = ("justfile", "Justfile", "JUSTFILE", ".justfile")

# `a b: c ; recipe`, not `a := b`, and not the target-specific variable `a: b = c`.
_RULE = re.compile(
    r"(?P<targets>[A-Za-z0-9_./-]+(?:[ ]+[A-Za-z0-9_./-]+)*)[ \t]*::?(?![:=])"
    r"(?![ \t]*(?:export[ \t]+|override[ \t]+|private[ \t]+)*[A-Za-z_]\w*[ \t]*(?::{0,3}|\+|\?|!)=)"
    r"(?P<needs>[^;#]*)(?:;(?P<inline>[^#]*))?"
)
_DEFINE = re.compile(
    r"^(?:override[ \t]+|export[ \t]+)*define\b.*?(?:^endef.*?$|\Z)", re.MULTILINE | re.DOTALL
)
_RECIPE = re.compile(
    r"@?(?P<name>[A-Za-z_][\w-]*)(?P<parameters>(?:[ \t][^:\n]*)?):(?!=)(?P<needs>[^#]*)"
)
# What may be left out when the recipe is called: `*rest`, `x="default"`.
_OPTIONAL = re.compile(r"""\*\$?[\w-]+(?:=\S+)?|\+?\$?[\w-]+=(?:"[^"]*"|'[^']*'|\S+)""")
_ARGUMENTS = re.compile(r"\(\s*([\w-]+)[^()]*\)")
_NEED = re.compile(r"[A-Za-z_][\w-]*")
_ATTRIBUTE = re.compile(r"\[(?P<words>[^\]]*)\]\s*$")
_NO_RECIPE = re.compile(r"(?:set|export|alias|import|mod)\b")
_INCLUDES = {
    **dict.fromkeys(MAKE, re.compile(r"^[-s]?include[ \t]+([\w./-]+)[ \t]*$", re.MULTILINE)),
    **dict.fromkeys(JUST, re.compile(r"""^import\??[ \t]+['"]([^'"]+)['"]""", re.MULTILINE)),
}


def included(name: str, project: Project) -> tuple[str, ...]:
    """Return the files that a makefile or justfile includes by their names."""
    return tuple(_INCLUDES[name].findall(project.texts[name]))


def find_make(name: str, project: Project) -> list[Task]:
    """Return the targets of a makefile."""
    bodies: dict[str, list[str]] = {}
    needs: dict[str, list[str]] = {}
    current: list[str] = []
    for line in _DEFINE.sub("", _text(name, project)).split("\n"):
        if line.startswith("\t"):
            for target in current:
                bodies[target].append(line.strip().lstrip("@-+ "))
        elif rule := _RULE.match(line):
            current = rule["targets"].split()
            for target in current:
                inline = [rule["inline"].strip()] if rule["inline"] else []
                bodies.setdefault(target, []).extend(inline)
                needs.setdefault(target, []).extend(rule["needs"].replace("|", " ").split())
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


def find_just(name: str, project: Project) -> list[Task]:
    """Return the recipes of a justfile; one that cannot be called as it is is private."""
    found: list[Task] = []
    is_private = False
    for line in _text(name, project).split("\n"):
        if attribute := _ATTRIBUTE.match(line):
            is_private = is_private or "private" in attribute["words"]
        elif line.startswith((" ", "\t")) and found:
            body = f"{found[-1].body}\n{line.strip().lstrip('@-')}"
            found[-1] = found[-1]._replace(body=body.removeprefix("\n"))
        elif (recipe := _RECIPE.match(line)) and not _NO_RECIPE.match(line):
            has_arguments = _OPTIONAL.sub("", recipe["parameters"]).strip()
            found.append(
                Task(
                    name=recipe["name"],
                    command=f"just {recipe['name']}",
                    source=f"{name}: recipe {recipe['name']}",
                    # `(other "argument")` needs `other`
                    needs=tuple(_NEED.findall(_ARGUMENTS.sub(r"\1", recipe["needs"]))),
                    is_private=bool(is_private or has_arguments or recipe["name"].startswith("_")),
                )
            )
            is_private = False
    return found


def _text(name: str, project: Project) -> str:
    """Return a file with those that it includes, its continued lines joined."""
    read = (name, *(file for file in included(name, project) if file in project.texts))
    text = "\n".join(project.texts[file] for file in read)
    return text.replace("\r\n", "\n").replace("\\\n", " ")
