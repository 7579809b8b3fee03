"""What it costs to observe a gate, and what it spares: mypy, pytest and ruff on forty modules.

Each round runs the gate plain, observed, and once more, when its pass is reused; of a run, the
gate's own caches are as the one before has left them. The table shows medians, and those of the
ratios within a round. `--check` exits 1 where mypy or pytest takes more than 1.25 times as long.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 9
MODULES = 40
MOST = 1.25
GATES = {"mypy": "mypy app tests", "pytest": "pytest -q -p no:benchmark", "ruff": "ruff check"}
SETTINGS = '[tool.pytest.ini_options]\npythonpath = ["."]\n'
GATE = '[tool.gitgates.gates.{0}]\ncommand = "{1}"\nreuse = true\n'
MODULE = "def f{0}(x: int) -> int:\n    return x + {0}\n"
TEST = "from app.m{0} import f{0}\n\n\ndef test_{0}() -> None:\n    assert f{0}(1) == {0} + 1\n"


def fill(root: Path) -> None:
    """Make a project."""
    for folder in ("app", "tests"):
        (root / folder).mkdir()
    (root / "app" / "__init__.py").touch()
    for number in range(MODULES):
        (root / "app" / f"m{number}.py").write_text(MODULE.format(number))
        (root / "tests" / f"test_m{number}.py").write_text(TEST.format(number))
    gates = "".join(GATE.format(*gate) for gate in GATES.items())
    hook = f"[tool.gitgates.hooks.manual]\ngates = {[*GATES]}\n"
    (root / "pyproject.toml").write_text(SETTINGS + gates + hook)
    (root / ".gitignore").write_text("__pycache__\n.*_cache\n")
    subprocess.run(("git", "init", "-q"), cwd=root, check=True)
    subprocess.run(("git", "add", "."), cwd=root, check=True)


def run(root: Path, gate: str, **env: str) -> tuple[float, bool]:
    """Run a gate; return its seconds, and whether its pass was reused."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    before = time.monotonic()
    done = subprocess.run(
        (sys.executable, "-m", "gitgates", "run", gate),
        cwd=root,
        env={**os.environ, "PATH": path, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return time.monotonic() - before, "reused" in done.stdout


def rounds(root: Path, gate: str) -> list[tuple[float, float, float]]:
    """Return the seconds of each round: plain, observed, reused."""
    found = []
    for _ in range(2):  # its caches settle
        run(root, gate)
    for _ in range(ROUNDS):
        for runs in (root / ".git/gitgates/proofs/observed").iterdir():
            if runs.is_dir():  # what is known of files stays
                shutil.rmtree(runs)
        plain, _reused = run(root, gate, GITGATES_REUSE="0")
        observed, was_reused = run(root, gate)
        again, is_reused = run(root, gate)
        if was_reused or not is_reused:
            raise SystemExit(f"{gate}: not observed, or not reused")
        found.append((plain, observed, again))
    return found


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    print(f"observed gates, {MODULES} modules and tests, {ROUNDS} rounds")
    print(f"{'':8}{'plain':>9}{'observed':>10}{'ratio':>7}{'reused':>9}{'ratio':>7}")
    late = []
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder))
        for gate in GATES:
            found = rounds(Path(folder), gate)
            plain, observed, again = (
                statistics.median(column) for column in zip(*found, strict=True)
            )
            ratio = statistics.median(one[1] / one[0] for one in found)
            spared = statistics.median(one[2] / one[0] for one in found)
            print(f"{gate:8}{plain:8.2f}s{observed:9.2f}s{ratio:7.2f}{again:8.2f}s{spared:7.2f}")
            late += [gate] if gate != "ruff" and ratio > MOST else []
    if check and late:
        raise SystemExit(f"more than {MOST} times as long: {', '.join(late)}")


if __name__ == "__main__":
    main()
