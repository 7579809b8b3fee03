"""`gitgates test`: prove with examples that a gate can fail, but does not always fail."""

from __future__ import annotations

import click

from gitgates.core.clean import plain_line
from gitgates.core.errors import BLOCKED, OK, ConfigError, UsageError
from gitgates.core.types import Config, Gate
from gitgates.features.examples.example import FAIL, PASS, Outcome, run_example
from gitgates.files.stored import look_as_stored
from gitgates.report.result import result_fields
from gitgates.report.text import shown_output
from gitgates.verbs.completion import complete_gates, unknown_gate
from gitgates.verbs.output import format_option, print_json, stdout
from gitgates.verbs.repository import configuration, current_repo

_VERSION = 1
_HINT = 'Add them: examples = { fail = ["tests/gates/bad.py"], pass = ["tests/gates/good.py"] }'


@click.command("test")
@click.argument("names", metavar="[GATE]...", nargs=-1, shell_complete=complete_gates)
@format_option
@click.option("-v", "--verbose", is_flag=True, help="Show the output on each example.")
def command(names: tuple[str, ...], *, fmt: str, verbose: bool) -> int:
    """Run gates on their `examples`, and check that they fail and pass where they must.

    Default: all gates with examples. Each runs in a private checkout, with its own limits; the
    working tree is not changed. If a gate could not start, crashed or timed out, that proves
    nothing.

    Exit status 0: every gate fails or passes on each example as it must. 1: one does not.
    """
    repo = current_repo()
    config = configuration(repo)
    gates = _select(config, names)
    snapshot = look_as_stored(repo).tree
    outcomes: dict[str, list[Outcome]] = {}
    printed_notes: set[str] = set()

    def say(text: str) -> None:
        click.echo(f"gitgates: {text}", err=True)

    for gate in gates:
        outcomes[gate.name] = []
        for example in gate.examples:
            outcome = run_example(
                *(repo, config, gate), snapshot=snapshot, example=example, say=say
            )
            outcomes[gate.name].append(outcome)
            for note in outcome.notes:
                if note not in printed_notes:
                    say(note)
            printed_notes.update(outcome.notes)
            if fmt == "text":
                _print(gate, outcome, shows_output=verbose or not outcome.is_expected)
        if fmt == "text":
            click.echo(f"{plain_line(gate.name)}: {_summary(outcomes[gate.name])}")
    if fmt == "json":
        print_json({"version": _VERSION, "gates": [*map(_fields, outcomes, outcomes.values())]})
    is_proven = all(outcome.is_expected for each in outcomes.values() for outcome in each)
    return OK if is_proven else BLOCKED


def _select(config: Config, names: tuple[str, ...]) -> list[Gate]:
    """Return the gates to test, at least one. Raises: UsageError, ConfigError."""
    gates = {gate.name: gate for gate in config.gates}
    for name in names:
        if name not in gates:
            raise unknown_gate(name, tuple(gates))
        if not gates[name].examples:
            raise UsageError(f"gate `{name}` has no `examples`; nothing was tested", _HINT)
    selected = [gates[name] for name in dict.fromkeys(names or gates) if gates[name].examples]
    if not selected:
        raise ConfigError("no gate has `examples`; nothing was tested", _HINT)
    return selected


def _print(gate: Gate, outcome: Outcome, *, shows_output: bool) -> None:
    """Print how a gate ended on an example and, if asked for, its output."""
    text = f"{gate.name}: {outcome.path}: {outcome.text}"
    click.echo(f"{plain_line(text, 0)} ({outcome.result.duration_s:.2f} s)")
    if shows_output:
        terminal = stdout()
        terminal.write(shown_output(outcome.result._replace(log_abs=""), colour=terminal.colour))


def _summary(outcomes: list[Outcome]) -> str:
    """Return what a gate's examples have shown."""
    if all(outcome.is_expected for outcome in outcomes):
        return "fails and passes as its examples say"
    ends = {outcome.actual for outcome in outcomes}
    if ends == {PASS}:
        return "cannot fail on its examples"
    return "fails on all examples, which proves nothing" if ends == {FAIL} else "not proven"


def _fields(name: str, outcomes: list[Outcome]) -> dict[str, object]:
    return {
        "name": name,
        "proven": all(outcome.is_expected for outcome in outcomes),
        "examples": [
            {
                "path": outcome.path,
                "expected": outcome.expected,
                "actual": outcome.actual or None,
                **result_fields(outcome.result._replace(log_abs="")),
            }
            for outcome in outcomes
        ],
    }
