"""A feature can be removed: delete its folder, its rows and its page, and all others work.

Modules of tests that name the feature are left out, as they test two features together.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from release_support import copied

FEATURES = {"advice": "advice", "guard": "guard", "intents": "intent", "trace": "trace"}
# Tests of two features together, in modules that do not name the other one.
TOGETHER = {
    "guard": "test_a_command_that_was_refused_has_not_run",
    "trace": "test_the_context_has_what_was_last_done_for_the_intent",
}
_LEAST = 1000  # tests of the others, so that a pass has looked


def _remove(checkout: Path, feature: str) -> None:
    """Remove the folder of a feature, its tests and pages, its policies and its verbs."""
    shutil.rmtree(checkout / "gitgates/features" / feature)
    shutil.rmtree(checkout / "tests/features" / feature)
    for page in (checkout / "docs/how-to").glob(f"{feature}*.md"):
        page.unlink()
    table = checkout / "gitgates/core/policy.py"
    lines = table.read_text().splitlines(keepends=True)
    for row in reversed(_rows(table.read_text())):
        if f"gitgates.features.{feature}." in ast.unparse(row):
            del lines[row.lineno - 1 : row.end_lineno]
    table.write_text("".join(lines))
    group = checkout / "gitgates/cli/__init__.py"
    verbs = re.findall(rf'^    "([\w-]+)": "{feature}\.', group.read_text(), re.MULTILINE)
    kept = [
        line
        for line in group.read_text().splitlines(keepends=True)
        if line.strip().partition(":")[0].strip('"') not in verbs
    ]
    group.write_text("".join(kept))


def _rows(text: str) -> list[ast.expr]:
    """Return the rows of the table of policies."""
    for node in ast.parse(text).body:
        match node:
            case ast.AnnAssign(target=ast.Name(id="POLICIES"), value=ast.Tuple(elts=rows)):
                return rows
    raise AssertionError("there is no table of policies")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("feature", FEATURES)
def test_the_others_work_without(tmp_path: Path, feature: str) -> None:
    checkout = copied(tmp_path, "gitgates/features/remote/protos.binpb")
    subprocess.run(["git", "init", "-q"], cwd=checkout, check=True)
    _remove(checkout, feature)
    modules = [
        str(path.relative_to(checkout))
        for path in sorted((checkout / "tests/features").rglob("test_*.py"))
        if FEATURES[feature] not in path.read_text().lower()
    ]
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    others = ["-k", f"not {TOGETHER[feature]}"] if feature in TOGETHER else []
    env = {**os.environ, "PYTHONPATH": str(checkout), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [*argv, "-m", "not slow and not thorough and not nightly", *others, *modules],
        cwd=checkout,
        env={name: value for name, value in env.items() if not name.startswith("PYTEST_XDIST")},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed, done.stdout
    assert int(passed[1]) > _LEAST
