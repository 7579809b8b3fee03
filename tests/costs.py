"""Tests that cost much: a run of pytest remembers them, and tests/lint/test_costs.py names them.

Counted is the time of processors that a test and its processes take, as how long it takes on a busy
machine says nothing of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

IN_CI = bool(os.environ.get("CI"))  # read once: each test takes it away
MOST_S = 2.0
_MAY = {"slow", "thorough", "nightly", "lint", "e2e"}  # marks, and folders
_KEY = "gitgates/costs"  # in .pytest_cache: test → its seconds, and when that was
_begun_s = [0.0]


def _cpu_s() -> float:
    return sum(os.times()[:4])


def pytest_runtest_logstart() -> None:
    _begun_s[0] = _cpu_s()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call":
        report.user_properties.append(("cpu_s", _cpu_s() - _begun_s[0]))
    return report


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    is_usual = config.getoption("--hypothesis-profile") is None
    if is_usual and not is_worker and not IN_CI and hasattr(config, "cache"):
        config.pluginmanager.register(Ledger(config))


class Ledger:
    """Remembers the costly tests of this run, and of runs before it all that it does not run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._costs = read(config)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._costs.pop(report.nodeid, None)
            cost_s = float(str(dict(report.user_properties).get("cpu_s", 0)))
            if cost_s > MOST_S and not _MAY & set(report.keywords):
                self._costs[report.nodeid] = [cost_s, time.time()]

    def pytest_sessionfinish(self) -> None:
        self._config.cache.set(_KEY, self._costs)


def read(config: pytest.Config) -> dict[str, list[float]]:
    """Return what was costly when it was last run, and has not been changed since."""
    found: dict[str, list[float]] = config.cache.get(_KEY, {})
    return {name: cost for name, cost in found.items() if _is_as_it_was(config, name, cost[1])}


def _is_as_it_was(config: pytest.Config, name: str, at: float) -> bool:
    path = Path(config.rootpath, name.partition("::")[0])
    return path.exists() and path.stat().st_mtime < at
