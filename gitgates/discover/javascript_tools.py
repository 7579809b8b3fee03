"""JavaScript and TypeScript: the tools that a project has evidently set up."""

from __future__ import annotations

from gitgates.discover.formats import read_json, table
from gitgates.discover.npm import SCOPE, local_tool, package_manager
from gitgates.discover.task import BadFile, Project, Task, defaults

LANGUAGE = "JavaScript or TypeScript"
MARKERS = ("package.json", "tsconfig.json", "deno.json")
READS = ("package.json", "tsconfig.json")

_SCRIPTS = tuple(f"*.{end}" for end in ("js", "jsx", "cjs", "mjs", "ts", "tsx", "cts", "mts"))
_TYPED = ("*.ts", "*.tsx", "*.cts", "*.mts", "tsconfig*.json")
# tool → how its configuration file's name starts
_CONFIGS = {
    "biome": ("biome.json",),
    "eslint": ("eslint.config.", ".eslintrc"),
    "prettier": ("prettier.config.", ".prettierrc"),
    "vitest": ("vitest.config.",),
    "jest": ("jest.config.",),
}
_KEYS = {"eslintConfig": "eslint", "prettier": "prettier", "jest": "jest"}


def find_defaults(project: Project) -> list[Task]:
    """Return a task for each tool that the project's files show to be in use."""
    signs = _signs(project)
    manager = package_manager(_package(project), project)
    tools = (
        ("format", "prettier --check --ignore-unknown", "prettier", (), True),
        ("lint", "biome check", "biome", (), False),
        ("lint", "eslint .", "eslint", _SCRIPTS, False),
        ("typecheck", "tsc --noEmit", "tsc", _TYPED, False),
        ("test", "vitest run", "vitest", (), False),
        ("test", "jest", "jest", (), False),
    )
    return defaults(tools, signs, SCOPE, lambda command: local_tool(manager, command))


def _signs(project: Project) -> dict[str, str]:
    found = {
        tool: name
        for tool, starts in _CONFIGS.items()
        for name in sorted(project.names)
        if name.startswith(starts)
    }
    for key, tool in _KEYS.items():
        if key in _package(project):
            found[tool] = f"package.json: {key}"
    # With `references`, `tsc --noEmit` looks at nothing.
    if '"references"' not in project.texts.get("tsconfig.json", '"references"'):
        found["tsc"] = "tsconfig.json"
    return found


def _package(project: Project) -> dict[str, object]:
    try:
        return table(read_json(project.texts.get("package.json", "{}")))
    except BadFile:
        return {}
