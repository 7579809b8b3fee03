"""A verb that runs in the process of the tests is as if it had one of its own, or fails a test."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable

import forked
import in_process
import pytest
from conftest import Repo

from gitgates.cli import check

CONFIG = '[gates.g]\ncommand = "echo $X; cat; exit 1"\n[hooks.pre-commit]\ngates = ["g"]\n'


def verb(repo: Repo, monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Have `check` do something else."""
    repo.config(CONFIG)
    monkeypatch.setattr(check.command, "callback", lambda **_options: do())


def test_all_is_as_before(repo: Repo) -> None:
    def state() -> list[object]:
        return [
            *(dict(os.environ), os.getcwd(), sys.argv, sys.orig_argv, sys.path, sys.meta_path),
            *(sys.stdin, sys.stdout, sys.stderr, warnings.filters, os.listdir("/dev/fd")),
            *(signal.getsignal(number) for number in signal.valid_signals()),
        ]

    repo.config(CONFIG)
    before = state()
    assert repo.gitgates("run", "pre-commit", "-v", env={"A": "b"}).returncode == 1
    assert state() == before


def test_it_is_what_a_process_answers(repo: Repo) -> None:
    repo.config(CONFIG)
    for args in (("check",), ("explain", "pre-commit"), ("runs", "--nonsense"), (), ("--help",)):
        said = [repo.gitgates(*args, env={"X": "ä"}, process=process) for process in (False, True)]
        assert vars(said[0]) == vars(said[1])


def test_standard_streams(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    def do() -> None:
        print(sys.stdin.read(), os.getcwd(), os.environ["A"], sys.argv[1:])
        os.system("echo from a child; echo and here >&2")
        warnings.warn("said", UserWarning, stacklevel=1)
        warnings.warn("not said", DeprecationWarning, stacklevel=1)

    verb(repo, monkeypatch, do)
    done = repo.gitgates("check", env={"A": "b"}, stdin=b"in")
    assert done.stdout.decode() == f"in {repo.path} b ['check']\nfrom a child\n"
    assert b"and here\n" in done.stderr
    assert b"UserWarning: said\n" in done.stderr
    assert b"not said" not in done.stderr


def _leave_descriptor() -> None:
    os.open(os.devnull, os.O_RDONLY)


def _change_folder() -> None:
    os.chdir("..")


def _set_variable() -> None:
    os.environ["X"] = "y"


def _handle() -> None:
    signal.signal(signal.SIGTERM, lambda *_args: None)


def _umask() -> None:
    os.umask(0o007)


@pytest.mark.parametrize(
    ("do", "left"),
    [
        (_leave_descriptor, os.devnull),
        (_change_folder, "folder"),
        (_set_variable, "variable b'X'"),
        (_handle, "SIGTERM"),
        (_umask, "umask"),
    ],
)
def test_what_is_left_behind_fails_the_test(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, do: Callable[[], object], left: str
) -> None:
    verb(repo, monkeypatch, do)
    # Threads that an earlier test has left may open descriptors; none does here.
    monkeypatch.setattr(in_process, "_OWN_THREADS", threading.active_count())
    fds = set(os.listdir("/dev/fd"))
    with pytest.raises(AssertionError, match=f"left behind: .*{left}"):
        repo.gitgates("check")
    for fd in set(os.listdir("/dev/fd")) - fds:
        os.closerange(int(fd), int(fd) + 1)


def test_a_verb_that_hangs_fails_the_test(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "LIMIT_S", 0.05)
    verb(repo, monkeypatch, lambda: time.sleep(9))
    with pytest.raises(AssertionError, match="no end after"):
        repo.gitgates("check")


def test_variables_of_the_interpreter_need_a_new_one(repo: Repo) -> None:
    env = {**os.environ, "PYTHONVERBOSE": "1"}
    assert b"import 'gitgates" in forked.run(("check",), str(repo.path), env, b"").stderr
