"""A worker of BuildGrid: it leases actions, and has a runner of buildbox run each in a sandbox.

Run by the Python of BuildGrid: ADDRESS INSTANCE JOBS RUNNER [ARGUMENT...]. BuildGrid takes a lease
back by leaving it out of its answer. Source: google/devtools/remoteworkers/v1test2/bots.proto.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import grpc
from buildgrid._protos.build.bazel.remote.execution.v2 import remote_execution_pb2 as api
from buildgrid._protos.google.devtools.remoteworkers.v1test2 import bots_pb2, bots_pb2_grpc

_INTERNAL = 13
_POLL_S = 0.05
_WAIT_S = 30.0  # for a lease


class Run:
    """One action that is run."""

    def __init__(self, action: Any, runner: tuple[str, ...]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._result = Path(self._folder.name) / "result"
        request = Path(self._folder.name) / "action"
        request.write_bytes(action.SerializeToString())
        files = (f"--action={request}", f"--action-result={self._result}")
        self.process = subprocess.Popen([*runner, *files, "--disable-localcas"])

    def end(self, lease: Any) -> None:
        """Say how it ended."""
        lease.state = bots_pb2.COMPLETED
        if self._result.exists():
            lease.result.Pack(api.ActionResult.FromString(self._result.read_bytes()))
        else:
            lease.status.code = _INTERNAL
            lease.status.message = f"the runner ended with status {self.process.returncode}"


def work(address: str, instance: str, runner: tuple[str, ...]) -> None:
    """Run one action after the other."""
    stub = bots_pb2_grpc.BotsStub(grpc.insecure_channel(address))
    session = bots_pb2.BotSession(bot_id=str(uuid.uuid4()), status=bots_pb2.OK)
    session.worker.devices.add(handle="this").properties.add(key="OSFamily", value="linux")
    request = bots_pb2.CreateBotSessionRequest(parent=instance, bot_session=session)
    session = stub.CreateBotSession(request, timeout=_WAIT_S)
    runs: dict[str, Run] = {}
    while True:
        for name in runs.keys() - {lease.id for lease in session.leases}:
            process = runs.pop(name).process
            process.terminate()
            process.wait(_WAIT_S)
        for lease in session.leases:
            if lease.id not in runs:
                action = api.Action()
                lease.payload.Unpack(action)
                runs[lease.id] = Run(action, runner)
                lease.state = bots_pb2.ACTIVE
            elif runs[lease.id].process.poll() is not None:
                runs.pop(lease.id).end(lease)
        request = bots_pb2.UpdateBotSessionRequest(name=session.name, bot_session=session)
        session = stub.UpdateBotSession(request, timeout=_WAIT_S)
        time.sleep(_POLL_S if runs else 0)


def main(address: str, instance: str, jobs: str, *runner: str) -> None:
    remote = (f"--remote=http://{address}", f"--instance={instance}")
    threads = [
        threading.Thread(target=work, args=(address, instance, (*runner, *remote)), daemon=True)
        for _ in range(int(jobs))
    ]
    print("asks for leases", flush=True)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
