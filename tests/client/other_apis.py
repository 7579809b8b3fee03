"""The answers of other vendors' models, as their clients read them: a stream of events each.

Source: what codex 0.169 (Responses API) and gemini-cli 0.61 (generateContent) ask and take.
"""

from __future__ import annotations

import json
from typing import Any

# How the path of a request ends → whose API that is.
PATHS = {"/responses": "responses", ":streamGenerateContent": "gemini"}


def api_of(path: str) -> str:
    """Return the API that a request is made to; nothing where it is none of these."""
    return next((api for end, api in PATHS.items() if path.endswith(end)), "")


def answer(api: str, blocks: list[Any], made_id: str) -> bytes:
    """Return a turn, texts and calls of tools, as the answer of an API to a request."""
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
    call = {"name": block["name"], "arguments": json.dumps(block["input"])}
    return {"type": "function_call", "id": made_id, "call_id": f"call_{made_id}", **call}


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
