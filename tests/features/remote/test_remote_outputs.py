"""What a gate has written on a server comes back, and nothing else is written here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from buildgrid_support import Server
from conftest import Repo
from reapi_stub import Stub, operation, result_of, token_of
from remote_client_support import Client

from gitgates.features.remote.protos import message


@pytest.mark.in_ci
@pytest.mark.slow
@pytest.mark.parametrize("status", [0, 1])
def test_files_and_folders_come_back(repo: Repo, server: Server, status: int) -> None:
    repo.write(".gitignore", "report.xml\nbuild/\nold\n")
    repo.write("old", "old").chmod(0o750)
    client = Client(repo)
    text = f"""mkdir -p build/a/b c; echo 1 >build/a/b/1; ln -s 1 build/a/b/2
    cp build/a/b/1 build/x; chmod +x build/x
    echo 2 >report.xml; echo new >old; echo 3 >c/3; echo 4 >y; exit {status}"""
    names = ("report.xml", "build/", "old", "c", "none")
    for reuse in (False, True, True):
        end = client.sh(server, text, outputs=names, reuse=reuse)
        assert (end.status, end.exit_status) == ("failed" if status else "passed", status)
        found = {
            str(path.relative_to(repo.path)) for path in repo.path.rglob("*") if path.is_file()
        }
        found = {path for path in found if not path.startswith(".git")}
        assert found == {"report.xml", "build/a/b/1", "build/x", "old"}
        assert (repo.path / "old").read_text() == "new\n"
        assert os.access(repo.path / "build/x", os.X_OK)
        assert client.said == ["`c/3` of `outputs` is not brought back: git does not ignore it"]
        client.said.clear()
        (repo.path / "report.xml").unlink()


@pytest.mark.slow
def test_nothing_but_a_file_of_the_repository_is_written(
    repo: Repo, server: Server, tmp_path: Path
) -> None:
    repo.write(".gitignore", "build\nfifo\nlink\nlast\n")
    (repo.path / "build").symlink_to(tmp_path)
    (repo.path / "link").symlink_to(tmp_path / "data")
    os.mkfifo(repo.path / "fifo")
    repo.git("init", "-q", "--separate-git-dir", ".git/sub", "sub")
    repo.git("-C", "sub", "commit", "-q", "--allow-empty", "-m", "first")
    repo.git("add", "sub")
    client = Client(repo)
    names = ("build", "fifo", "link", "sub/a/1", "last")
    text = (
        "mkdir -p build sub/a; for each in build/1 fifo link sub/a/1 last; do echo 1 >$each; done"
    )
    end = client.sh(server, text, outputs=names, inputs=(".gitignore",))
    assert end.status == "passed"
    assert [*tmp_path.glob("data"), *tmp_path.glob("1"), *repo.path.glob("sub/a")] == []
    assert (repo.path / "link").is_symlink()
    assert (repo.path / "fifo").is_fifo()
    assert (repo.path / "last").read_text() == "1\n"
    assert sorted(client.said) == [
        "`build/1` of `outputs` is not brought back: a folder above it is a link",
        "`fifo` of `outputs` is not brought back: something other than a file is in its place",
        "`link` of `outputs` is not brought back: something other than a file is in its place",
        "`sub/a/1` of `outputs` is not brought back: `sub` is a submodule",
    ]


def _digest(stub: Stub, found: Any) -> Any:
    return stub.put(found.SerializeToString())


def _named(name: str) -> Any:
    def fill(stub: Stub, tree: Any) -> None:
        tree.root.files.add(name=name).digest.CopyFrom(stub.put(b"content"))

    return fill


def _folder_named(name: str) -> Any:
    def fill(stub: Stub, tree: Any) -> None:
        child = tree.children.add()
        child.files.add(name="file").digest.CopyFrom(stub.put(b"content"))
        tree.root.directories.add(name=name).digest.CopyFrom(_digest(stub, child))

    return fill


def _half(stub: Stub, tree: Any) -> None:
    tree.root.directories.add(name="a").digest.CopyFrom(_digest(stub, message("Directory")()))


def _doubled(stub: Stub, tree: Any) -> None:
    """Each folder has the next one twice: 2 ** 40 of them."""
    digest = _digest(stub, tree.children.add())
    for _ in range(40):
        child = tree.children.add()
        for name in ("a", "b"):
            child.directories.add(name=name).digest.CopyFrom(digest)
        digest = _digest(stub, child)
    tree.root.directories.add(name="a").digest.CopyFrom(digest)


def _large(_stub: Stub, tree: Any) -> None:
    tree.root.files.add(name="a").digest.size_bytes = 1 << 40


@pytest.mark.samples(5)
@pytest.mark.parametrize(
    ("fill", "reason"),
    [
        (_named("../../escaped"), "has the invalid name"),
        (_folder_named(".."), "has the invalid name"),
        (_half, "incompletely"),
        (_doubled, "too many files"),
        (_large, "MiB, more than the limit of"),
        (_named(".."), "has the invalid name"),
        (_named(""), "has the invalid name"),
        (_named("a\0b"), "has the invalid name"),
        (_folder_named(".Git"), "has the invalid name"),
    ],
)
def test_a_server_that_lies_writes_nothing(
    repo: Repo, fill: Callable[[Stub, Any], None], reason: str
) -> None:
    repo.write(".gitignore", "*\n")

    def answer(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
        response = result_of(stub, f"{token_of(command)} 0\n")
        tree = message("Tree")()
        fill(stub, tree)
        folder = response.result.output_directories.add(path="checkout/build")
        folder.tree_digest.CopyFrom(_digest(stub, tree))
        yield operation(response)

    with Stub(answer).serving() as stub:
        end = Client(repo).sh(stub.url, "exit 0", outputs=("build",))
    assert end.status == "could-not-run"
    assert reason in end.reason
    assert not (repo.path / "build").exists()
    assert not (repo.path.parent / "escaped").exists()


def test_only_what_was_asked_for_is_written(repo: Repo) -> None:
    repo.write(".gitignore", "*\n")

    def answer(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
        response = result_of(stub, f"{token_of(command)} 0\n")
        for path in ("checkout/other", "other", "checkout/../other", "/other"):
            response.result.output_files.add(path=path).digest.CopyFrom(stub.put(b"content"))
        yield operation(response)

    with Stub(answer).serving() as stub:
        assert Client(repo).sh(stub.url, "exit 0", outputs=("build",)).status == "passed"
    assert not (repo.path / "other").exists()
