"""How long the gates of an agent's event may take, and how long its host waits."""

from __future__ import annotations

import pytest

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.types import Config, Hook, make_gate
from gitgates.engine.plan.hooks import gates_limit_s, host_limit_s

GATES = (
    make_gate(name="ten", command="x", timeout_s=10),
    make_gate(name="twenty", command="x", timeout_s=20, on_pass="ten"),
    make_gate(name="compared", command="x", timeout_s=30, baseline=True),
)
CONFIG = Config(gates=GATES)
AGENTS = [name for name, point in HOOK_POINTS.items() if point.host == "agent"]


@pytest.mark.parametrize(
    ("hook", "gates_s", "host_s"),
    [
        (Hook(name="Stop", gates=("ten",)), 10, 25),
        (Hook(name="Stop", gates=("twenty",)), 30, 45),  # with those that it leads to
        (Hook(name="Stop", gates=("ten", "ten")), 10, 25),  # a gate met again runs once
        (Hook(name="Stop", gates=("compared",)), 60, 75),  # twice: now, and as it was before
        (Hook(name="SubagentStop", gates=("ten", "compared")), 70, 85),
        (Hook(name="PostToolUse", gates=("ten", "gone")), 10, 25),
        (Hook(name="Stop", gates=("ten",), timeout_s=90), 90, 105),
        (Hook(name="Stop", gates=("ten",), timeout_s=0.5), 0.5, 15.5),
        (Hook(name="PreToolUse", gates=("ten",)), 2.2, 5),
        (Hook(name="PreToolUse", gates=("ten",), timeout_s=60), 60, 75),
        (Hook(name="UserPromptSubmit", gates=("ten",)), 2.2, 5),
        (Hook(name="SessionEnd", gates=("ten",)), 7.2, 10),
        (Hook(name="SessionEnd"), 7.2, 10),
        (Hook(name="SessionEnd", gates=("ten",), timeout_s=30), 30, 45),
        (Hook(name="Stop"), 0, 15),
        (Hook(name="SessionStart"), 2.2, 5),
        (Hook(name="headless", gates=("ten", "compared")), 70, 5),  # no host waits for it
    ],
)
def test_limits(hook: Hook, gates_s: float, host_s: float) -> None:
    assert (gates_limit_s(CONFIG, hook), host_limit_s(CONFIG, hook)) == (gates_s, host_s)


@pytest.mark.parametrize("timeout_s", [0.0, 0.1, 600.0])
def test_the_host_waits_longer_than_gates_may_take(timeout_s: float) -> None:
    hooks = [Hook(name=name, gates=("ten", "compared"), timeout_s=timeout_s) for name in AGENTS]
    limits = {
        hook.name: (gates_limit_s(CONFIG, hook), host_limit_s(CONFIG, hook)) for hook in hooks
    }
    assert {name: limit for name, limit in limits.items() if limit[1] - limit[0] < 2.5} == {}
    assert all(gates_s > 0 for gates_s, _host_s in limits.values())
