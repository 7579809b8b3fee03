"""What an agent says is read as `json` reads it, though that is not loaded."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from json_support import JSON

from gitgates.core.lean_json import dumps, loads

# The scanner has no error of its own for some of them while `json.decoder` is not loaded.
BAD = ('"abc', '{"a', '{"a":', "[1,", "{", "nul", "", '{"a":1}x', '"\\u12', '"a\nb"', "01", "[1 2]")
PROGRAM = """\
import os, sys
from gitgates.core.lean_json import loads
assert "json" not in sys.modules
for text in sys.argv[1:]:
    if os.fork():  # an error may load it
        os.wait()
        continue
    try:
        loads(text)
    except ValueError as error:
        print(error, flush=True)
    os._exit(0)
"""


def test_what_is_no_json_is_refused_as_json_does() -> None:
    refused = []
    for text in BAD:
        with pytest.raises(ValueError) as error:  # noqa: PT011 - compared below
            json.loads(text)
        refused.append(str(error.value))
    argv = (sys.executable, "-c", PROGRAM, *BAD)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines(), done.stderr) == (refused, "")


@given(JSON)
def test_it_writes_and_reads_as_json_does(value: object) -> None:
    text = dumps(value)
    assert text == json.dumps(value)
    assert repr(loads(text)) == repr(loads(text.encode())) == repr(json.loads(text))


def test_what_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(RecursionError):
        loads("[" * 100_000)
