"""What is sent to a server, and what of it is not sent again."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from reapi_stub import Stub, operation, result_of, token_of
from remote_client_support import Client

from gitgates.core.types import make_gate
from gitgates.features.remote import worker
from gitgates.features.remote.connection import Connection
from gitgates.features.remote.gates import GateRequest
from gitgates.features.remote.inputs import InputsError
from gitgates.features.remote.tree import InputRoot, digest_of, input_root
from gitgates.git.repo import find_repo

ASKED, SENT = "FindMissingBlobs", "BatchUpdateBlobs"
OF_AN_ACTION = 3  # blobs: the action, its command, its root


def _passes(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
    yield operation(result_of(stub, f"{token_of(command)} 0\n"))


@pytest.fixture(name="stub")
def _stub() -> Iterator[Stub]:
    with Stub(_passes).serving() as stub:
        yield stub


@pytest.fixture(name="project")
def _project(repo: Repo) -> Repo:
    for folder in ("a/deep", "a/other", "b"):
        for number in range(10):
            repo.write(f"{folder}/{number}.txt", f"{folder} {number}\n")
    repo.commit_all("first")
    return repo


def root_of(repo: Repo) -> InputRoot:
    return input_root(find_repo(str(repo.path), dict(os.environ)), str(repo.path), (), ())


def run(repo: Repo, stub: Stub, connection: Connection | None = None) -> list[str]:
    """Have a gate run; return the hashes of what was sent for it."""
    before = len(stub.sent)
    assert Client(repo, connection).sh(stub.url, "exit 0", reuse=True).status == "passed"
    return stub.sent[before:]


def test_nothing_is_sent_again(project: Repo, stub: Stub) -> None:
    root = root_of(project)
    sent = run(project, stub)
    assert len(sent) == len({*root.files, *root.directories}) + OF_AN_ACTION
    assert stub.calls == [ASKED, SENT]
    assert run(project, stub) == []
    assert stub.calls == [ASKED, SENT]  # it is not even asked


def test_of_a_change_the_file_and_the_folders_above_it_are_sent(project: Repo, stub: Stub) -> None:
    before = root_of(project)
    run(project, stub)
    project.write("a/deep/0.txt", "changed\n")
    after = root_of(project)
    sent = set(run(project, stub))
    folders = {each.hash for each in after.directories.keys() - before.directories.keys()}
    assert len(folders) == len(("", "a", "a/deep"))
    own = sent - folders - {digest_of(b"changed\n").hash}
    assert len(own) == OF_AN_ACTION
    assert len(sent) == len(folders) + 1 + OF_AN_ACTION
    assert stub.calls == 2 * [ASKED, SENT]
    assert sum(len(stub.blobs[each]) for each in sent) < 4_000


def test_another_worktree_of_the_same_content_sends_nothing(project: Repo, stub: Stub) -> None:
    run(project, stub)
    project.git("worktree", "add", "-q", "../other")
    assert run(Repo(project.path.parent / "other"), stub) == []
    assert stub.calls == [ASKED, SENT]


def test_another_clone_of_the_same_content_sends_nothing(
    project: Repo, stub: Stub, tmp_path: Path
) -> None:
    run(project, stub)
    project.git("clone", "-q", ".", str(tmp_path / "clone"))
    assert run(Repo(tmp_path / "clone"), stub) == []
    assert stub.calls == [ASKED, SENT, ASKED]


def test_gates_that_start_together_send_each_blob_once(project: Repo, stub: Stub) -> None:
    table = dict.fromkeys(("ca", "cert", "key", "instance"), "") | {"execution": stub.url}
    connection = Connection(table, str(project.path))
    stub.slow_s = 0.3
    with ThreadPoolExecutor(4) as threads:
        clients = [Client(project, connection) for _ in range(4)]
        ends = [
            threads.submit(client.sh, stub.url, f"exit 0 # {number}")
            for number, client in enumerate(clients)
        ]
    assert {end.result().status for end in ends} == {"passed"}
    counted = Counter(stub.sent)
    assert len(counted) > len(root_of(project).files) + 4
    assert set(counted.values()) == {1}


class _Roots:
    """Trees as the worker has them, and how often it has looked at the files for that."""

    def __init__(self, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found = find_repo(str(repo.path), dict(os.environ))
        self.shared = vars(worker)["_Shared"]()
        self.looks = 0
        self.goes_on = threading.Event()
        self.goes_on.set()
        monkeypatch.setattr(worker, "input_root", self._look)

    def root(self, *paths: str, **fields: Any) -> InputRoot:
        request = GateRequest(
            root_abs=self.found.root_abs,
            repo_abs=self.found.root_abs,
            table={"not_secret": ()},
            gate={},
            paths=paths,
            argv=(),
            env={},
            cwd=".",
            within_s=1.0,
            most_output=1,
            end_abs="",
        )
        root: InputRoot = self.shared.input_root(self.found, request, make_gate(name="a", **fields))
        return root

    def _look(self, *args: Any, **fields: Any) -> InputRoot:
        self.looks += 1
        assert self.goes_on.wait(10.0)
        return input_root(*args, **fields)


def test_a_gate_gets_the_files_as_they_are_when_it_starts(
    project: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = _Roots(project, monkeypatch)
    first = roots.root()
    project.write("a/new.txt", "new\n")
    assert roots.root().digest != first.digest
    assert roots.looks == 2


@pytest.mark.parametrize("inputs", [(), ("b/",)])
def test_what_a_gate_is_passed_has_to_be_sent(
    project: Repo, monkeypatch: pytest.MonkeyPatch, inputs: tuple[str, ...]
) -> None:
    roots = _Roots(project, monkeypatch)
    project.write(".gitignore", "ignored.py\n")
    project.write("ignored.py", "1")
    project.write("new.py", "2")
    assert digest_of(b"2") in roots.root("new.py", inputs=inputs).files
    with pytest.raises(InputsError, match=r"`ignored\.py` is passed to the gate, but not sent"):
        roots.root("new.py", "ignored.py", inputs=inputs)
    named = roots.root("ignored.py", inputs=inputs, ignored_inputs=("ignored.py",))
    assert digest_of(b"1") in named.files


def test_gates_that_wait_for_a_tree_share_the_next_one(
    project: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = _Roots(project, monkeypatch)
    roots.goes_on.clear()
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(roots.root)
        while not roots.looks:
            time.sleep(0.001)
        project.write("a/new.txt", "new\n")  # the first may have looked there already
        rest = [threads.submit(roots.root) for _ in range(3)]
        while threads._work_queue.qsize():  # noqa: SLF001 - until all wait
            time.sleep(0.001)
        time.sleep(0.05)
        roots.goes_on.set()
    assert roots.looks == 2
    assert first.result()
    assert len({id(each.result()) for each in rest}) == 1
    assert digest_of(b"new\n") in rest[0].result().files
