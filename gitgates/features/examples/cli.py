"""`gitgates test`: prove with examples that a gate can fail, but does not always fail.

An example is laid over the working tree's content, as a git tree, so no file, index or lock of the
user's is touched. An empty tree would not do: a tool without its configuration would find the one
in the user's folder above the checkout, and write its caches there. The checkout is a repository of
its own, so nothing is recorded for real runs, and no pass is reused.
"""

from __future__ import annotations

import os

import click

from gitgates.core.clean import plain_line
from gitgates.core.errors import BLOCKED, OK, ConfigError, StateError, UsageError
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.record import Record
from gitgates.core.types import Config, Gate, GateResult, Hook
from gitgates.engine.plan.listener import Listener
from gitgates.engine.plan.plan import REUSE, make_plan, reachable
from gitgates.engine.plan.walk import describe
from gitgates.engine.run.job import RunOptions
from gitgates.engine.run.run import run_plan
from gitgates.files.stored import look_as_stored
from gitgates.git.index import SETTINGS
from gitgates.git.object_store import storing_git
from gitgates.git.repo import Repo, nul_ended
from gitgates.hosts.git import decode_by_hand
from gitgates.report.result import result_fields
from gitgates.report.text import shown_output
from gitgates.store.files import remove_file
from gitgates.verbs.completion import complete_gates, unknown_gate
from gitgates.verbs.directory import members_of
from gitgates.verbs.output import format_option, print_json, stdout
from gitgates.verbs.repository import configuration, current_repo
from gitgates.worktree.checkouts import check_out
from gitgates.worktree.setup import worktree_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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


FAIL, PASS = "fail", "pass"
# Exit statuses from shells, xargs and docker if a command could not run, or was killed.
_CRASHED = range(125, 193)


class Outcome(Record):
    """How a gate ended on an example."""

    path: str  # the example's
    expected: str  # FAIL, PASS
    actual: str  # FAIL, PASS; empty: neither, so nothing is proven
    result: GateResult
    notes: tuple[str, ...] = ()  # on the checkout, for a person

    @property
    def is_expected(self) -> bool:
        """Whether the gate ended as it must."""
        return self.actual == self.expected

    @property
    def text(self) -> str:
        """How it ended and what that proves, for display."""
        if self.result.status == "failed" and self.result.exit_status in _CRASHED:
            end = f"could not run, or was killed (exit status {self.result.exit_status})"
        elif self.actual == FAIL and self.result.status == "passed":
            end = f"failed ({describe(self.result)})"
        else:
            end = describe(self.result)
        if self.is_expected:
            return f"{end}, as it must"
        proves = "but" if self.actual else "which proves nothing: it"
        return f"{end}, {proves} must {self.expected}"


def run_example(
    repo: Repo,
    config: Config,
    gate: Gate,
    *,
    snapshot: str,
    example: tuple[str, str],
    say: Callable[[str], None],
) -> Outcome:
    """Run a gate on one of its `examples`. `snapshot`: the working tree's content, as a tree.

    Raises: UsageError if there is no such example; and as `check_out` and `run_plan` do.
    """
    expected, path = example
    member = next((m for m in members_of(config) if gate.name.startswith(f"{m}:")), "")
    folder = member and f"{member}/"
    tree, paths = _lay_over(repo, gate, snapshot=snapshot, path=path, folder=folder)
    hook = _hook_of(config, gate)
    if HOOK_POINTS[hook].scope == "message" and len(paths) != 1:
        hint = f"Gate `{gate.name}` runs in {hook}: name a file with a commit message."
        raise UsageError(f"example `{path}` is a folder", hint)
    alone = gate.changed(
        on_pass="CONTINUE",  # noqa: S106 - an action
        on_fail="CONTINUE",
        observe=False,
        baseline=False,
        metrics=(),
        ratchet=False,
        retry=None,
        quarantine_until="",
    )
    with check_out(repo, tree, worktree_settings(config), say) as checkout:
        checkout_repo = checkout.repo._replace(env={**checkout.repo.env, REUSE: "0"})
        event = decode_by_hand(hook, paths, (), (checkout_repo.root_abs, checkout_repo.git_dir_abs))
        settings = config._replace(gates=(alone,), hooks=())
        plan = make_plan(settings, Hook(hook, gates=(gate.name,)), event, {})
        decision = run_plan(
            plan, settings, checkout_repo, Listener(), options=RunOptions(locks=False)
        )
        result = decision.visits[0].result
    return Outcome(path, expected, _judge(gate, result), result, checkout.notes)


def _judge(gate: Gate, result: GateResult) -> str:
    if result.status == "passed":
        # A fixer's change means the same as a linter's exit status.
        return FAIL if gate.program.writes and result.changed_paths else PASS
    has_judged = result.status == "failed" and result.exit_status is not None
    return FAIL if has_judged and result.exit_status not in _CRASHED else ""


def _hook_of(config: Config, gate: Gate) -> str:
    """Return the first hook that runs a gate; `manual` if none does."""
    gates = {each.name: each for each in config.gates}
    hooks = (hook.name for hook in config.hooks if gate.name in reachable(hook.gates, gates))
    return next(hooks, "manual")


def _lay_over(
    repo: Repo, gate: Gate, *, snapshot: str, path: str, folder: str
) -> tuple[str, tuple[str, ...]]:
    """Return the tree with an example in its root or in `folder/`, and the example's paths.

    Raises: UsageError if the snapshot has no such file or folder.
    """
    index_abs = f"{repo.state_abs}/example-index-{os.getpid()}"
    try:
        git = storing_git(repo).with_settings(SETTINGS)
        git = git._replace(env={**git.env, "GIT_INDEX_FILE": index_abs})
        listed = git.names("ls-tree", "-r", "-z", "--full-tree", snapshot, "--", path)
        if not listed:
            hint = "It must be in the working tree, and git must not ignore it."
            raise UsageError(f"gate `{gate.name}`: no example `{path}`", hint)
        is_file = listed[0].partition("\t")[2] == path
        above = path[: path.rfind("/") + 1] if is_file else f"{path}/"
        entries = [line.replace("\t" + above, "\t" + folder, 1) for line in listed]
        git.out("read-tree", snapshot)
        git.out("update-index", "-z", "--index-info", stdin=nul_ended(entries))
        tree = git.out("write-tree").decode().strip()
    except OSError as error:
        raise StateError(f"{repo.state_abs}: cannot be written: {error.strerror}") from error
    finally:
        remove_file(index_abs)
    return tree, tuple(entry.partition("\t")[2] for entry in entries)
