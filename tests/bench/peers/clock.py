"""Time commands with hyperfine, in an environment that is the same for all of them.

Each command is timed once a round, and every other round goes backwards, so that a busy moment
hits all alike. A command may look different each time: `prepare` and `check` are not in its time.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent.parent
NODE_MODULES = ROOT / ".venv/managers/node_modules"
_KEPT = ("LANG", "LC_ALL", "LOGNAME", "SHELL", "TMPDIR", "USER")
_GITCONFIG = """\
[user]
name = Bench
email = bench@example.invalid
[gc]
auto = 0
[init]
defaultBranch = main
"""

_OF_HYPERFINE = ("HYPERFINE_RANDOMIZED_ENVIRONMENT_OFFSET", "HYPERFINE_ITERATION")


class Wrong(SystemExit):
    """Something measured did not do what it says: there is no figure of it."""


class Sample(NamedTuple):
    """One run: seconds on the clock, and of the processors."""

    seconds: float
    cpu_seconds: float


class Case(NamedTuple):
    """One thing to measure, and how to see that it did what it says."""

    name: str
    folder: Path
    command: str  # for sh, which is replaced by it
    prepare: Callable[[int], None]  # gets the number of the round, from 0
    check: Callable[[int, str], None]  # and what the command has printed
    env: tuple[tuple[str, str], ...] = ()


class Scenario(NamedTuple):
    """What is measured with every peer."""

    key: str
    title: str
    cases: list[Case]
    rounds: int
    warm_up: bool = False  # the first round is left out


class Clock:
    """A folder for everything, and the environment that all commands run in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hyperfine = shutil.which("hyperfine")
        home = folder / "home"
        home.mkdir()
        (folder / "gitconfig").write_text(_GITCONFIG)
        path = (Path(sys.executable).parent, NODE_MODULES / ".bin", os.environ["PATH"])
        self.env = {
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            "PATH": os.pathsep.join(map(str, path)),
            "HOME": str(home),
            "GIT_CONFIG_GLOBAL": str(folder / "gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GITGATES_POOL": str(folder / "pool"),
            "PRE_COMMIT_HOME": str(folder / "pre-commit"),
            "PREK_HOME": str(folder / "prek"),
            "NO_COLOR": "1",
            "npm_config_update_notifier": "false",
        }
        (folder / "pool").mkdir(mode=0o700)

    def run(self, *argv: str | Path, cwd: Path, stdin: str = "", fails: bool = False) -> str:
        """Run a program that is not measured; return what it printed.

        Raises Wrong if it fails, or with `fails`, if it does not.
        """
        done = subprocess.run(
            argv, cwd=cwd, env=self.env, input=stdin.encode(), capture_output=True, check=False
        )
        said = (done.stdout + done.stderr).decode(errors="replace")
        if bool(done.returncode) != fails:
            how = f"exit status {done.returncode}"
            raise Wrong(f"{shlex.join(map(str, argv))} in {cwd}: {how}\n{said}")
        return said

    def play(self, scenario: Scenario) -> dict[str, list[Sample]]:
        """Return name → a sample of each round."""
        samples: dict[str, list[Sample]] = {case.name: [] for case in scenario.cases}
        for turn in range(scenario.rounds + scenario.warm_up):
            for case in reversed(scenario.cases) if turn % 2 else scenario.cases:
                case.prepare(turn)
                sample = self._time(case, turn)
                if turn or not scenario.warm_up:
                    samples[case.name].append(sample)
        return samples

    def _time(self, case: Case, turn: int) -> Sample:
        printed = self.folder / "printed"
        there, output = shlex.quote(str(case.folder)), shlex.quote(str(printed))
        unset = f"unset {' '.join(_OF_HYPERFINE)}"  # they differ each time, so no pass is reused
        script = f"cd {there} && {unset} && exec </dev/null >{output} 2>&1 && exec {case.command}"
        argv = ["sh", "-c", script]
        env = {**self.env, **dict(case.env)}
        timer = self._by_hyperfine if self.hyperfine else _by_own_clock
        sample, is_done = timer(argv, env)
        said = printed.read_text(errors="replace")
        if not is_done:
            raise Wrong(f"{case.name}: {case.command} in {case.folder} failed:\n{said}")
        case.check(turn, said)
        return sample

    def _by_hyperfine(self, argv: list[str], env: dict[str, str]) -> tuple[Sample, bool]:
        found = self.folder / "hyperfine.json"
        options = ["--shell", "none", "--runs", "1", "--style", "none", "--export-json", str(found)]
        assert self.hyperfine
        timed = [self.hyperfine, *options, shlex.join(argv)]
        done = subprocess.run(timed, env=env, capture_output=True, check=False)
        if done.returncode:
            return Sample(0, 0), False
        one = json.loads(found.read_text())["results"][0]
        return Sample(one["times"][0], one["user"] + one["system"]), True


def _by_own_clock(argv: list[str], env: dict[str, str]) -> tuple[Sample, bool]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(argv, env=env, capture_output=True, check=False)
    took = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Sample(took, cpu), not done.returncode


def nothing(*_of_round: object) -> None:
    """Neither prepare nor check anything."""
