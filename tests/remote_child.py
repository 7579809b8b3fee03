"""A child in place of the one that talks to a server: it ends as the gate's variable END says."""

from __future__ import annotations

import marshal
import os
import signal
import time
from pathlib import Path

from gitgates.features.remote.gates import ChildEnd, GateRequest

_ENDS = {
    "could-not-run": ChildEnd(reason="no worker has this platform", notes=("a note",)),
    "down": ChildEnd(reason="unavailable", is_down=True),
    "pass-with-status": ChildEnd(status="passed", exit_status=4),
    "failure-without-status": ChildEnd(status="failed", exit_status=0),
    "no-such-status": ChildEnd(status="ok", exit_status=0),
    "failed": ChildEnd(status="failed", exit_status=3, action="ab/2"),
    "replaced": ChildEnd(status="passed", exit_status=0, action="ab/1", output=b"all of it\n"),
    "passed": ChildEnd(status="passed", exit_status=0, action="ab/1"),
}


def main() -> None:
    # Before anybody can know that it is there, and end it.
    parent, asked = os.getppid(), list[int]()
    signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
    with open(0, "rb") as file:
        request = GateRequest(**marshal.load(file))
    out = Path(request.env["OUT"])
    with (out / "there").open("a") as file:
        file.write(f"{request.gate['name']} {os.getpid()}\n")
    os.write(1, f"{request.gate['name']} ran there\n".encode())
    time.sleep(float(request.env.get("TAKES", "0")))
    word = request.env.get("END", "passed")
    if word == "environment":
        os.write(1, f"{sorted(request.env)} {request.cwd} {request.argv}\n".encode())
        word = "passed"
    if word == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "hangs":
        _hang(out, parent, asked)
    end = _ENDS.get(word)
    data = marshal.dumps(end._asdict()) if end else b"half of an end"
    if word != "silent":
        Path(request.end_abs).write_bytes(data)
    os._exit(7 if word == "exits" else 0)


def _hang(out: Path, parent: int, asked: list[int]) -> None:
    while not asked and os.getppid() == parent:
        time.sleep(0.01)
    (out / "cancelled").touch()
    os._exit(1)
