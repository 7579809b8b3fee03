"""A push from a dirty tree with the tools that projects use: what is committed decides.

Each project installs itself, or a package of its workspace, in its environment. In the working tree
that leads to the uncommitted fix; in a private checkout, it must not. No network is needed.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Repo

pytestmark = [pytest.mark.thorough, pytest.mark.slow]

PYPROJECT = """
[project]
name = "app"
version = "1"
requires-python = ">=3.9"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
# The least that builds an editable wheel, so that nothing has to be fetched.
BACKEND = """
import os, zipfile
def build_wheel(folder, settings=None, metadata=None, editable=False):
    name = "app-1-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for path, text in {
            "app.pth": os.path.abspath("src"),
            "app-1.dist-info/METADATA": "Metadata-Version: 2.1\\nName: app\\nVersion: 1\\n",
            "app-1.dist-info/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\n"
            "Root-Is-Purelib: true\\nTag: py3-none-any\\n",
            "app-1.dist-info/RECORD": "",
        }.items():
            wheel.writestr(path, text)
    return name
def build_editable(folder, settings=None, metadata=None):
    return build_wheel(folder)
"""
PYTHON = {"pyproject.toml": PYPROJECT, "backend.py": BACKEND, ".gitignore": ".venv/\n"}
CHECK_PYTHON = "python -c 'import value; assert value.x == 1'"
UV_LOCK = (
    'version = 1\nrevision = 3\nrequires-python = ">=3.9"\n\n'
    '[[package]]\nname = "app"\nversion = "1"\nsource = { editable = "." }\n'
)


def package(**fields: Any) -> str:
    return json.dumps({"version": "1.0.0", "private": True, **fields})


NODE = {
    ".gitignore": "node_modules/\n",
    "check.js": "process.exit(require('value') === 1 ? 0 : 1)",
    "packages/value/package.json": package(name="value", main="index.js"),
}
NPM_LOCK = json.dumps(
    {
        "name": "root",
        "lockfileVersion": 3,
        "requires": True,
        "packages": {
            "": {"name": "root", "workspaces": ["packages/*"]},
            "node_modules/value": {"resolved": "packages/value", "link": True},
            "packages/value": {"version": "1.0.0"},
        },
    }
)
PNPM_LOCK = """\
lockfileVersion: '9.0'
settings:
  autoInstallPeers: true
  excludeLinksFromLockfile: false
importers:
  .:
    dependencies:
      value:
        specifier: workspace:*
        version: link:packages/value
  packages/value: {}
"""


class Kind(NamedTuple):
    """A project: its files, how it is installed, and the gate; what is right and wrong in it."""

    tool: str
    files: dict[str, str]
    setup: str
    gate: str
    name: str
    right: str
    wrong: str


PY, JS = ("src/value.py", "x = 1\n", "x = 2\n"), ("packages/value/index.js", "1", "2")
JS = (JS[0], "module.exports = 1\n", "module.exports = 2\n")
KINDS = {
    "uv": Kind(
        *("uv", {**PYTHON, "uv.lock": UV_LOCK}, "uv sync --locked --offline"),
        *(f"uv run --offline {CHECK_PYTHON}", *PY),
    ),
    "an active environment": Kind(
        *("python3", PYTHON, "python3 -m venv .venv && .venv/bin/pip install --no-index -e ."),
        *(CHECK_PYTHON, *PY),
    ),
    "npm": Kind(
        "npm",
        {
            **NODE,
            "package.json": package(name="root", workspaces=["packages/*"]),
            "package-lock.json": NPM_LOCK,
        },
        *("npm ci --offline --no-audit", "node check.js", *JS),
    ),
    "pnpm": Kind(
        "pnpm",
        {
            **NODE,
            "package.json": package(name="root", dependencies={"value": "workspace:*"}),
            "pnpm-workspace.yaml": "packages: ['packages/*']\n",
            "pnpm-lock.yaml": PNPM_LOCK,
        },
        *("pnpm install --frozen-lockfile --offline", "node check.js", *JS),
    ),
    "cargo": Kind(
        "cargo",
        {
            ".gitignore": "target/\n",
            "Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n',
            "Cargo.lock": 'version = 3\n\n[[package]]\nname = "app"\nversion = "0.1.0"\n',
            "tests/t.rs": "#[test]\nfn t() { assert_eq!(app::x(), 1) }\n",
        },
        *("", "cargo test -q --offline", "src/lib.rs"),
        *("pub fn x() -> i32 { 1 }\n", "pub fn x() -> i32 { 2 }\n"),
    ),
    "go": Kind(
        "go",
        {
            "go.mod": "module app\n",
            "t_test.go": 'package app\nimport "testing"\n'
            "func TestX(t *testing.T) { if X() != 1 { t.Fatal() } }\n",
        },
        *("", "go test ./...", "x.go"),
        *("package app\nfunc X() int { return 1 }\n", "package app\nfunc X() int { return 2 }\n"),
    ),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_is_committed_decides(
    repo: Repo, kind: Kind, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if not shutil.which(kind.tool):
        pytest.skip(f"{kind.tool} is not installed")
    setup = f"[worktree]\nsetup = '''{kind.setup}'''\n" if kind.setup else ""
    gate = f"[gates.test]\ncommand = '''{kind.gate}'''\n[hooks.pre-push]\ngates = ['test']\n"
    for name, text in {**kind.files, kind.name: kind.right}.items():
        repo.write(name, text)
    (repo.path / "gitgates.toml").write_text(setup + gate)
    repo.commit_all("first")
    repo.add_origin()
    repo.shim("pre-push")
    if kind.setup:
        assert repo.ask("sh", "-c", kind.setup).returncode == 0
    # The home folder is that of the test.
    rustup = Path(pwd.getpwuid(os.getuid()).pw_dir, ".rustup")
    monkeypatch.setenv("RUSTUP_HOME", os.environ.get("RUSTUP_HOME", str(rustup)))
    if "active" in request.node.callspec.id:
        monkeypatch.setenv("VIRTUAL_ENV", f"{repo.path}/.venv")
        monkeypatch.setenv("PATH", f"{repo.path}/.venv/bin", prepend=":")
    environment = {path for path in Path(repo.path).rglob("*") if ".git" not in path.parts}
    repo.write(kind.name, kind.wrong)
    repo.commit_all("wrong")
    repo.write(kind.name, kind.right)
    done = repo.ask("git", "push", "origin", "main")
    assert done.returncode == 1, done.stderr
    assert b"blocked by `test`" in done.stderr
    assert (b"gitgates: private checkout: `" in done.stderr) is bool(kind.setup)
    repo.commit_all("right")
    repo.write(kind.name, kind.wrong)
    done = repo.ask("git", "push", "origin", "main")
    assert done.returncode == 0, done.stderr
    assert b"private checkout: `" not in done.stderr  # it is installed
    assert {path for path in Path(repo.path).rglob("*") if ".git" not in path.parts} == environment
