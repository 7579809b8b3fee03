"""Passes of the tools that people use settle, are reused, and end with what the tool has read."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from conftest import Repo
from observed_support import needs_strace
from reuse_support import Checker

from gitgates.core.record import Record
from gitgates.core.types import make_gate

pytestmark = [needs_strace, pytest.mark.thorough, pytest.mark.slow]

PLACES = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
TYPED = "def f(x: int) -> int:\n    return x\n"
DEP = {"node_modules/dep/package.json": '{"main": "index.js"}'}


class Tool(Record):
    """A tool, the files of a small project, and what of these is which. `OUT` is a folder."""

    command: str
    files: dict[str, str]
    source: str
    settings: str  # outside of the repository
    package: str = "node_modules/dep/index.js"  # a file of an installed one
    comment: str = "// more\n"  # to be added to each of them
    scratch: tuple[str, ...] = ()


TOOLS = {
    "ruff": Tool(
        command="$OUT/bin/ruff check",
        files={"a.py": TYPED, "ruff.toml": 'extend = "OUT/base.toml"\n', "OUT/base.toml": ""},
        source="a.py",
        settings="OUT/base.toml",
        package="OUT/bin/ruff",
        comment="# more\n",
    ),
    "mypy": Tool(
        command="mypy --config-file $OUT/mypy.ini a.py",
        files={
            "a.py": f"import dep\n{TYPED}",
            "OUT/mypy.ini": "[mypy]\nmypy_path = $OUT/lib\n",
            "OUT/lib/dep.py": "X = 1\n",
        },
        source="a.py",
        settings="OUT/mypy.ini",
        package="OUT/lib/dep.py",
        comment="# more\n",
    ),
    "pytest": Tool(
        # Another pytest would empty the common folder for temporary files, which is then read.
        command="mkdir -p $OUT/tmp; PYTEST_DEBUG_TEMPROOT=$OUT/tmp PYTHONPATH=$OUT/lib "
        "pytest -q -p no:xdist -c $OUT/pytest.ini --rootdir . .",
        files={
            "test_a.py": "import dep\n\n\ndef test_a(tmp_path):\n    (tmp_path / 'a').touch()\n",
            "OUT/pytest.ini": "[pytest]\n",
            "OUT/lib/dep.py": "X = 1\n",
        },
        source="test_a.py",
        settings="OUT/pytest.ini",
        package="OUT/lib/dep.py",
        comment="# more\n",
    ),
    "tsc": Tool(
        command="tsc",
        files={
            "a.ts": 'import { X } from "dep";\nexport const a: number = X;\n',
            "tsconfig.json": '{"extends": "OUT/base.json", "include": ["*.ts"]}',
            "OUT/base.json": '{"compilerOptions": {"incremental": true, "noEmit": true, '
            '"types": [], "module": "nodenext"}}',
            "node_modules/dep/package.json": '{"main": "index.js", "types": "index.d.ts"}',
            "node_modules/dep/index.d.ts": "export const X: number;\n",
        },
        source="a.ts",
        settings="OUT/base.json",
        package="node_modules/dep/index.d.ts",
    ),
    "eslint": Tool(
        command="eslint --cache .",
        files={
            "a.js": "export const a = 1;\n",
            "eslint.config.mjs": 'import dep from "dep";\nimport rules from "OUT/rules.mjs";\n'
            "export default [{ rules: { ...rules, ...dep } }];\n",
            "OUT/rules.mjs": 'export default { "no-undef": 2 };\n',
            "node_modules/dep/index.js": 'module.exports = { "no-var": 2 };\n',
            **DEP,
        },
        source="a.js",
        settings="OUT/rules.mjs",
    ),
    "jest": Tool(
        command="jest",
        files={
            "a.test.js": 'require("dep");\ntest("a", () => expect(1).toBe(1));\n',
            "jest.config.js": 'module.exports = require("OUT/base.js");\n',
            "OUT/base.js": "module.exports = {};\n",
            "node_modules/dep/index.js": "module.exports = {};\n",
            **DEP,
        },
        source="a.test.js",
        settings="OUT/base.js",
    ),
    "vitest": Tool(
        command="vitest run",
        files={
            "a.test.mjs": 'import "dep";\nimport { expect, test } from "vitest";\n'
            'test("a", () => expect(1).toBe(1));\n',
            "vitest.config.mjs": 'export { default } from "OUT/base.mjs";\n',
            "OUT/base.mjs": "export default {};\n",
            "node_modules/dep/index.js": "module.exports = {};\n",
            **DEP,
        },
        source="a.test.mjs",
        settings="OUT/base.mjs",
        scratch=("node_modules/.vite/",),
    ),
}


@pytest.mark.parametrize("name", TOOLS)
def test_the_passes_of_a_tool(repo: Repo, out: Path, name: str) -> None:
    found, tool = shutil.which(name, path=PLACES), TOOLS[name]
    if not found:
        pytest.skip(f"{name} is not installed")

    def path(file: str) -> Path:
        return Path(file.replace("OUT", str(out))) if file.startswith("OUT") else repo.path / file

    for file, text in tool.files.items():
        path(file).parent.mkdir(parents=True, exist_ok=True)
        path(file).write_text(text.replace("OUT", str(out)).replace("$" + str(out), "$OUT"))
    (out / "bin").mkdir()
    if name == "ruff":
        shutil.copy(found, out / "bin")
    _link_modules(repo.path, found)
    repo.write(".gitignore", "node_modules\n.*cache\n*.tsbuildinfo\n")
    repo.commit_all("first")
    at = Checker(repo, out)
    at.path = PLACES
    command = f"echo >> $OUT/log; {tool.command}"
    gate = make_gate(name=name, command=command, reuse=True, scratch=tool.scratch)
    for changed in ("", tool.source, tool.settings, tool.package):
        if changed:
            with path(changed).open("a") as changed_file:
                changed_file.write(tool.comment if not changed.endswith(".json") else "\n")
        statuses = {at.run(gate)[0].status for _ in range(3)}
        runs = len(at.log())
        assert (statuses, runs in (1, 2)) == ({"passed"}, True), (changed, runs, at.messages.texts)


def _link_modules(root: Path, program: str) -> None:
    """Link the packages that are installed beside a program of npm."""
    top, mark, _ = os.path.realpath(program).partition("/node_modules/")
    for package in Path(top, "node_modules").iterdir() if mark else ():
        if not package.name.startswith("."):
            (root / "node_modules" / package.name).symlink_to(package)
