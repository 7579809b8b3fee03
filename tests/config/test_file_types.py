"""`types` of a gate: what a file is by its name, its `#!` line and its mode."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitgates.config.file_types import of_types
from gitgates.core.types import Gate

FILES = {
    "a.py": "",
    "tool": "#!/usr/bin/env python3\n",
    "run.sh": "#!/bin/sh\n",
    "notes": "words\n",
    "stub.pyi": "",
    "data": "\0\1",
}


@pytest.mark.parametrize(
    ("types", "types_or", "expected"),
    [
        (("python",), (), "a.py tool gone.py"),
        (("python", "executable"), (), "tool"),
        (("text", "!executable"), (), "a.py notes stub.pyi gone.py"),
        ((), ("python", "pyi"), "a.py tool stub.pyi gone.py"),
        (("!python",), ("text", "binary"), "run.sh notes stub.pyi data"),
        (("symlink",), (), "link"),
        (("file",), (), "a.py tool run.sh notes stub.pyi data gone.py"),
        (("rust",), (), ""),
    ],
)
def test_paths_of_types(
    tmp_path: Path, types: tuple[str, ...], types_or: tuple[str, ...], expected: str
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for name in ("tool", "run.sh"):
        (tmp_path / name).chmod(0o755)
    os.symlink("a.py", tmp_path / "link")
    gate = Gate(name="g", types=types, types_or=types_or)
    paths = (*FILES, "link", "gone.py")
    assert of_types(paths, gate, str(tmp_path)) == tuple(expected.split())
