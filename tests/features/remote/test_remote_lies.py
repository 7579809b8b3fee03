"""A server that lies, or breaks off: there is never a pass that it has no proof of, and no hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import Repo
from reapi_stub import Stub, operation, result_of, token_of
from remote_client_support import Client

from gitgates.features.remote import execution
from gitgates.features.remote.protos import message
from gitgates.features.remote.tree import digest_of


def _honest(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
    yield operation()
    yield operation(result_of(stub, f"{token_of(command)} 0\n"))


def _without_mark(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
    response = result_of(stub, f"{token_of(command)} 0\n")
    del response.result.output_files[:]
    yield operation(response)


def _marked(mark: Callable[[str], str], exit_code: int = 0) -> Any:
    def answer(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
        yield operation(result_of(stub, mark(token_of(command)), exit_code))

    return answer


def _two_marks(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
    response = result_of(stub, f"{token_of(command)} 0\n")
    response.result.output_files.add(path="gitgates/end").digest.CopyFrom(stub.put(b"other"))
    yield operation(response)


def _status(code: int) -> Any:
    def answer(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
        response = result_of(stub, f"{token_of(command)} 0\n")
        response.status.code, response.status.message = code, "why\x1b[31m\n"
        yield operation(response)

    return answer


def _other_output(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
    response = result_of(stub, f"{token_of(command)} 0\n")
    stub.blobs[response.result.stdout_digest.hash] = b"0utput\n"
    yield operation(response)


def _longer_output(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
    response = result_of(stub, f"{token_of(command)} 0\n")
    stub.blobs[response.result.stdout_digest.hash] = b"output\n" * 1000
    yield operation(response)


def _lost_output(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
    response = result_of(stub, f"{token_of(command)} 0\n")
    del stub.blobs[response.result.stdout_digest.hash]
    yield operation(response)


def _nothing(_stub: Stub, _action: Any, _command: Any) -> Iterator[Any]:
    yield from ()


def _never_done(_stub: Stub, _action: Any, _command: Any) -> Iterator[Any]:
    yield operation()


def _other_message(_stub: Stub, _action: Any, _command: Any) -> Iterator[Any]:
    yield operation(message("Digest")(hash="ab"))


def _damaged(_stub: Stub, _action: Any, _command: Any) -> Iterator[Any]:
    done = operation(message("ExecuteResponse")())
    done.response.value = b"\xff"
    yield done


def _damaged_metadata(_stub: Stub, _action: Any, _command: Any) -> Iterator[Any]:
    done = operation()
    done.metadata.value = b"\xff"
    yield done


def _no_result(_stub: Stub, _action: Any, _command: Any) -> Iterator[Any]:
    done = operation()
    done.done = True
    yield done


def _failed_operation(_stub: Stub, _action: Any, _command: Any) -> Iterator[Any]:
    failed = operation()
    failed.done, failed.error.code = True, 8
    yield failed


def _raises(_stub: Stub, _action: Any, _command: Any) -> Iterator[Any]:
    yield operation()
    raise RuntimeError


LIES: list[tuple[Any, str]] = [
    (_without_mark, "did not run to its end"),
    (_marked(lambda _token: "0\n"), "did not run to its end"),
    (_marked(lambda _token: f"{'0' * 64} 0\n"), "did not run to its end"),  # of another action
    (_marked(lambda token: f"{token} 1\n"), "did not run to its end"),
    (_marked(lambda token: f"{token} 0\n", 1), "did not run to its end"),
    (_marked(lambda token: f"{token} 126\n", 126), "could not be started"),
    (_marked(lambda token: f"{token} 127\n", 127), "command not found"),
    (_marked(lambda token: f"{token} 137\n", 137), "SIGKILL"),
    (_two_marks, "did not run to its end"),
    (_status(13), "INTERNAL: why"),
    (_status(4), "DEADLINE_EXCEEDED"),
    (_status(10), "ABORTED"),
    (_status(9), "FAILED_PRECONDITION"),
    (_status(99), "status 99"),
    (_other_output, "does not match its digest"),
    (_longer_output, "more than it announced"),
    (_lost_output, "NOT_FOUND"),
    (_nothing, "ended its answer"),
    (_never_done, "ended its answer"),
    (_other_message, "is not a result"),
    (_damaged, "cannot be read"),
    (_damaged_metadata, "cannot be read"),
    (_no_result, "is not a result"),
    (_failed_operation, "RESOURCE_EXHAUSTED"),
    (_raises, "UNKNOWN"),
]


def test_no_proof_no_result(repo: Repo) -> None:
    with Stub(_honest).serving() as stub:
        for answer, reason in LIES:
            stub.answer = answer
            end = Client(repo).sh(stub.url, "exit 0", reuse=True)
            assert (end.status, reason in end.reason) == ("could-not-run", True), (reason, end)
            assert "\x1b" not in end.reason


def test_a_pass_of_the_cache_that_was_not_asked_for(repo: Repo) -> None:
    def cached(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
        response = result_of(stub, f"{token_of(command)} 0\n")
        response.cached_result = True
        yield operation(response)

    with Stub(cached).serving() as stub:
        assert Client(repo).sh(stub.url, "exit 0", reuse=True).status == "passed"
        end = Client(repo).sh(stub.url, "exit 0")
    assert (end.status, "from its cache" in end.reason) == ("could-not-run", True)


@pytest.mark.parametrize("code", [5, 9])
def test_what_it_has_lost_is_sent_again(repo: Repo, code: int) -> None:
    said = []

    def loses(stub: Stub, action: Any, command: Any) -> Iterator[Any]:
        said.append(code)
        if len(said) == 1:
            stub.blobs.clear()
        yield from (_status(code) if len(said) == 1 else _honest)(stub, action, command)

    repo.write("file", "text\n")
    with Stub(_honest).serving() as stub:
        Client(repo).sh(stub.url, "exit 0")
        stub.answer = loses
        assert Client(repo).sh(stub.url, "exit 0").status == "passed"
    assert b"text\n" in stub.blobs.values()


@pytest.mark.parametrize(("status", "output"), [(1, b""), (0, b"cat: file: Input/output error\n")])
def test_a_verdict_without_a_file_that_it_has_lost_does_not_count(
    repo: Repo, status: int, output: bytes
) -> None:
    lost = digest_of(b"text\n").hash

    def loses(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
        stub.answer = _honest
        del stub.blobs[lost]
        yield operation(result_of(stub, f"{token_of(command)} {status}\n", status, output))

    repo.write("file", "text\n")
    with Stub(_honest).serving() as stub:
        Client(repo).sh(stub.url, "exit 0")
        stub.answer = loses
        end = Client(repo).sh(stub.url, "exit 0")
    assert (end.status, end.output) == ("passed", None)
    assert lost in stub.blobs


def _until_it_is_cancelled(stage: int) -> Any:
    def answer(stub: Stub, _action: Any, _command: Any) -> Iterator[Any]:
        yield operation(stage=stage)
        while not stub.cancelled:
            time.sleep(0.01)

    return answer


@pytest.mark.slow
@pytest.mark.samples(2)
@pytest.mark.parametrize(("stage", "started"), [(2, False), (3, True), (1, False), (0, True)])
def test_what_no_worker_takes_is_given_up_in_time(repo: Repo, stage: int, started: bool) -> None:  # noqa: FBT001 - a parameter
    with Stub(_until_it_is_cancelled(stage)).serving() as stub:
        began_s = time.monotonic()
        end = Client(repo).sh(stub.url, "exit 0", timeout_s=2.0)
        took_s = time.monotonic() - began_s
    assert end.status == "could-not-run"
    assert ("had not started" in end.reason) != started
    assert took_s >= 2.0 if started else 1.0 <= took_s < 2.0


@pytest.mark.slow
def test_what_is_sent_too_slowly_is_given_up_in_time(repo: Repo) -> None:
    with Stub(_honest).serving() as stub:
        stub.slow_s = 5.0
        began_s = time.monotonic()
        end = Client(repo).sh(stub.url, "exit 0", timeout_s=3.0)
        assert 1.5 <= time.monotonic() - began_s < 3.0
    assert (end.status, "had not started" in end.reason) == ("could-not-run", True)


def test_a_server_that_is_mute_is_down(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_CALL_S", 0.5)
    with Stub(_honest).serving() as stub:
        stub.mute.set()
        end = Client(repo).sh(stub.url, "exit 0")
    assert (end.status, end.is_down) == ("could-not-run", True)


@pytest.mark.slow
def test_a_server_that_becomes_mute_is_given_up(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "_CALL_S", 0.5)
    monkeypatch.setattr(execution, "_QUIET_S", 0.2)

    def becomes_mute(stub: Stub, action: Any, command: Any) -> Iterator[Any]:
        yield operation(stage=3)
        time.sleep(1.0)
        stub.mute.set()
        yield from _until_it_is_cancelled(3)(stub, action, command)

    with Stub(becomes_mute).serving() as stub:
        began_s = time.monotonic()
        end = Client(repo).sh(stub.url, "exit 0")
        assert 1.0 < time.monotonic() - began_s < 5.0
    assert (end.status, end.is_down) == ("could-not-run", True)
    assert end.reason.startswith(
        "the server no longer answers: DEADLINE_EXCEEDED: no answer in time"
    )


def test_with_proof(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # not for this machine
    monkeypatch.delenv("no_proxy", raising=False)
    client = Client(repo)
    with Stub(_honest).serving() as stub:
        assert client.sh(stub.url, "exit 0").status == "passed"
    assert client.output == b"output\n"


def test_what_is_sent_is_as_the_api_demands(repo: Repo) -> None:
    repo.write(".gitignore", "*.xml\n")
    for path in ("a/x", "a-b/x", "a.b", "a/b/c", "a/b-c", "Ä", "\U0001f600", "\uffff", "empty"):
        repo.write(path, "" if path == "empty" else path)
    repo.write("b/tool", "x").chmod(0o755)
    (repo.path / "b/link").symlink_to("../a")
    outputs = ("z.xml", "a.xml", "z.xml", "a.xml/", "b/c.xml")
    platform = (("b", "1"), ("OSFamily", "linux"), ("container-image", "docker://a"))
    with Stub(_honest).serving() as stub:
        end = Client(repo).sh(
            stub.url, "exit 0", outputs=outputs, platform=platform, timeout_s=20.5
        )
    assert (end.status, end.reason) == ("passed", "")
    header = stub.headers["build.bazel.remote.execution.v2.requestmetadata-bin"]
    assert message("RequestMetadata").FromString(header).tool_details.tool_name == "gitgates"


def test_what_is_sent_must_be_stored(repo: Repo) -> None:
    with Stub(_honest).serving() as stub:
        stub.stored = False
        end = Client(repo).sh(stub.url, "exit 0")
    assert end.status == "could-not-run"


@pytest.mark.slow
@pytest.mark.samples(1)
@pytest.mark.parametrize("ends_by", ["time", "nobody"])
def test_a_server_that_never_answers(repo: Repo, ends_by: str) -> None:
    ended, over = threading.Event(), threading.Event()

    def waits(_stub: Stub, _action: Any, _command: Any) -> Iterator[Any]:
        yield operation(name="the one")
        ended.wait(20.0)

    with Stub(waits).serving() as stub:
        if ends_by == "nobody":
            threading.Timer(0.3, over.set).start()
        began_s = time.monotonic()
        timeout_s = 1.5 if ends_by == "time" else 20.0
        end = Client(repo).sh(stub.url, "exit 0", timeout_s=timeout_s, over=over)
        took_s = time.monotonic() - began_s
        ended.set()
    assert end.status == "could-not-run"
    assert took_s < 10.0
    assert stub.cancelled == ["the one"]


def test_a_stream_without_end(repo: Repo) -> None:
    ended = threading.Event()

    def talks(_stub: Stub, _action: Any, _command: Any) -> Iterator[Any]:
        while not ended.wait(0.001):
            yield operation()

    with Stub(talks).serving() as stub:
        began_s = time.monotonic()
        end = Client(repo).sh(stub.url, "exit 0", timeout_s=1.0)
        took_s = time.monotonic() - began_s
        ended.set()
    assert end.status == "could-not-run"
    assert took_s < 5.0
