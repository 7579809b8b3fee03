"""A test that costs much is seen before it is merged."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import costs
import pytest


@pytest.mark.skipif(costs.IN_CI, reason="what a machine of CI takes says nothing")
def test_no_test_costs_much_that_is_not_marked(pytestconfig: pytest.Config) -> None:
    found = costs.read(pytestconfig).items()
    costly = "".join(f"{name}: {cost[0]:.1f} s of processor time\n" for name, cost in found)
    assert not costly, (
        f"{costly}Make it cheaper and run it anew, or mark it: slow, thorough, nightly"
    )


class Cache(dict[str, Any]):
    """Keeps what pytest would write."""

    set = dict.__setitem__


def run(config: Any, cost_s: float, *marks: str) -> list[str]:
    """Return which tests are costly once one has been run."""
    ledger = costs.Ledger(config)
    report: Any = SimpleNamespace(
        when="call",
        nodeid="test_it.py::test_it",
        keywords=marks,
        user_properties=[("cpu_s", cost_s)],
    )
    ledger.pytest_runtest_logreport(report)
    ledger.pytest_sessionfinish()
    return [*costs.read(config)]


def test_a_costly_test_is_remembered_until_it_is_cheap_marked_or_changed(tmp_path: Path) -> None:
    config = SimpleNamespace(cache=Cache(), rootpath=tmp_path)
    file = tmp_path / "test_it.py"
    file.touch()
    os.utime(file, (1, 1))
    assert run(config, 1.9) == []
    assert run(config, 2.1) == ["test_it.py::test_it"]
    assert run(config, 2.1, "slow") == []
    assert run(config, 2.1) == ["test_it.py::test_it"]
    os.utime(file, (1e10, 1e10))
    assert [*costs.read(config)] == []  # type: ignore[arg-type]
