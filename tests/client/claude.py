"""The real Claude Code client, and what came of a session with it.

    run = Client(tmp_path).run([write("a.txt", "hello\\n"), "all done"], cwd=repo)
    run.told(1)  # what the model was told after its first turn

A turn is text, a tool call, or a tuple of several of them; `after` delays one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import others
from other_apis import conversation, is_answer, plain_text
from others import Call

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INSTALLED = ROOT / ".venv/client/node_modules/@anthropic-ai"
# Read once: the tests' own fixture takes every GITGATES name away.
GIVEN = os.environ.get("GITGATES_E2E_CLIENT", "")


class After(NamedTuple):
    """A turn that lets the client wait."""

    delay_s: float
    blocks: tuple[str | Call, ...]
    main_turns: int = 0


class Failure(NamedTuple):
    """A request that the model's API refuses."""

    status: int  # of HTTP
    error: str  # its type


Turn: TypeAlias = str | Call | tuple[str | Call, ...] | After | Failure


class Options(NamedTuple):
    """How a session is run, where it differs from the usual."""

    env: dict[str, str] = {}
    arguments: tuple[str, ...] = ()
    mode: str = ""  # of permissions; empty: everything is allowed
    resume: str = ""  # a session to go on with
    limit_s: float = 40.0
    command: tuple[str, ...] = ()  # what starts the client, found as `claude` in its PATH
    proxies: bool = False  # do not leave the network, as where that cannot be done


def bash(command: str, **more: Any) -> Call:
    """Call the shell."""
    return Call("Bash", {"command": command, "description": "d", **more})


def write(path: Path | str, content: str) -> Call:
    """Write a file."""
    return Call("Write", {"file_path": str(path), "content": content})


def edit(path: Path | str, old: str, new: str) -> Call:
    """Replace text in a file, which must have been read or written before."""
    return Call("Edit", {"file_path": str(path), "old_string": old, "new_string": new})


def read(path: Path | str) -> Call:
    """Read a file."""
    return Call("Read", {"file_path": str(path)})


def agent(word: str, kind: str = "general-purpose", *, background: bool = False) -> Call:
    """Start a sub-agent whose turns are listed under `word`."""
    asked = {"description": "d", "prompt": word, "subagent_type": kind}
    return Call("Agent", {**asked, "run_in_background": background})


def after(delay_s: float, *blocks: str | Call, main_turns: int = 0) -> After:
    """Let a sub-agent wait: until the main conversation had so many turns, and then a while."""
    return After(delay_s, blocks, main_turns)


class HookRun(NamedTuple):
    """One hook that the client ran."""

    event: str
    stdout: str
    stderr: str
    exit_status: int | None
    outcome: str  # success, error, cancelled

    @property
    def answer(self) -> dict[str, Any]:
        """What it answered; nothing if it printed nothing."""
        found: dict[str, Any] = json.loads(self.stdout) if self.stdout.strip() else {}
        return found


class Run:
    """One session, or a part of it, as the model, the client and the person saw it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.end: dict[str, Any] = json.loads((folder / "end.json").read_text())
        self.stream = _lines(folder / "stream.jsonl")
        self.requests = _lines(folder / "requests.jsonl")

    def asked(self, kind: str = "main") -> list[list[dict[str, Any]]]:
        """Return the messages of each request of one conversation."""
        return [conversation(r["body"]) for r in self.requests if r["kind"] == kind]

    def told(self, request: int, kind: str = "main") -> str:
        """Return what a request told the model that the one before did not."""
        asked = self.asked(kind)
        known = len(asked[request - 1]) if request else 0
        return _text(asked[request][known:])

    def told_ever(self, kind: str = "main") -> str:
        """Return all that a conversation was told, in the end."""
        asked = self.asked(kind)
        return _text(asked[-1]) if asked else ""

    @property
    def turns(self) -> int:
        """How often the model had its turn in the main conversation."""
        return len(self.asked())

    @cached_property
    def results(self) -> list[dict[str, Any]]:
        """How each prompt ended, in the client's words."""
        return [r for r in self.stream if r.get("type") == "result"]

    @property
    def ends(self) -> list[str]:
        """Why each prompt ended, in the client's word."""
        return [str(r.get("terminal_reason")) for r in self.results]

    @property
    def session(self) -> str:
        """The id of the session."""
        return str(self.results[-1]["session_id"])

    @property
    def said(self) -> str:
        """What a command that started the client has printed."""
        return (self.folder / "stdout.txt").read_text() + (self.folder / "stderr.txt").read_text()

    @property
    def person(self) -> str:
        """Everything that hooks said to the person."""
        said = [r for r in self.stream if r.get("subtype") == "informational"]
        return "\n".join(str(r["content"]) for r in said)

    def hooks(self, event: str) -> list[HookRun]:
        """Return the hooks of one event that have ended, in that order."""
        return [
            HookRun(event, r["stdout"], r["stderr"], r.get("exit_code"), r["outcome"])
            for r in self.stream
            if r.get("subtype") == "hook_response" and r["hook_event"] == event
        ]

    def answers(self, event: str) -> list[dict[str, Any]]:
        """Return what hooks of one event answered, without those that said nothing."""
        return [hook.answer for hook in self.hooks(event) if hook.answer]


