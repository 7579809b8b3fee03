"""What an installed pre-commit hook costs: ours, other managers', and a bare interpreter.

Each hook runs the same three gates, `true`, on one staged file, as git would start it. The runs are
interleaved, so a busy moment hits all alike; the table shows medians. `--check` exits 1 where
our hook costs more than 25 ms above the interpreter, or more than 1.3 times prek's.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from gitgates.setup.install.githooks import render

MOST_ABOVE_BARE_S = 0.025
MOST_OF_PREK = 1.3

GATES = """\
[tool.gitgates.gates.one]
command = "true"
[tool.gitgates.gates.two]
command = "true"
[tool.gitgates.gates.three]
command = "true"
[tool.gitgates.hooks.pre-commit]
gates = ["one", "two", "three"]
"""
NO_GATES = '[tool.gitgates.gates.one]\ncommand = "true"\n'
_HOOK = "{{id: {0}, name: {0}, entry: 'true', language: system, pass_filenames: false}}"
FRAMEWORK = "repos:\n- repo: local\n  hooks:\n" + "".join(
    f"  - {_HOOK.format(name)}\n" for name in ("one", "two", "three")
)
LEFTHOOK = "pre-commit:\n  jobs:\n" + "".join(
    f"  - {{name: {name}, run: 'true'}}\n" for name in ("one", "two", "three")
)


class Runner(NamedTuple):
    """One thing to measure: a command, and the folder that it runs in."""

    name: str
    argv: tuple[str, ...]
    folder: Path


def main() -> int:
    """Measure, print the table, and return the exit status."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="gitgates-bench-") as folder:
        bench = Bench(Path(folder))
        times = measure(bench.runners(), options.runs, bench.env)
    print(table(times))
    return judge(times) if options.check else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--runs", type=int, default=40, help="runs of each (default 40)")
    parser.add_argument("--check", action="store_true", help="exit 1 where our hook is too slow")
    return parser.parse_args()


class Bench:
    """The repositories that hooks are installed in, all the same but for the hooks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("GIT", "PRE_COMMIT"))},
            "PATH": path,
            "HOME": str(folder),
            "PRE_COMMIT_HOME": str(folder / "pre-commit"),
            "PREK_HOME": str(folder / "prek"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.env.pop("SKIP", None)

    def runners(self) -> list[Runner]:
        """Return everything to measure; other managers only where they are installed."""
        ours = self._repository("gitgates", "pyproject.toml", GATES)
        idle = self._repository("idle", "pyproject.toml", NO_GATES)
        found = [
            Runner("bare interpreter", (sys.executable, "-I", "-S", "-c", "pass"), ours),
            Runner("gitgates", self._our_hook(ours), ours),
            Runner("gitgates, no gates", self._our_hook(idle), idle),
        ]
        for name, file, text in (
            ("prek", ".pre-commit-config.yaml", FRAMEWORK),
            ("pre-commit", ".pre-commit-config.yaml", FRAMEWORK),
            ("lefthook", "lefthook.yml", LEFTHOOK),
        ):
            if shutil.which(name, path=self.env["PATH"]):
                folder = self._repository(name, file, text)
                self._run(name, "install", folder=folder)
                found.append(Runner(name, (str(folder / ".git/hooks/pre-commit"),), folder))
        return found

    def fill(self, folder: Path) -> None:
        """Write and stage what the hooks are about."""
        (folder / "a.py").write_text("a = 1\n")
        self._run("git", "add", ".", folder=folder)

    def _repository(self, name: str, file: str, text: str) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True)
        self._run("git", "init", "-q", folder=folder)
        (folder / file).write_text(text)
        self.fill(folder)
        return folder

    def _our_hook(self, folder: Path) -> tuple[str, ...]:
        shim = folder / ".git" / "hooks" / "pre-commit"
        shim.write_bytes(render("pre-commit"))
        shim.chmod(0o755)
        return (str(shim),)

    def _run(self, *argv: str, folder: Path) -> None:
        done = subprocess.run(argv, cwd=folder, env=self.env, capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(f"{shlex.join(argv)}: {done.stderr.decode()}")


def measure(runners: list[Runner], runs: int, env: dict[str, str]) -> dict[str, list[float]]:
    """Return name → seconds of each run. The first run of each warms caches and is left out."""
    times: dict[str, list[float]] = {runner.name: [] for runner in runners}
    for turn in range(runs + 1):
        for runner in runners if turn % 2 else reversed(runners):
            start = time.perf_counter()
            done = subprocess.run(
                runner.argv,
                cwd=runner.folder,
                env={**env, "GIT_INDEX_FILE": ".git/index"},
                capture_output=True,
                check=False,
            )
            took = time.perf_counter() - start
            if done.returncode:
                said = (done.stdout + done.stderr).decode()
                raise SystemExit(f"{runner.name}: exit status {done.returncode}\n{said}")
            if turn:
                times[runner.name].append(took)
    return times


def table(times: dict[str, list[float]]) -> str:
    """Return the medians, what is above the bare interpreter, and the ratio to our hook."""
    medians = {name: statistics.median(runs) for name, runs in times.items()}
    bare, ours = medians["bare interpreter"], medians["gitgates"]
    runs = len(times["gitgates"])
    lines = [f"an installed pre-commit hook with three gates `true`; median of {runs} runs"]
    lines.append(f"{'':20}{'median':>10}{'fastest':>10}{'above bare':>12}{'gitgates = 1':>14}")
    lines += [
        f"{name:20}{_ms(median):>10}{_ms(min(times[name])):>10}{_ms(median - bare):>12}"
        f"{median / ours:>14.2f}"
        for name, median in medians.items()
    ]
    return "\n".join(lines)


def judge(times: dict[str, list[float]]) -> int:
    """Return 1, and say why, where our hook costs more than it may."""
    medians = {name: statistics.median(runs) for name, runs in times.items()}
    above = medians["gitgates"] - medians["bare interpreter"]
    too_slow = []
    if above > MOST_ABOVE_BARE_S:
        too_slow.append(f"{_ms(above)} above the interpreter; at most {_ms(MOST_ABOVE_BARE_S)}")
    if "prek" in medians and (ratio := medians["gitgates"] / medians["prek"]) > MOST_OF_PREK:
        too_slow.append(f"{ratio:.2f} times prek; at most {MOST_OF_PREK}")
    for reason in too_slow:
        print(f"too slow: {reason}", file=sys.stderr)
    return 1 if too_slow else 0


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


if __name__ == "__main__":
    sys.exit(main())
