"""A test that costs much is seen before it is merged."""

from __future__ import annotations

import costs
import pytest


@pytest.mark.skipif(costs.IN_CI, reason="what a machine of CI takes says nothing")
def test_no_test_costs_much_that_is_not_marked(pytestconfig: pytest.Config) -> None:
    found = costs.read(pytestconfig).items()
    costly = "".join(f"{name}: {cost[0]:.1f} s of processor time\n" for name, cost in found)
    assert not costly, (
        f"{costly}Make it cheaper and run it anew, or mark it: slow, thorough, nightly"
    )
