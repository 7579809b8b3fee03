"""The answers of other vendors' models, as their clients read them, and what those ask.

Source: what codex 0.169 (Responses API), gemini-cli 0.61 (generateContent), qwen-code 0.24, copilot
1.0 and droid 0.225 (Chat Completions, with and without a stream) ask and take.
"""

from __future__ import annotations

import json
from typing import Any

# How the path of a request ends → whose API that is.
PATHS = {
    "/responses": "responses",
    ":streamGenerateContent": "gemini",
    "/chat/completions": "chat",
}
FREE_FORM = {"apply_patch"}  # tools of Codex whose input is a text, and no JSON
_ANSWERS = {"assistant", "model", "function_call", "custom_tool_call", "reasoning"}
_WITH_TEXT = ("text", "content", "output", "parts", "functionResponse", "response", "error")


def api_of(path: str) -> str:
    """Return the API that a request is made to; nothing where it is none of these."""
    return next((api for end, api in PATHS.items() if path.endswith(end)), "")


def conversation(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a request to any API."""
    found: list[dict[str, Any]] = (
        body.get("messages") or body.get("input") or body.get("contents") or []
    )
    return found


def is_answer(message: dict[str, Any]) -> bool:
    """Return whether the model itself has said this, in any API."""
    return not _ANSWERS.isdisjoint({message.get("role"), message.get("type")})


def plain_text(content: Any) -> str:
    """Return all text of a message, or of its content, that of tool results included."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content[key] for key in _WITH_TEXT if key in content]
    parts = [plain_text(part) for part in content or ()]
    return "\n".join(part for part in parts if part)


def answer(api: str, blocks: list[Any], made_id: str, *, stream: bool) -> bytes:
    """Return a turn, texts and calls of tools, as the answer of an API to a request."""
    if api == "chat":
        return _chat(blocks, made_id, stream=stream)
    return {"responses": _responses, "gemini": _gemini}[api](blocks, made_id)


def _responses(blocks: list[Any], made_id: str) -> bytes:
    items = [_item(block, f"{made_id}_{number}") for number, block in enumerate(blocks)]
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    response = {"id": made_id, "object": "response", "status": "completed", "output": items}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": made_id, "status": "in_progress"}}
    ]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": {**response, "usage": usage}})
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def _item(block: Any, made_id: str) -> dict[str, Any]:
    if isinstance(block, str):
        content = [{"type": "output_text", "text": block, "annotations": []}]
        return {"type": "message", "id": made_id, "role": "assistant", "content": content}
    space, _, name = block["name"].rpartition(".")
    call = {"id": made_id, "call_id": f"call_{made_id}", "name": name}
    if name in FREE_FORM:
        return {"type": "custom_tool_call", **call, "input": block["input"]["input"]}
    of = {"namespace": space} if space else {}
    return {"type": "function_call", **call, **of, "arguments": json.dumps(block["input"])}


def _gemini(blocks: list[Any], _made_id: str) -> bytes:
    parts = [
        {"text": block}
        if isinstance(block, str)
        else {"functionCall": {"name": block["name"], "args": block["input"]}}
        for block in blocks
    ]
    content = {"role": "model", "parts": parts}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return f"data: {json.dumps({'candidates': [candidate], 'usageMetadata': usage})}\n\n".encode()


def _chat(blocks: list[Any], made_id: str, *, stream: bool) -> bytes:
    text = "\n".join(block for block in blocks if isinstance(block, str))
    calls = [
        {
            "index": number,
            "id": f"call_{made_id}_{number}",
            "type": "function",
            "function": {"name": block["name"], "arguments": json.dumps(block["input"])},
        }
        for number, block in enumerate(block for block in blocks if not isinstance(block, str))
    ]
    said = {
        "role": "assistant",
        "content": text or None,
        **({"tool_calls": calls} if calls else {}),
    }
    end = "tool_calls" if calls else "stop"
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    head = {"id": made_id, "created": 0, "model": "scripted"}
    if not stream:
        choice = {"index": 0, "message": said, "finish_reason": end}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return json.dumps(whole).encode()
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": said, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
        {"choices": [], "usage": usage},
    ]
    told = [json.dumps({**head, "object": "chat.completion.chunk", **one}) for one in chunks]
    return "".join(f"data: {one}\n\n" for one in (*told, "[DONE]")).encode()
