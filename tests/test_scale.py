"""Nothing grows with history: what hooks read and call is the same with ten times as much of it.

Counted in the process itself, so no other one makes a difference: calls of functions, bytes read,
system calls that read or write, and the peak of its memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import Repo

sys.path.append(str(Path(__file__).parent / "bench"))  # whose state is the same

import scale_state as state

CONFIG = """\
[tool.gitgates]
keep_runs = 1000000
[tool.gitgates.trace]
mode = "{trace}"
[tool.gitgates.gates.check]
command = "true"
reuse = true
[tool.gitgates.hooks.pre-commit]
gates = ["check"]
[tool.gitgates.hooks.Stop]
gates = ["check"]
"""
MOST = 1.1
# Not the collection of old state, which comes once a day; os._exit is how a hook leaves.
COUNTED = """
import os, sys
calls = 0

def note(_frame, event, _arg):
    global calls
    calls += event in ("call", "c_call")

def leave_with(status, leave=os._exit):
    sys.setprofile(None)
    with open("/proc/self/io") as file:
        io = dict(line.split(": ") for line in file)
    with open("/proc/self/status") as file:  # ru_maxrss has that of the process that forked it
        peak = int(dict(line.split(":", 1) for line in file)["VmHWM"].split()[0])
    with open(os.environ["TOLD_ABS"], "w") as file:
        print(calls, int(io["rchar"]), int(io["syscr"]) + int(io["syscw"]), peak, file=file)
    leave(status)

os._exit = leave_with
sys.argv[0] = "gitgates"
sys.setprofile(note)
from gitgates.__main__ import main
try:
    main()
except SystemExit as end:
    leave_with(end.code or 0)
"""
_BASH: dict[str, object] = {"tool_name": "Bash", "tool_input": {"command": "true"}}
EVENTS: dict[str, dict[str, object]] = {
    "PreToolUse": _BASH,
    "PostToolUse": _BASH,
    "SessionStart": {"source": "startup"},
    "Stop": {"stop_hook_active": False},
}
# What there is of it at once: enough to be beyond what is bounded.
HISTORY = {
    "journal": 10_000,
    "sessions": 20,
    "runs": 100,
    "messages": 30_000,
    "passes": 500,
    "traced": 200,
}


class Counts(NamedTuple):
    """What one hook took."""

    calls: int
    bytes_read: int
    system_calls: int
    peak_kb: int


def counted(repo: Repo, event: str, turn: int) -> Counts:
    """Return what a hook takes that reads an event, or before a commit."""
    told = repo.path.parent / "told"
    known = {"session_id": "s", "cwd": str(repo.path), "hook_event_name": event}
    ids = {"prompt_id": f"p{turn}", "tool_use_id": f"t{turn}"}
    args = ["agent-hook", "claude"] if event in EVENTS else ["git-hook", "", event]
    raw = json.dumps({**known, **ids, **EVENTS.get(event, {})}).encode()
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *args],
        cwd=repo.path,
        input=raw,
        env={**os.environ, "TOLD_ABS": str(told), "PYTHONHASHSEED": "0"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done
    return Counts(*map(int, told.read_text().split()))


def begin(repo: Repo, trace: str) -> None:
    """Begin a session, with a run of its gates."""
    repo.write("pyproject.toml", CONFIG.format(trace=trace))
    repo.commit_all("base")
    counted(repo, "SessionStart", -1)
    repo.write("a.py", "a = 1\n")
    repo.git("add", "a.py")
    for turn, event in enumerate(("Stop", "pre-commit")):
        counted(repo, event, -2 - turn)


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="there is no /proc/self/io")
@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("what", HISTORY)
def test_hooks_take_no_more_with_ten_times_the_history(repo: Repo, what: str) -> None:
    begin(repo, trace="on" if what == "traced" else "off")
    counts: list[dict[str, Counts]] = []
    for turn, times in enumerate((1, 10)):
        getattr(state, what)(repo.path, HISTORY[what] * times)
        counted(repo, "PostToolUse", 10 * turn)  # may keep a state, once in hundreds of events
        counts.append({})
        for number, event in enumerate((*EVENTS, "pre-commit"), 1):
            counts[-1][event] = counted(repo, event, 10 * turn + number)
    for event, before in counts[0].items():
        for name, first, later in zip(Counts._fields, before, counts[1][event], strict=True):
            assert later <= first * MOST, f"{event}: {name}: {first}, with ten times: {later}"
