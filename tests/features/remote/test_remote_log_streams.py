"""Output that a server streams while a gate runs: it comes at once, and what counts is the result.

No server that can be installed here streams, so one that only answers does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import Repo
from reapi_stub import Stub, operation, result_of, token_of
from remote_client_support import Client

from gitgates.features.remote.gates import RemoteEnd

ALL = b"one\ntwo\nthree\n"
MOST = 200_000  # bytes of a log


def streamed(
    repo: Repo,
    *streams: Iterator[bytes],
    output: bytes = ALL,
    until: bytes = b"",
    wait_s: float = 5,
) -> tuple[RemoteEnd, bytes]:
    """Run a gate whose output is streamed; return its end, and all that was passed on.

    The gate ends when `until` has been passed on.
    """
    client, came = Client(repo, most_bytes=MOST), threading.Event()

    def on_output(data: bytes) -> None:
        client.output += data
        if client.output.startswith(until):
            came.set()

    def answer(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
        for number, stream in enumerate(streams):
            stub.streams[f"streams/{number}"] = stream
            yield operation(stream=f"streams/{number}")
        if until:
            assert came.wait(wait_s)
        yield operation(result_of(stub, f"{token_of(command)} 0\n", output=output))

    client.on_output = on_output
    with Stub(answer).serving() as stub:
        end = client.sh(stub.url, "exit 0")
    return end, client.output


def _breaks() -> Iterator[bytes]:
    yield b"one\n"
    raise OSError


def _waits() -> Iterator[bytes]:
    yield b"one\n"
    time.sleep(5.0)


@pytest.mark.parametrize(
    ("stream", "until"),
    [
        (lambda: iter([b"one\n", b"two\n"]), b"one\ntwo\n"),
        (lambda: iter([b"o", b"", ALL[1:]]), ALL),
        (_breaks, b"one\n"),
        (_waits, b"one\n"),
    ],
)
def test_it_comes_while_the_gate_runs(
    repo: Repo, stream: Callable[[], Iterator[bytes]], until: bytes
) -> None:
    began_s = time.monotonic()
    end, output = streamed(repo, stream(), until=until)
    assert (end.status, end.output, output) == ("passed", None, ALL)
    assert time.monotonic() - began_s < 5.0


def _refused() -> Iterator[bytes]:
    yield from map(bytes, [-1])  # an error


def _endless() -> Iterator[bytes]:
    while True:
        yield b""
        time.sleep(0.001)


@pytest.mark.parametrize("stream", [lambda: iter(()), _refused, _endless])
def test_without_it_the_output_comes_at_the_end(
    repo: Repo, stream: Callable[[], Iterator[bytes]]
) -> None:
    end, output = streamed(repo, stream())
    assert (end.status, end.output, output) == ("passed", None, ALL)


@pytest.mark.parametrize("other", [b"two\n", ALL + b"more", b"o", b"one\ntw0"])
def test_what_the_result_has_counts(repo: Repo, other: bytes) -> None:
    end, output = streamed(repo, iter([other]), until=other)
    expected = (ALL, None) if ALL.startswith(other) else (other, ALL)
    assert (end.status, (output, end.output)) == ("passed", expected)


def test_only_the_first_stream_is_passed_on(repo: Repo) -> None:
    end, output = streamed(repo, iter([b"one\n"]), iter([ALL, ALL]), until=b"one\n")
    assert (end.output, output) == (None, ALL)


def test_no_more_of_it_is_passed_on_than_of_a_result(repo: Repo) -> None:
    lines = b"".join(b"%9d\n" % number for number in range(MOST // 10 + 1000))
    parts = [lines[at : at + 10_000] for at in range(0, len(lines), 10_000)]
    end, output = streamed(repo, iter(parts), output=lines, until=lines[:10_000])
    assert end.output is not None
    assert end.output == lines[-MOST:]
    assert len(output) <= MOST


def test_a_gate_that_could_not_run_has_no_rest(repo: Repo) -> None:
    def answer(stub: Stub, _action: Any, _command: Any) -> Iterator[Any]:
        stub.streams["stream"] = iter([b"one\n"])
        yield operation(stream="stream")
        yield operation(result_of(stub, "another mark", output=ALL))

    client = Client(repo)
    with Stub(answer).serving() as stub:
        end = client.sh(stub.url, "exit 0")
    assert (end.status, end.output) == ("could-not-run", None)
    assert b"two" not in client.output
