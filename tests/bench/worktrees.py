"""What it costs that many agents stop at once: worktrees of one repository, each with its gates.

A gate is a loop that takes a fixed time of a CPU. All Stop hooks are started at the same moment;
meanwhile a person commits in the repository's own working tree. The ideal is the CPU time of all
gates, divided by the number of CPUs. `--check` exits 1 where the whole takes more than 1.1 times as
long, or the person waits for longer than a gate takes.

On a machine that is busy otherwise, look at the last lines only: how much of the slots' time gates
ran, and the CPU time of all that is not a gate.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

MOST_OF_IDEAL = 1.1
CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
GITGATES = str(Path(sys.executable).with_name("gitgates"))
# The interpreter's own start counts as well: process_time is that of the whole process.
BURN = """\
import os, sys, time
began = time.monotonic()
while time.process_time() < {seconds}:
    pass
fd = os.open("{log}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(fd, f"{{began}} {{time.monotonic()}}\\n".encode())
"""


class Options(NamedTuple):
    """What is measured."""

    worktrees: int
    gates: int
    seconds: float


class Outcome(NamedTuple):
    """What was measured, in seconds."""

    took: float
    cpu: float  # of all that is not a gate
    gates: list[tuple[float, float]]  # when each began and ended, by the monotonic clock
    person: list[float]  # how long each commit took

    def ideal(self, options: Options) -> float:
        """Return how long it had to take at least."""
        return options.worktrees * options.gates * options.seconds / CPUS


class Bench:
    """A repository with a worktree for each agent, in which a session has begun."""

    def __init__(self, folder: Path, options: Options) -> None:
        self.folder, self.options = folder, options
        self.log = folder / "log"
        self.env = {
            **{
                k: v for k, v in os.environ.items() if not k.startswith(("GIT", "CLAUDE", "PYTHON"))
            },
            "HOME": str(folder),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GITGATES_POOL": str(folder / "pool"),
        }
        self.root = folder / "repository"
        self.agents = [folder / f"agent-{number}" for number in range(options.worktrees)]
        self._prepare()

    def _prepare(self) -> None:
        self.run("git", "init", "-q", self.root)
        burn = self.folder / "burn.py"
        burn.write_text(BURN.format(seconds=self.options.seconds, log=self.log))
        names = [f"gate-{number}" for number in range(self.options.gates)]
        command = json.dumps([sys.executable, "-I", "-S", str(burn)])
        tables = [f"[tool.gitgates.gates.{name}]\ncommand = {command}\n" for name in names]
        hook = f'[tool.gitgates.hooks.Stop]\nstrategy = "collect"\ngates = {json.dumps(names)}\n'
        quick = (
            '[tool.gitgates.gates.quick]\ncommand = "true"\n'
            '[tool.gitgates.hooks.pre-commit]\ngates = ["quick"]\n'
        )
        (self.root / "pyproject.toml").write_text("".join([*tables, hook, quick]))
        self.run("git", "-C", self.root, "add", ".")
        self.run(*self._commit())
        self.run("env", "-C", self.root, GITGATES, "install-hooks")
        for agent in self.agents:
            self.run("git", "-C", self.root, "worktree", "add", "-q", "--detach", agent)
            self.wait_for(self.event(agent, "SessionStart", source="startup"))
            (agent / "new.py").write_text("number = 1\n")

    def _commit(self) -> tuple[str | Path, ...]:
        author = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
        return ("git", "-C", self.root, *author, "commit", "-q", "--allow-empty", "-m", "x")

    def run(self, *argv: str | Path) -> None:
        """Run a program, which must not fail."""
        done = subprocess.run(argv, env=self.env, capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(f"{argv}: {done.stderr.decode()}")

    def event(self, agent: Path, name: str, **fields: object) -> subprocess.Popen[bytes]:
        """Start the hook of an event."""
        payload = {"session_id": agent.name, "cwd": str(agent), "hook_event_name": name, **fields}
        argv = (GITGATES, "agent-hook", "claude")
        pipe = subprocess.PIPE
        hook = subprocess.Popen(
            argv, cwd=agent, env=self.env, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT
        )
        assert hook.stdin
        hook.stdin.write(json.dumps(payload).encode())
        hook.stdin.close()
        return hook

    def wait_for(self, hook: subprocess.Popen[bytes]) -> None:
        """Wait for the end of a hook, which must not block."""
        assert hook.stdout
        said = hook.stdout.read()
        if hook.wait() or b'"block"' in said:
            raise SystemExit(f"a hook ended with {hook.returncode}: {said.decode()}")

    def measure(self) -> Outcome:
        """Let all agents stop at once, and a person commit while they wait."""
        began, cpu_before = time.monotonic(), _cpu_s()
        hooks = [self.event(agent, "Stop", stop_hook_active=False) for agent in self.agents]
        ideal_s = Outcome(0.0, 0.0, [], []).ideal(self.options)
        person = []
        for part in (0.2, 0.4, 0.6):
            time.sleep(max(began + part * ideal_s - time.monotonic(), 0.0))
            before = time.monotonic()
            self.run(*self._commit())
            person.append(time.monotonic() - before)
        for hook in hooks:
            self.wait_for(hook)
        took = time.monotonic() - began
        lines = [line.split() for line in self.log.read_text().splitlines()]
        gates = [(float(start), float(end)) for start, end in lines]
        expected = self.options.worktrees * self.options.gates
        if len(gates) != expected:
            raise SystemExit(f"{len(gates)} gates ran, not {expected}")
        cpu = _cpu_s() - cpu_before - len(gates) * self.options.seconds
        return Outcome(took, cpu, gates, person)


def _cpu_s() -> float:
    """Return the CPU time of all processes that were waited for, and of what those waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def judge(outcome: Outcome, options: Options) -> bool:
    """Print what was measured; return whether the promises hold."""
    ideal_s = outcome.ideal(options)
    busy_s = sum(end - start for start, end in outcome.gates)
    gate_s = max(end - start for start, end in outcome.gates)
    waited_s = max(outcome.person)
    print(
        f"{options.worktrees} agents stop at once, each with {options.gates} gates of "
        f"{options.seconds:g} s CPU; {CPUS} CPUs"
    )
    print(f"all of it: {outcome.took:.2f} s, {outcome.took / ideal_s:.2f} of the ideal")
    print(f"a person's commit: at most {waited_s:.2f} s; the longest gate: {gate_s:.2f} s")
    print(f"gates ran for {busy_s / CPUS / outcome.took:.1%} of the time of the slots")
    print(f"CPU time beside the gates: {outcome.cpu:.2f} s, {outcome.cpu / CPUS / ideal_s:.1%}")
    return outcome.took <= MOST_OF_IDEAL * ideal_s and waited_s <= gate_s + 0.2


def main() -> int:
    """Measure, print what was found, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--worktrees", type=int, default=20, help="agents (default 20)")
    parser.add_argument("--gates", type=int, default=4, help="gates of each (default 4)")
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU time of a gate (default 1)")
    parser.add_argument("--check", action="store_true", help="exit 1 where it takes too long")
    given = parser.parse_args()
    options = Options(given.worktrees, given.gates, given.seconds)
    with tempfile.TemporaryDirectory(prefix="gitgates-bench-") as folder:
        outcome = Bench(Path(folder), options).measure()
    return 0 if judge(outcome, options) or not given.check else 1


if __name__ == "__main__":
    sys.exit(main())
