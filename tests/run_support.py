"""Gates that run in process, as a hook runs them, and what is heard of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from gitgates.core.types import Config, Decision, Event, Gate, GateResult, Hook
from gitgates.engine.plan.listener import Listener
from gitgates.engine.plan.plan import make_plan
from gitgates.engine.run.job import RunOptions
from gitgates.engine.run.run import run_plan
from gitgates.git.repo import find_repo

NO_OPTIONS = RunOptions()


class Heard(Listener):
    """Remembers which gates have started, how they ended, and what was said."""

    def __init__(self) -> None:
        self.gates: list[str] = []
        self.texts: list[str] = []

    @property
    def order(self) -> list[str]:
        """The gates that have started."""
        return [text.split()[0] for text in self.gates if text.endswith(" started")]

    def started(self, gate: str) -> None:
        self.gates.append(f"{gate} started")

    def ended(self, result: GateResult, plan: Any) -> None:  # noqa: ARG002 - a listener's
        self.gates.append(f"{result.gate} {result.status}")

    def message(self, text: str) -> None:
        self.texts.append(text)


def run_gates(
    config: Config,
    event: Event,
    heard: Listener,
    *,
    env: Mapping[str, str] = os.environ,
    options: RunOptions = NO_OPTIONS,
) -> Decision:
    """Run the gates of the one hook of a configuration."""
    (hook,) = config.hooks
    plan = make_plan(config, hook, event, {})
    there = find_repo(event.root_abs, dict(env))
    return run_plan(plan, config, there, heard, options=options)


def results(decision: Decision) -> list[GateResult]:
    return [visit.result for visit in decision.visits]


def config_of(gates: tuple[Gate, ...], name: str, jobs: int = 0, **fields: Any) -> Config:
    """Return a configuration with one hook, which runs all of these gates."""
    hook = Hook(name=name, gates=tuple(gate.name for gate in gates), **fields)
    return Config(gates=gates, hooks=(hook,), jobs=jobs)
