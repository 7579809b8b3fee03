"""Whatever agents, a person and git do: each state comes back, and nobody loses anything."""

from __future__ import annotations

import pytest
from conftest import Repo
from points_support import seeds
from random_work import Work, start

SHORT, STEPS = 20, 60


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_some_random_work(repo: Repo, seed: int) -> None:
    do_random_work(repo, seed, SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(0, thorough=12, nightly=48))
def test_random_work(repo: Repo, seed: int) -> None:
    do_random_work(repo, seed, STEPS)


def do_random_work(repo: Repo, seed: int, steps: int) -> None:
    start(repo)
    work = Work(repo, seed)
    for _ in range(steps):
        work.step()
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    work.check_states()
