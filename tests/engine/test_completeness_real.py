"""What real tools say of how much they have looked at: the same as those whose output is kept.

Tools that npm installs are in `.venv/checkers`, or in PATH, as the others.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from gitgates.core.types import GateResult, make_gate
from gitgates.engine.findings.baseline import failures_in

ROOT = Path(__file__).resolve().parents[2]
NPM = ROOT / ".venv/checkers/node_modules"
PATH = os.pathsep.join([str(Path(sys.executable).parent), str(NPM / ".bin"), os.environ["PATH"]])
HOME = pwd.getpwuid(os.getuid()).pw_dir  # rustup has its toolchains there; tests have another one
ENV = {
    "NO_COLOR": "1",
    "RUFF_NO_CACHE": "true",
    "MYPY_CACHE_DIR": os.devnull,
    "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", f"{HOME}/.rustup"),
}
pytestmark = [pytest.mark.slow, pytest.mark.thorough]

STRICT = '{"compilerOptions": {"strict": true, "noEmit": true, "types": []}, "include": ["src"]}'
RULES = 'export default [{rules: {"no-undef": 2}}];\n'
CRATE = '[package]\nname = "demo"\nversion = "0.1.0"\nedition = "2021"\n'
UNIT = "#[test]\nfn unit() {\n    assert!(false);\n}\n"


class Case(NamedTuple):
    """One run of a tool on files. `expected`: how many are known, or how it begins why none are."""

    command: str
    preset: str
    files: dict[str, str]
    expected: int | str


CASES = [
    Case("pytest -q", "pytest", {"test_a.py": "def test_a():\n    assert 0\n"}, 1),
    Case(
        "pytest -q -rf",
        "pytest",
        {
            "conftest.py": "import pytest\n\n\n@pytest.fixture\ndef f():\n    raise OSError\n",
            "test_a.py": "def test_a():\n    assert 0\n\n\ndef test_b(f):\n    pass\n",
        },
        "it says that it has found 2, and 1 are",
    ),
    Case("ruff check --isolated .", "ruff", {"a.py": "import os\n", "b.py": "import sys\n"}, 2),
    Case(
        "ruff check --isolated .",
        "ruff",
        {"a.py": "import os\n", "b.py": "def f(:\n"},
        "others may be behind `b.py",
    ),
    Case("mypy .", "mypy", {"a.py": 'x: int = ""\n'}, 1),
    Case(
        "mypy .",
        "mypy",
        {"a.py": 'x: int = ""\n', "b.py": "def f(:\n"},
        "it has not looked at everything: `errors prevented further checking`",
    ),
    Case("tsc", "tsc", {"tsconfig.json": STRICT, "src/a.ts": 'export const x: number = "";\n'}, 1),
    Case(
        "tsc",
        "tsc",
        {
            "tsconfig.json": STRICT,
            "src/a.ts": 'export const x: number = "";\n',
            "src/b.ts": "a = ;",
        },
        "others may be behind `src/b.ts:1:5: TS1109",
    ),
    Case("eslint .", "eslint", {"eslint.config.mjs": RULES, "a.js": "foo();\nbar();\n"}, 2),
    Case(
        "eslint .",
        "eslint",
        {"eslint.config.mjs": RULES, "a.js": "foo();\n", "b.js": "let = ;\nbar();\n"},
        "others may be behind `b.js:1:1: Parsing error",
    ),
    Case(
        f"eslint -f {NPM}/@microsoft/eslint-formatter-sarif/sarif.js .",
        "sarif",
        {"eslint.config.mjs": RULES, "a.js": "foo();\n", "b.js": "let = ;\nbar();\n"},
        "its log has an error of the tool: `Parsing error",
    ),
    Case("prettier --check src", "prettier", {"src/a.js": "a  = 1\n", "src/b.js": "b  = 1\n"}, 2),
    Case(
        "prettier --check src",
        "prettier",
        {"src/a.js": "a  = 1\n", "src/b.js": "b = ;\n"},
        "it has not looked at everything: `[error] src/b.js",
    ),
    Case("biome lint src", "biome", {"src/a.js": "debugger;\n"}, 1),
    Case(
        "biome lint --max-diagnostics=1 src",
        "biome",
        {"src/a.js": "debugger;\n", "src/b.js": "debugger;\n"},
        "it has not looked at everything: `Diagnostics not shown: 1`",
    ),
    Case("markdownlint-cli2 '*.md'", "markdownlint", {"a.md": "# A\n\n# B\n"}, 1),
    Case(
        "markdownlint-cli2 '*.md'",
        "markdownlint",
        {"a.md": "# A\n\n# B\n", "b:c.md": "# A\n\n# B\n"},
        "it says that it has found 2, and 1 are",
    ),
    Case(
        "cargo test -q --offline --no-fail-fast",
        "cargo",
        {"Cargo.toml": CRATE, "src/lib.rs": UNIT, "tests/it.rs": UNIT},
        2,
    ),
    Case(
        "cargo test -q --offline",
        "cargo",
        {"Cargo.toml": CRATE, "src/lib.rs": UNIT, "tests/it.rs": UNIT},
        "without `--no-fail-fast`",
    ),
    Case("shellcheck *.sh", "shellcheck", {"a.sh": "#!/bin/sh\necho $1\n"}, 1),
    Case(
        "shellcheck *.sh",
        "shellcheck",
        {"a.sh": "#!/bin/sh\necho $1\n", "b.sh": "#!/bin/sh\nif [ ; then\n"},
        "others may be behind `b.sh:2:4: SC1073",
    ),
    Case("terraform validate -no-color", "terraform", {"a.tf": "output x {}\n"}, "terraform does"),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.preset}-{case.expected}" for case in CASES])
def test_a_real_tool_tells_how_much_it_has_looked_at(case: Case, tmp_path: Path) -> None:
    tool = case.command.split()[0]
    if not shutil.which(tool, path=PATH):
        pytest.skip(f"there is no {tool} in PATH, nor in .venv/checkers")
    for name, content in case.files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        case.command,
        shell=True,
        cwd=tmp_path,
        env={**env, **ENV, "PATH": PATH},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    gate = make_gate(name="g", command=case.command, failures=case.preset)
    result = GateResult(gate="g", status="failed", exit_status=done.returncode, output=done.stdout)
    known = failures_in(gate, result, str(tmp_path), {})
    if isinstance(case.expected, int):
        assert not isinstance(known, str), (known, done.stdout.decode())
        assert len(known) == case.expected
    else:
        assert str(known).startswith(case.expected), done.stdout.decode()
