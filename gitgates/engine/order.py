"""The order that `after` asks for: which gates of a plan wait for which."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gitgates.core.types import Step


def with_order(
    chains: Mapping[str, tuple[str, ...]], steps: tuple[Step, ...], gates: Collection[str]
) -> tuple[Step, ...]:
    """Return the steps with the listed gates that each waits for.

    `chains` has what the actions of each listed gate lead to, itself included: one waits for all
    of that. `gates` are those that are defined.
    """
    return tuple(_with_after(step, chains, gates) if step.gate.after else step for step in steps)


def _with_after(step: Step, chains: Mapping[str, tuple[str, ...]], gates: Collection[str]) -> Step:
    name, wanted = step.gate.name, step.gate.after
    after = tuple(head for head, chain in chains.items() if not set(wanted).isdisjoint(chain))
    fault = step.fault
    if unknown := [other for other in wanted if other not in gates]:
        fault = f"`after` of gate `{name}` names an unknown gate: `{unknown[0]}`"
    return step._replace(after=after, fault=fault)


def in_order(
    listed: tuple[str, ...], chains: Mapping[str, tuple[str, ...]], steps: tuple[Step, ...]
) -> tuple[str, ...]:
    """Return the listed names so that each gate comes after those that its chain waits for.

    Where two would have to wait for each other, the order of the list decides.
    """
    after = {step.gate.name: step.after for step in steps}
    before = {
        head: {other for name in chain for other in after[name]} - {head}
        for head, chain in chains.items()
    }
    waiting, order = list(listed), []
    while waiting:
        name = next((name for name in waiting if before[name].isdisjoint(waiting)), waiting[0])
        waiting.remove(name)
        order.append(name)
    return tuple(order)
