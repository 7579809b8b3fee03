"""A cache that is damaged counts as absent, and at once: flipped bits, torn, or another's bytes."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import forked
import pytest
from conftest import Repo

from gitgates.config.load import read_cache
from gitgates.files.stored import look_as_stored
from gitgates.git.repo import find_repo
from gitgates.store.slots import take_slot

CONFIG = """\
[gates.g]
command = "true"
[hooks.pre-commit]
gates = ["g"]
[hooks.Stop]
gates = ["g"]
"""
ENDLESS = b"[" * 20_000  # of which marshal makes lists of lists for minutes
FLIPS = 800
BOUND_S = 60  # for thousands of readings, of a fraction of a millisecond each
MEMORY_BYTES = 1 << 32


def _configuration(repo: Repo, state: Path) -> tuple[Path, Callable[[], object]]:
    repo.gitgates("run", "g")
    cache = state / "config.marshal"
    return cache, lambda: read_cache(str(cache), str(repo.path))


def _look(repo: Repo, state: Path) -> tuple[Path, Callable[[], object]]:
    opened = find_repo(str(repo.path), os.environ)
    look_as_stored(opened)
    return state / "files.facts", lambda: look_as_stored(opened).tree


def _checkout(_repo: Repo, state: Path) -> tuple[Path, Callable[[], object]]:
    slot = take_slot(f"{state}/slots")
    Path(slot.index_abs).write_bytes(b"")
    slot.end(2, "tree", b"settings")
    return state / "slots/1.state", slot.state


def _damaged(whole: bytes) -> list[bytes]:
    chance = random.Random(7)
    found = [ENDLESS, b"", whole + b"[", whole[:16] + ENDLESS]
    found += [whole[:length] for length in range(0, len(whole), 7)]
    for _time in range(FLIPS):
        bit = chance.randrange(8 * len(whole))
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        found.append(bytes(flipped))
    return found


@pytest.mark.samples(2)
@pytest.mark.slow
@pytest.mark.parametrize(("make", "step"), [(_configuration, 1), (_look, 20), (_checkout, 1)])
def test_no_damage_hangs_a_reader_or_is_believed(
    repo: Repo, make: Callable[[Repo, Path], tuple[Path, Callable[[], object]]], step: int
) -> None:
    repo.config(CONFIG)
    repo.commit_all("base")
    state = repo.path / ".git/gitgates"
    state.mkdir(exist_ok=True)
    cache, read = make(repo, state)
    whole, value = cache.read_bytes(), read()
    assert value
    child = os.fork()
    if not child:  # what hangs in C, only a signal that nothing handles ends
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(BOUND_S)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        status = 1
        try:
            for content in _damaged(whole)[::step]:  # a look takes longer
                cache.write_bytes(content)
                if read() not in (None, value):
                    break
            else:
                status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    cache.write_bytes(whole)
    assert read() == value


@pytest.mark.samples(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["config.marshal", "files.facts"])
def test_hooks_go_on_over_a_damaged_cache(repo: Repo, name: str) -> None:
    repo.config(CONFIG)
    repo.commit_all("base")
    repo.shim("pre-commit")
    event = {"session_id": "s", "cwd": str(repo.path)}
    for kind in ("SessionStart", "Stop"):
        stdin = json.dumps({"hook_event_name": kind, **event}).encode()
        repo.write("new", kind)
        cache = repo.write(f".git/gitgates/{name}", ENDLESS)
        verb = ("agent-hook", "claude")
        done = forked.run(verb, str(repo.path), {**os.environ}, stdin, hosts=True)
        assert (done.returncode, b"error" in done.stdout) == (0, False), done.stdout
    repo.git("add", ".")
    cache.write_bytes(ENDLESS)
    assert b"1 gate passed" in repo.commit().stderr
