"""What an agent's hook costs that has nothing to run: ours, and a bare interpreter.

The package is installed into an environment of its own, as a wheel, and started as an agent's
settings start it: by its console script, with the event on standard input. The runs are
interleaved, so a busy moment hits all alike; the table shows medians. `--check` exits 1 where
an event for which git need not be asked costs more than 20 ms above the interpreter, or 35 ms where
an intent is held.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from gitgates.hosts import AGENTS, agent_host

ROOT = Path(__file__).resolve().parent.parent.parent
MOST_ABOVE_BARE_S = 0.020
MOST_WITH_INTENTS_S = 0.035
SIZES = (50, 5_000)
LONG_AGO = 1_700_000_000  # what has just been written, git reads again and again
BARE = "bare interpreter"
LONG = 2_000  # events of a session that has gone on for a day
# The program as uv and today's pip write it. That of an older pip imports `re`, which takes 5 ms.
SCRIPT = """\
#!{python}
import sys
from gitgates.__main__ import main
if __name__ == "__main__":
    sys.argv[0] = sys.argv[0].removesuffix(".exe")
    sys.exit(main())
"""

CONFIG = """\
[tool.gitgates.gates.check]
command = "true"
files = ["*.py"]
[tool.gitgates.hooks.PostToolUse]
enabled_tools = ["Edit"]
gates = ["check"]
[tool.gitgates.hooks.Stop]
gates = ["check"]
"""
# In TOML, which the environment of the bench can read: nothing else is installed there.
INTENTS = """\
[[active_intents]]
id = "INT-1"
title = "Numbers"
status = "IN_PROGRESS"
owned_scope = ["d0/**", "d1/**", "*.md"]
"""
_BASH = {"tool_name": "Bash", "tool_input": {"command": "true"}}
# name → what is in the payload besides, and whether git has to be asked to answer it
EVENTS: dict[str, tuple[dict[str, object], bool]] = {
    "PreToolUse, no gates": ({"hook_event_name": "PreToolUse", **_BASH}, False),
    "PostToolUse, tool not enabled": ({"hook_event_name": "PostToolUse", **_BASH}, False),
    "UserPromptSubmit": ({"hook_event_name": "UserPromptSubmit", "prompt": "go"}, True),
    "Stop, nothing changed": ({"hook_event_name": "Stop", "stop_hook_active": False}, True),
}


class Case(NamedTuple):
    """One thing to measure."""

    name: str
    argv: tuple[str, ...]
    folder: Path
    payload: dict[str, object]
    asks_git: bool
    most_s: float = MOST_ABOVE_BARE_S
    writes: str = ""  # a file that the tool has changed, so that there is something to trace


class Bench:
    """An environment with the package in it, and repositories in which sessions have begun."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("GIT", "PYTHON"))},
            "HOME": str(folder),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.bin = self._install()

    def _install(self) -> Path:
        """Install the package as a wheel: with no .pth file, and compiled."""
        pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
        venv, wheels = self.folder / "venv", self.folder / "wheels"
        wheel = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, ROOT)
        self.run(sys.executable, "-m", "venv", "--without-pip", venv)
        self.run(*pip, *wheel)
        into = ("--python", venv / "bin/python", "install", "--no-deps", "--no-index")
        self.run(*pip, *into, *wheels.glob("*.whl"))
        (venv / "bin/gitgates").write_text(SCRIPT.format(python=venv / "bin/python"))
        return venv / "bin"

    def cases(self) -> list[Case]:
        """Return everything to measure, the first event of each session being over."""
        bare = (str(self.bin / "python"), "-c", "pass")
        found = [Case(BARE, bare, self.folder, {}, asks_git=False)]
        for files in SIZES:
            folder = self._repository(files)
            self._begin_session(folder)
            for name, (fields, asks_git) in EVENTS.items():
                payload = {"session_id": "s", "cwd": str(folder), **fields}
                found.append(self._case(f"{files:,} files: {name}", folder, (payload, asks_git)))
        return [*found, self._long_session(folder), *self._with_intents(), *self._of_hosts(folder)]

    def _of_hosts(self, folder: Path) -> list[Case]:
        """Return a tool call of each other agent, as its client tells of it."""
        found = []
        for agent in AGENTS:
            file = str(folder / "d0/f0.py")
            payload = agent_host(agent).sample("before-tool", str(folder), agent, file)
            found.append(self._case(f"{agent}: before a tool", folder, (payload, False), agent))
        return found

    def _case(
        self, name: str, folder: Path, event: tuple[dict[str, object], bool], agent: str = "claude"
    ) -> Case:
        argv = (str(self.bin / "gitgates"), "agent-hook", agent)
        case = Case(name, argv, folder, *event)
        once(case, self.env, 0)
        return case

    def _begin_session(self, folder: Path) -> None:
        payload = {"session_id": "s", "cwd": str(folder), "hook_event_name": "SessionStart"}
        argv = (str(self.bin / "gitgates"), "agent-hook", "claude")
        raw = json.dumps({**payload, "source": "startup"}).encode()
        subprocess.run(argv, cwd=folder, env=self.env, input=raw, capture_output=True, check=True)

    def _long_session(self, folder: Path) -> Case:
        fields = {"session_id": "long", "cwd": str(folder), "hook_event_name": "PostToolUse"}
        payload: dict[str, object] = {**fields, "prompt_id": "p", **_BASH}
        case = self._case(f"a session of {LONG:,} events: PostToolUse", folder, (payload, False))
        journal = folder / ".git/gitgates/sessions/long.jsonl"
        lines = journal.read_text().splitlines(keepends=True)
        event = next(line for line in lines if '"what": "event"' in line)
        journal.write_text("".join([*lines, *[event] * LONG]))
        return case

    def _with_intents(self) -> list[Case]:
        """Return tools that write in the scope of an intent, which is held."""
        folder = self._repository(100)
        with (folder / "pyproject.toml").open("a") as file:
            file.write('[tool.gitgates.intents]\nfile = "intents.toml"\nrequired = true\n')
        (folder / "intents.toml").write_text(INTENTS)
        self._commit(folder)  # what nobody has committed counts for no session
        self._begin_session(folder)
        select = (self.bin / "gitgates", "intent", "select", "INT-1", "--session", "s")
        own = ("env", "-C", folder, f"PYTHONPATH={os.pathsep.join(filter(None, sys.path))}")
        self.run(*own, *select)
        tool_input = {"file_path": str(folder / "d1/new.py")}
        found = []
        for event in ("PreToolUse", "PostToolUse"):
            for tool in ({"tool_name": "Write", "tool_input": tool_input}, _BASH):
                known = {"session_id": "s", "cwd": str(folder), "hook_event_name": event}
                is_after = event == "PostToolUse"
                traced = ", traced" if is_after else ""
                name = f"intents: {event}, {tool['tool_name']}{traced}"
                case = self._case(name, folder, ({**known, **tool}, is_after))
                writes = "d1/new.py" if is_after else ""
                found.append(case._replace(most_s=MOST_WITH_INTENTS_S, writes=writes))
        return found

    def _repository(self, files: int) -> Path:
        folder = self.folder / f"of-{files}"
        self.run("git", "init", "-q", folder)
        (folder / "pyproject.toml").write_text(CONFIG)
        for number in range(files - 1):
            path = folder / f"d{number // 50}" / f"f{number}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"number = {number}\n")
            os.utime(path, (LONG_AGO, LONG_AGO))
        self._commit(folder)
        return folder

    def _commit(self, folder: Path) -> None:
        author = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
        self.run("git", "-C", folder, "add", ".")
        self.run("git", "-C", folder, *author, "commit", "-qm", "base")

    def run(self, *argv: str | Path) -> None:
        """Run a program, which must not fail."""
        done = subprocess.run(argv, env=self.env, capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(f"{argv}: {done.stderr.decode()}")


def once(case: Case, env: dict[str, str], turn: int) -> float:
    """Return how long one run takes. Each event is one of its own, not another's repetition."""
    own = {"prompt_id": f"p{turn}", "tool_use_id": f"{case.name} {turn}"}
    raw = json.dumps({**own, **case.payload}).encode()
    if case.writes:
        (case.folder / case.writes).write_text(f"number = {time.monotonic_ns()}\n" * 200)
    start = time.perf_counter()
    done = subprocess.run(
        case.argv, cwd=case.folder, env=env, input=raw, capture_output=True, check=False
    )
    took = time.perf_counter() - start
    if (done.returncode, done.stdout, done.stderr) != (0, b"", b""):
        raise SystemExit(f"{case.name}: {done}")
    return took


def measure(cases: list[Case], runs: int, env: dict[str, str]) -> dict[str, list[float]]:
    """Return name → seconds of each run."""
    times: dict[str, list[float]] = {case.name: [] for case in cases}
    for turn in range(1, runs + 1):
        for case in cases if turn % 2 else reversed(cases):
            times[case.name].append(once(case, env, turn))
    return times


def table(times: dict[str, list[float]]) -> str:
    """Return a line for each case."""
    bare = statistics.median(times[BARE])
    lines = [f"an agent's hook with nothing to run; median of {len(times[BARE])} runs"]
    lines.append(f"{'':46}{'median':>10}{'fastest':>10}{'above bare':>12}")
    for name, runs in times.items():
        median = statistics.median(runs)
        lines.append(f"{name:46}{_ms(median):>10}{_ms(min(runs)):>10}{_ms(median - bare):>12}")
    return "\n".join(lines)


def judge(times: dict[str, list[float]], cases: list[Case]) -> bool:
    """Say whether the promises hold for all that needs no git; return whether they do."""
    bare = statistics.median(times[BARE])
    all_hold = True
    for most_s in (MOST_ABOVE_BARE_S, MOST_WITH_INTENTS_S):
        names = [case.name for case in cases if case.most_s == most_s and not case.asks_git]
        holds = max(statistics.median(times[name]) for name in names) - bare <= most_s
        word = "holds" if holds else "does not hold"
        what = ", with intents" if most_s == MOST_WITH_INTENTS_S else ""
        print(f"at most {_ms(most_s)} above a bare interpreter, git aside{what}: {word}")
        all_hold = all_hold and holds
    return all_hold


def main() -> int:
    """Measure, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--runs", type=int, default=40, help="runs of each (default 40)")
    parser.add_argument("--check", action="store_true", help="exit 1 where ours costs too much")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gitgates-bench-") as folder:
        bench = Bench(Path(folder))
        cases = bench.cases()
        times = measure(cases, options.runs, bench.env)
    print(table(times))
    return 0 if judge(times, cases) or not options.check else 1


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


if __name__ == "__main__":
    sys.exit(main())