class Client:
    """The client, with a home of its own below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        (self.home / ".claude").mkdir(parents=True)
        self._runs = 0

    def run(
        self,
        turns: list[Turn],
        *,
        cwd: Path,
        prompts: tuple[str, ...] = ("go",),
        agents: dict[str, list[Turn]] | None = None,
        options: Options = Options(),  # noqa: B008 - it cannot be changed
    ) -> Run:
        """Run a session from its first prompt to its end."""
        assert options.command or binary().exists(), f"there is no {binary()}. Try: make e2e"
        self._runs += 1
        out = self.folder / f"run{self._runs}"
        out.mkdir()
        mode = ["--permission-mode", options.mode]
        how = mode if options.mode else ["--dangerously-skip-permissions"]
        how += ["--resume", options.resume] if options.resume else []
        script = {
            "main": [_plain(turn) for turn in turns],
            "agents": {w: [_plain(t) for t in ts] for w, ts in (agents or {}).items()},
        }
        job = {
            "client": str(binary()),
            "script": script,
            "prompts": prompts,
            "cwd": str(cwd),
            "home": str(self.home),
            "path": f"{self._folder_of_client()}{os.pathsep}{os.environ['PATH']}",
            "env": options.env,
            "arguments": [*how, *options.arguments],
            "command": options.command,
            "limit_s": options.limit_s,
            "proxies": options.proxies,
        }
        (out / "job.json").write_text(json.dumps(job))
        driver = [sys.executable, str(HERE / "drive.py"), str(out)]
        done = subprocess.run(
            driver, capture_output=True, text=True, check=False, timeout=options.limit_s + 30
        )
        assert done.returncode == 0, done.stderr
        return Run(out)

    def _folder_of_client(self) -> Path:
        folder = self.folder / "clients"
        folder.mkdir(exist_ok=True)
        programs = {"claude": binary(), **{name: others.program(name) for name in others.GIVEN}}
        for name, program in programs.items():
            if program.exists() and not (folder / name).is_symlink():
                (folder / name).symlink_to(program)
        return folder


def binary() -> Path:
    """Return the client's program, which need not be there."""
    found = sorted(INSTALLED.glob("claude-code-*/claude"))
    return Path(GIVEN) if GIVEN else next(iter(found), INSTALLED / "claude-code/claude")


def _plain(turn: Turn) -> dict[str, Any]:
    """Return a turn as the driver's process reads it."""
    status = 200
    match turn:
        case After():
            whole = turn
        case Failure():
            status, whole = turn.status, After(0, (turn.error,))
        case str() | Call():
            whole = After(0, (turn,))
        case _:
            whole = After(0, turn)
    plain = [block if isinstance(block, str) else block._asdict() for block in whole.blocks]
    return {**whole._asdict(), "blocks": plain, "status": status}


def _text(messages: list[dict[str, Any]]) -> str:
    return plain_text([m for m in messages if not is_answer(m)])


def _lines(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.startswith("{")]
