"""Run the real client once: `drive.py FOLDER`, where FOLDER/job.json says what to do.

Leaves requests.jsonl, stream.jsonl, stderr.txt, debug.log and end.json there. It is a process of
its own because it leaves the network, and adopts whatever the client leaves behind.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

import isolation
import others
from messages_api import Model

_GRACE_S = 2.0


def main(folder: Path) -> None:
    """Do what the job says, and write down how it ended."""
    job = json.loads((folder / "job.json").read_text())
    alone = not job["proxies"] and isolation.leave_the_network()  # before any thread is there
    isolation.adopt_orphans()
    model = Model(job["script"], folder / "requests.jsonl")
    model.start()
    short = tempfile.mkdtemp(
        prefix="e2e"
    )  # the client makes a socket in it, whose path has a limit
    env = _environment(job, short, model.port)
    if job["command"]:
        env = others.configure(job, model.port) | env
    if not alone:
        env |= isolation.proxies_to_nowhere()
    started = time.monotonic()
    try:
        end = _run(folder, job, env)
    finally:
        orphans = isolation.end_orphans()
        shutil.rmtree(short, ignore_errors=True)
    end |= {
        "alone": alone,
        "orphans": orphans,
        "took_s": time.monotonic() - started,
        "turns_left": model.conversations.left(),
    }
    (folder / "end.json").write_text(json.dumps(end))


def _environment(job: dict[str, Any], short: str, port: int) -> dict[str, str]:
    """Return all that the client and its hooks get: nothing of ours but what the job names."""
    home = job["home"]
    return {
        "PATH": job["path"],
        "HOME": home,
        "CLAUDE_CONFIG_DIR": f"{home}/.claude",
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "TMPDIR": short,
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "GIT_CONFIG_NOSYSTEM": "1",
        "ANTHROPIC_API_KEY": "no-key",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",  # or root may not skip permissions
        **job["env"],
    }


def _run(folder: Path, job: dict[str, Any], env: dict[str, str]) -> dict[str, Any]:
    if job["command"]:
        return _run_command(folder, job, env)
    argv = [job["client"], "-p", "--verbose", "--include-hook-events"]
    argv += ["--input-format", "stream-json", "--output-format", "stream-json"]
    argv += ["--debug-file", str(folder / "debug.log"), *job["arguments"]]
    with (folder / "stderr.txt").open("wb") as stderr:
        client = subprocess.Popen(
            argv,
            cwd=job["cwd"],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
        )
    assert client.stdin
    assert client.stdout
    talk = threading.Thread(
        target=_talk, args=(client.stdin, client.stdout, job["prompts"], folder / "stream.jsonl")
    )
    talk.daemon = True
    talk.start()
    timed_out = _wait(client, job["limit_s"])
    talk.join(_GRACE_S)
    return {"exit_status": client.returncode, "timed_out": timed_out}


def _run_command(folder: Path, job: dict[str, Any], env: dict[str, str]) -> dict[str, Any]:
    """Run a command that starts the client by itself, as often as it likes."""
    with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as err:
        started = subprocess.Popen(
            job["command"],
            cwd=job["cwd"],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        timed_out = _wait(started, job["limit_s"])
    return {"exit_status": started.returncode, "timed_out": timed_out}


def _talk(stdin: IO[bytes], stdout: IO[bytes], prompts: list[str], stream: Path) -> None:
    """Send each prompt when the one before is answered: two at once would become one turn."""
    waiting = list(prompts)
    _prompt(stdin, waiting)
    with stream.open("wb", buffering=0) as copy:
        for line in stdout:
            copy.write(line)
            if line.startswith(b"{") and json.loads(line).get("type") == "result":
                _prompt(stdin, waiting)


def _prompt(stdin: IO[bytes], waiting: list[str]) -> None:
    if not waiting:
        return
    said = {"type": "user", "message": {"role": "user", "content": waiting.pop(0)}}
    stdin.write(json.dumps(said).encode() + b"\n")
    stdin.flush()
    if not waiting:
        stdin.close()  # the client ends with its answer to this one


def _wait(client: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Wait for the client; end its whole group when it takes too long, and tell so."""
    try:
        client.wait(limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(client.pid, signal.SIGTERM)
        try:
            client.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(client.pid, signal.SIGKILL)
            client.wait()
        return True
    return False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
