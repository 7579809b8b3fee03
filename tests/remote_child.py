"""A worker that talks to no server: it ends gates as the variable END of each says."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from gitgates.features.remote import worker
from gitgates.features.remote.gates import GateRequest, RemoteEnd, note_start

_ENDS = {
    "could-not-run": RemoteEnd(reason="no worker has this platform", notes=("a note",)),
    "down": RemoteEnd(reason="unavailable", is_down=True),
    "pass-with-status": RemoteEnd(status="passed", exit_status=4),
    "failure-without-status": RemoteEnd(status="failed", exit_status=0),
    "no-such-status": RemoteEnd(status="ok", exit_status=0),
    "failed": RemoteEnd(status="failed", exit_status=3, action_digest="ab/2"),
    "replaced": RemoteEnd(
        status="passed", exit_status=0, action_digest="ab/1", output=b"all of it\n"
    ),
    "cached": RemoteEnd(status="passed", exit_status=0, action_digest="ab/1", is_cached=True),
    "passed": RemoteEnd(status="passed", exit_status=0, action_digest="ab/1"),
}


def main() -> None:
    vars(worker)["_run"] = _run
    vars(sys)["modules"]["gitgates.features.remote.execution"] = None  # gRPC takes a while to load
    worker.main()


def _run(request: GateRequest, output_fd: int, life: Any, notes: list[str]) -> RemoteEnd:
    out = Path(request.env["OUT"])
    with (out / "there").open("a") as file:
        file.write(f"{request.gate['name']} {os.getpid()}\n")
    word = request.env.get("END", "passed")
    if word not in ("sleeps", "starts"):
        os.write(output_fd, f"{request.gate['name']} ran there\n".encode())
    time.sleep(float(request.env.get("TAKES", "0")))
    if word == "environment":
        text = f"{sorted(request.env)} {request.cwd} {request.argv} {request.gate['reuse']}\n"
        os.write(output_fd, text.encode())
        word = "passed"
    if word == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "half":
        vars(worker)["marshal"].dump = lambda _end, file: file.write(b"half of an end")
    if word == "starts":
        note_start(request.end_abs)
    if word in ("hangs", "sleeps", "starts"):
        while not life.is_over():
            time.sleep(0.01)
        (out / "cancelled").touch()
    end = _ENDS.get(word, RemoteEnd())
    notes += end.notes
    return end
