"""Repositories with much of one thing, made quickly, for `scale.py`: in the formats of the product.

Each function is handed a repository and how many there are to be. What is written once in earnest,
by a hook or a verb, is written again with other names and times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from gitgates.core.policy import LABELS
from gitgates.features.trace import ledger
from gitgates.store import proofs
from gitgates.store.messages import id_of

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_AGO = 1_700_000_000
OUTPUT = "of.txt"  # says how long the output of the gate is
_EVENT = {"prompt_id": "p", "agent": "", "agent_type": "", "tool": "Bash", "tool_kind": "shell"}
_LINES = 20  # of each file that the trace is about


def index(folder: Path, count: int) -> None:
    """Commit so many files."""
    stream = [
        b"blob\nmark :1\ndata 6\nx = 1\n\ncommit refs/heads/many\ncommitter b <b@b> 0 +0000\n"
    ]
    stream += [b"data 4\nmany\n", *(b"M 644 :1 %b\n" % name for name in _names(count))]
    _git(folder, "fast-import", "--quiet", stdin=b"".join(stream))
    _git(folder, "read-tree", "--prefix=many/", "refs/heads/many")
    _git(folder, "checkout-index", "--all", "--quiet")
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "--message=many")


def staged(folder: Path, count: int) -> None:
    """Stage so many new files."""
    for name in _names(count):
        path = folder / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x = 1\n")
    _git(folder, "add", ".")


def output(folder: Path, count: int) -> None:
    """Have the gate print so many bytes."""
    (folder / OUTPUT).write_text(str(count))
    _git(folder, "commit", "--quiet", "--all", "--message=output")


def journal(folder: Path, count: int) -> None:
    """Make the session `s` so many lines long: a turn is a prompt, twenty tools and a stop."""
    path = folder / ".git/gitgates/sessions/s.jsonl"
    begun = path.read_bytes()
    rounds = [json.loads(line) for line in begun.splitlines() if b'"what": "round"' in line]
    now = json.loads(begun.splitlines()[0])["t"]
    with path.open("wb") as file:
        file.write(begun)
        written, turn = begun.count(b"\n"), 0
        while written < count:
            turn += 1
            facts = [*_turn(turn), *({**fact, "key": f"Stop:{turn}"} for fact in rounds[-1:])]
            for fact in facts[: count - written]:
                file.write(json.dumps({"v": 1, "t": now, **fact}).encode() + b"\n")
            written += len(facts)


def _turn(turn: int) -> Iterator[dict[str, object]]:
    event = {"what": "event", **_EVENT, "prompt_id": f"p{turn}"}
    yield {**event, "event": "UserPromptSubmit", "key": f"UserPromptSubmit:p{turn}", "tool": ""}
    yield {"what": "prompt", "prompt_id": f"p{turn}", "text": "Go on with the parser, please."}
    for call in range(20):
        use = f"toolu_{turn:06}{call:06}"
        yield {**event, "event": "PreToolUse", "key": f"PreToolUse:{use}"}
        yield {**event, "event": "PostToolUse", "key": f"PostToolUse:{use}"}
    yield {**event, "event": "Stop", "key": f"Stop:p{turn}::00000000", "tool": ""}


def sessions(folder: Path, count: int) -> None:
    """Add so many sessions that are over."""
    source = (folder / ".git/gitgates/sessions/s.jsonl").read_bytes()
    for number in range(count):
        path = folder / f".git/gitgates/sessions/old-{number:06}.jsonl"
        path.write_bytes(source)
        os.utime(path, (LONG_AGO + number, LONG_AGO + number))


def runs(folder: Path, count: int) -> None:
    """Have so many recorded runs, of which some may be there already."""
    runs_abs = folder / ".git/gitgates/runs"
    newest = max(runs_abs.glob("*/result.json"))
    result = newest.read_bytes()
    for number in range(count - len(os.listdir(runs_abs))):
        run = runs_abs / f"20200101T{number // 1000:06}.{number % 1000:03}000Z-1"
        if not run.exists():
            (run / "logs").mkdir(parents=True)
            (run / "result.json").write_bytes(result)
            (run / "summary.md").write_bytes(b"passed\n")
            (run / "logs/check.log").write_bytes(b"checked\n")


def messages(folder: Path, count: int) -> None:
    """Have so many messages in the log, of 100 topics."""
    fields = {"v": 1, "time": "2024-01-01T00:00:00.000Z", "session": "s", "branch": "main"}
    with (folder / ".git/gitgates/messages.jsonl").open("w") as file:
        for number in range(count):
            about = {"topic": f"build/part{number % 100}", "text": f"Part {number} of it is done."}
            file.write(json.dumps({**fields, **about, "id": id_of(20_000_000_000 + number)}) + "\n")


def passes(folder: Path, count: int) -> None:
    """Record so many passes, of ten gates."""
    for number in range(count):
        proof = proofs.Proof(
            gate=f"gate{number % 10}",
            content=proofs.digest(str(number)),
            key=proofs.digest("key"),
            status="passed",
            time_s=float(LONG_AGO + number),
            duration_s=1.0,
            hook="pre-commit",
            root_abs=str(folder),
        )
        proofs.append(f"{folder}/.git/gitgates", [proof])


def traced(folder: Path, count: int) -> None:
    """Have so many records in the trace, each of a new file, of 100 sessions."""
    digest = ""
    path_abs = ledger.ledger_abs(f"{folder}/.git")
    with ledger.locked(path_abs), open(path_abs, "wb") as file:
        for number in range(count):
            record = {
                "v": ledger.VERSION,
                "id": f"{number:036}",
                "time": "2024-01-01T00:00:00.000Z",
                "session": f"session-{number % 100}",
                **dict.fromkeys(("agent", "agent_type", *LABELS), ""),
                "tool": "Write",
                "tool_use": f"toolu_{number:020}",
                "commit": "0" * 40,
                "files": [_traced_file(number)],
                "point": f"{number:040x}",
                "n": number + 1,
                "prev": digest,
            }
            line = ledger.sealed(record)
            digest = ledger.read_record(line)["sha256"]
            file.write(line)
    ledger.write_head(path_abs, (count, digest))


def _traced_file(number: int) -> dict[str, object]:
    lines = [f"line {line} of file {number}".encode() for line in range(_LINES)]
    digest = sha256(b"".join(line + b"\n" for line in lines)).hexdigest()
    hashes = {"sha256": digest, "first": crc32(lines[0])}
    return {
        "path": f"d{number // 100}/f{number}.py",
        "operation": "create",
        "kind": "text",
        "lines": _LINES,
        "before": None,
        "after": digest,
        "blob": f"{number:040x}",
        "blocks": [{"old": [1, 0], "new": [1, _LINES], **hashes}],
    }


def _names(count: int) -> Iterator[bytes]:
    return (b"m%d/f%d.py" % (number // 100, number) for number in range(count))


def _git(folder: Path, *args: str, stdin: bytes = b"") -> None:
    who = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
    subprocess.run(("git", "-C", folder, *who, *args), input=stdin, check=True, capture_output=True)


if __name__ == "__main__":  # in a process of its own: whoever measures memory must take little
    globals()[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
