"""What it costs to observe a gate, and what it spares: mypy, pytest and ruff on 200 files.

The project is that of `make bench-docs`. Each round runs the gate plain, observed, and once more,
when its pass is reused; of a run, the gate's own caches are as the one before has left them, but
`mypy, cold` has none. The table shows medians, and those of the ratios within a round. `--check`
exits 1 where pytest, or mypy without its cache, takes more than 1.25 times as long. A mypy that
finds all in its cache does little else than ask for files, so that is shown, and has no bar.
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

sys.path.append(str(Path(__file__).parent / "peers"))
from project import write

ROUNDS = 7
MOST = 1.25
GATES = {
    "mypy": "mypy",
    "mypy, cold": "mypy",
    "pytest": "pytest -q -p no:benchmark",
    "ruff": "ruff check",
}
BOUND = ("mypy, cold", "pytest")
GATE = '[tool.gitgates.gates.{0}]\ncommand = "{1}"\nreuse = true\n'


def fill(root: Path) -> None:
    """Make the project, with its gates."""
    subprocess.run(("git", "init", "-q"), cwd=root, check=True)
    write(root)
    gates = {name_of(title): command for title, command in GATES.items()}
    text = "".join(GATE.format(*gate) for gate in gates.items())
    hook = f"[tool.gitgates.hooks.manual]\ngates = {[*gates]}\n"
    (root / "pyproject.toml").write_text(text + hook)
    subprocess.run(("git", "add", "."), cwd=root, check=True)


def name_of(title: str) -> str:
    """Return the gate that a row is about."""
    return title.partition(",")[0]


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


def rounds(root: Path, title: str) -> list[tuple[float, float, float]]:
    """Return the seconds of each round: plain, observed, reused."""
    found, gate = [], name_of(title)

    def begin() -> None:
        if title != gate:
            shutil.rmtree(root / ".mypy_cache")

    for _ in range(2):  # its caches settle
        run(root, gate)
    for _ in range(ROUNDS):
        for runs in (root / ".git/gitgates/proofs/observed").iterdir():
            if runs.is_dir():  # what is known of files stays
                shutil.rmtree(runs)
        begin()
        plain, _reused = run(root, gate, GITGATES_REUSE="0")
        begin()
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
    print(f"observed gates, 200 files, {ROUNDS} rounds")
    print(f"{'':11}{'plain':>9}{'observed':>10}{'ratio':>7}{'reused':>9}{'ratio':>7}")
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
            print(f"{gate:11}{plain:8.2f}s{observed:9.2f}s{ratio:7.2f}{again:8.2f}s{spared:7.2f}")
            late += [gate] if gate in BOUND and ratio > MOST else []
    if check and late:
        raise SystemExit(f"more than {MOST} times as long: {', '.join(late)}")


if __name__ == "__main__":
    main()
