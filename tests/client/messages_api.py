"""A Messages API on 127.0.0.1 that plays a script, and writes down whatever it is asked.

Other vendors' APIs play the script, too.

A script has the turns of the main conversation and, by a word that the sub-agent's prompt
contains, those of sub-agents. Each request takes the next turn of its conversation; when there is
none left, it is told `done`. The requests go to a file as JSON, one a line.

`{{EXPRESSION}}` in a call of a tool stands for what the expression's group found last in what the
model was told: so it can use what it cannot know before.
"""

from __future__ import annotations

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import other_apis
from other_apis import conversation, is_answer, plain_text

SUBAGENT_HEADER = "x-claude-code-agent-id"
SUMMARY_WANTED = re.compile(r"detailed summary of (this|the) (conversation|recent)", re.IGNORECASE)
_HEARD = re.compile(r"\{\{(.+?)\}\}")
_LONGEST_WAIT_S = 20.0
_STREAM = "text/event-stream; charset=utf-8"
_USAGE = {"input_tokens": 100, "output_tokens": 10}


def heard(value: Any, body: dict[str, Any]) -> Any:
    """Return the input of a call, with what the model was told in each place that asks for it."""
    if isinstance(value, dict):
        return {name: heard(one, body) for name, one in value.items()}
    if isinstance(value, list):
        return [heard(one, body) for one in value]
    if not (isinstance(value, str) and _HEARD.search(value)):
        return value
    told = plain_text(conversation(body))

    def fill(place: re.Match[str]) -> str:
        found = re.findall(place[1], told)
        return found[-1] if found else "nothing-heard"

    return _HEARD.sub(fill, value)


class Conversations:
    """What is left of the script, and which of its conversations a request belongs to."""

    def __init__(self, script: dict[str, Any]) -> None:
        self._turns: dict[str, list[dict[str, Any]]] = {
            "main": list(script["main"]),
            **{f"agent {word}": list(turns) for word, turns in script["agents"].items()},
        }

    def belongs(self, body: dict[str, Any], *, subagent: bool | None) -> str:
        """Return `main`, `agent WORD`, `agent`, `compact` or `side`.

        `subagent`: None where the request does not tell; then one of its words has to.
        """
        messages = conversation(body) or [{}]
        if SUMMARY_WANTED.search(plain_text(messages[-1])):
            return "compact"
        if not body.get("tools"):
            return "side"  # a title, or whatever else the client asks on its own
        if subagent is False:
            return "main"
        first = next((i for i, m in enumerate(messages) if is_answer(m)), None)
        opening = plain_text(messages[:first])
        words = (name for name in self._turns if name != "main")
        found = (name for name in words if name.removeprefix("agent ") in opening)
        return next(found, "agent" if subagent else "main")

    def next_turn(self, conversation: str) -> dict[str, Any]:
        """Take the next turn of a conversation."""
        if conversation == "compact":
            return _said("<summary>what was said</summary>")  # or it would ask again
        left = self._turns.get(conversation)
        return left.pop(0) if left else _said("done")

    def left(self) -> dict[str, int]:
        """Return how many turns nobody asked for, by conversation."""
        return {name: len(turns) for name, turns in self._turns.items() if turns}


class Model(ThreadingHTTPServer):
    """The server; `port` is where it listens."""

    daemon_threads = True

    def __init__(self, script: dict[str, Any], log: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.port = int(self.server_address[1])
        self.conversations = Conversations(script)
        self._log = log
        self._lock = threading.Lock()
        self._made = 0
        self._asked = 0  # how often the main conversation had its turn
        log.write_bytes(b"")

    def start(self) -> None:
        """Serve in a thread of its own."""
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def take(self, path: str, body: dict[str, Any], *, subagent: bool | None) -> dict[str, Any]:
        """Write a request down; return the turn that answers it."""
        with self._lock:
            kind = "other"
            turn: dict[str, Any] = {}
            if path.endswith("/v1/messages") or other_apis.api_of(path):
                kind = self.conversations.belongs(body, subagent=subagent)
                turn = self.conversations.next_turn(kind)
                self._asked += kind == "main"
            record = {"at": time.time(), "kind": kind, "path": path, "body": body}
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        return turn

    def wait(self, turn: dict[str, Any]) -> None:
        """Wait as long as a turn wants: for the main conversation to come so far, and a while."""
        end = time.monotonic() + _LONGEST_WAIT_S
        while self._asked < turn["main_turns"] and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(turn["delay_s"])

    def new_id(self, prefix: str) -> str:
        """Make a name that this server did not use before."""
        with self._lock:
            self._made += 1
            return f"{prefix}_{self._made:08d}"


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Model

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        pass

    def do_HEAD(self) -> None:
        self._send(b"")

    def do_GET(self) -> None:
        self.server.take(self.path, {}, subagent=False)
        self._send(b"{}")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(raw or b"{}")
        path = self.path.partition("?")[0]
        api = other_apis.api_of(path)
        subagent = None if api else SUBAGENT_HEADER in self.headers
        turn = self.server.take(path, body, subagent=subagent)
        if not turn:
            self._send(b'{"input_tokens": 1}')
            return
        self.server.wait(turn)
        if turn["status"] != 200:
            error = {"type": turn["blocks"][0], "message": f"scripted: {turn['blocks'][0]}"}
            self._send(json.dumps({"type": "error", "error": error}).encode(), turn["status"])
            return
        if api:
            blocks = [heard(block, body) for block in turn["blocks"]]
            stream = api != "chat" or bool(body.get("stream"))
            made = other_apis.answer(api, blocks, self.server.new_id("resp"), stream=stream)
            self._send(made, kind=_STREAM if stream else "application/json")
            return
        message = self._message(turn, body)
        if body.get("stream"):
            self._send(_as_stream(message), kind=_STREAM)
        else:
            self._send(json.dumps(message).encode())

    def _message(self, turn: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        content: list[dict[str, Any]] = [
            {"type": "text", "text": block}
            if isinstance(block, str)
            else {"type": "tool_use", "id": self.server.new_id("toolu"), **heard(block, body)}
            for block in turn["blocks"]
        ]
        calls = any(block["type"] == "tool_use" for block in content)
        return {
            "id": self.server.new_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": body.get("model", ""),
            "content": content,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": _USAGE,
        }

    def _send(self, payload: bytes, status: int = 200, kind: str = "application/json") -> None:
        try:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)
        except OSError:
            pass  # the client has gone, which a test may have wanted


def _said(text: str) -> dict[str, Any]:
    return {"blocks": [text], "delay_s": 0, "main_turns": 0, "status": 200}


def _as_stream(message: dict[str, Any]) -> bytes:
    """Return a message as the events that a streaming answer consists of."""
    start = {**message, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty = {**block, "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": _USAGE})
    events.append({"type": "message_stop"})
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)
