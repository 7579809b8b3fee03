"""Whatever agents, a person and git do: each state comes back, and nobody loses anything."""

from __future__ import annotations

import pytest
from conftest import Repo
from random_work import Work, start

STEPS = 60


@pytest.mark.slow
@pytest.mark.samples(3)
@pytest.mark.parametrize("seed", range(60))
def test_random_work(repo: Repo, seed: int) -> None:
    start(repo)
    work = Work(repo, seed)
    for _ in range(STEPS):
        work.step()
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    work.check_states()
