"""The file of accepted failures, `.gitgates-baseline.json` in the root: read and written. Cold.

One failure a line, sorted by gate and title, and a last line that stays the same, so that branches
that remove different failures merge.
"""

from __future__ import annotations

import json
import os

from gitgates.config import BASELINE_FILE
from gitgates.core.clean import utf8
from gitgates.core.errors import ConfigError
from gitgates.core.limits import parse_json
from gitgates.store.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    # Gate → fingerprint → title, as it was when the failure was accepted.
    Accepted: TypeAlias = dict[str, dict[str, str]]

_VERSION = 1
_HINT = "Take the entries of both sides of a merge, or restore the file: git restore"


def read_accepted(root_abs: str) -> Accepted | None:
    """Return the accepted failures of a working tree; None if it has no such file.

    Raises: ConfigError if the file cannot be read.
    """
    try:
        content = read_regular(os.path.join(root_abs, BASELINE_FILE))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{BASELINE_FILE}: cannot be read: {error.strerror}") from error
    return parse_accepted(content)


def parse_accepted(content: bytes) -> Accepted:
    """Return the accepted failures in the content of a file. Raises: ConfigError."""
    hint = f"{_HINT} {BASELINE_FILE}"
    try:
        document = parse_json(content.decode())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{BASELINE_FILE}: is not JSON: {error}", hint) from error
    if not isinstance(document, dict) or document.pop("version", None) != _VERSION:
        text = f'{BASELINE_FILE}: expected an object with `"version": {_VERSION}`'
        raise ConfigError(text, "A file of a newer version needs a newer gitgates.")
    accepted: Accepted = {}
    for key, title in document.items():
        gate, _, fingerprint = key.rpartition(" ")
        if not (gate and fingerprint and isinstance(title, str)):
            text = f'{BASELINE_FILE}: got `{key}`, expected `"GATE FINGERPRINT": "TITLE"`'
            raise ConfigError(text, hint)
        accepted.setdefault(gate, {})[fingerprint] = title
    return accepted


def render_accepted(accepted: Mapping[str, Mapping[str, str]]) -> bytes:
    """Return the content of a file with these failures."""
    rows = sorted(
        (gate, title, fingerprint)
        for gate, titles in accepted.items()
        for fingerprint, title in titles.items()
    )
    lines = [f"  {_text(f'{gate} {mark}')}: {_text(title)},\n" for gate, title, mark in rows]
    return ("{\n" + "".join(lines) + f'  "version": {_VERSION}\n}}\n').encode()


def _text(text: str) -> str:
    return json.dumps(utf8(text), ensure_ascii=False)
