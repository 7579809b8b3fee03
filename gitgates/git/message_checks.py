"""What may be posted: topics of one line, texts of a size that somebody reads."""

from __future__ import annotations

from gitgates.clean import visible_line
from gitgates.errors import UsageError

MOST_TEXT = 1024 * 1024  # bytes, as UTF-8
MOST_TOPIC = 200  # characters
_SHOWN = 40
_HINT = "Name it like `build` or `review/parser`."


def check_text(text: str) -> None:
    """Refuse a text that is empty, binary or too long.

    Raises: UsageError.
    """
    if not text.strip():
        raise UsageError("the text is empty", "Say something: -m TEXT, or on standard input.")
    if "\0" in text:
        raise UsageError("the text has a NUL character in it", "Post text, and name files by path.")
    length = len(text.encode("utf-8", "replace"))
    if length > MOST_TEXT:
        raise UsageError(
            f"the text has {length} bytes, and the most is {MOST_TEXT}",
            "Post what matters, and name the file that has the rest.",
        )


def check_topic(topic: str) -> None:
    """Refuse a topic that could not be typed, shown on one line, or told from another.

    Raises: UsageError.
    """
    named = shown(topic)
    if not topic.strip("/ "):
        raise UsageError("the topic is empty", _HINT)
    if len(topic) > MOST_TOPIC:
        raise UsageError(f"the topic has {len(topic)} characters; the most is {MOST_TOPIC}", _HINT)
    if topic != sound(topic):
        raise UsageError(f"the topic `{named}` is no UTF-8", _HINT)
    if topic.splitlines() != [topic] or any(map(_is_control, topic)):
        raise UsageError(f"the topic `{named}` has a control character or a second line", _HINT)
    if any(not part or part != part.strip() for part in topic.split("/")):
        raise UsageError(f"the topic `{named}` has an empty part, or a space at an end", _HINT)


def sound(text: str) -> str:
    """Return text of Unicode alone: each character that is none becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # Bytes that are no UTF-8 came as lone surrogates, which no other program could read.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def shown(text: str) -> str:
    """Return the beginning of any text as a refusal names it."""
    return visible_line(text[:_SHOWN])


def _is_control(char: str) -> bool:
    return char < " " or "\x7f" <= char < "\xa0"
