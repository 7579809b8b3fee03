"""`gitgates verify`: which commits have passed their gates, and which bypassed them."""

from __future__ import annotations

from typing import Any

import click

from gitgates.core import errors
from gitgates.core.clean import counted, plain_line
from gitgates.core.types import BLOCK, Config, GateResult
from gitgates.drivers.git import HookCall
from gitgates.engine.plan.listener import Listener
from gitgates.features.evidence.commit_evidence import (
    ELSEWHERE,
    GATED,
    LET_PASS,
    SKIPPED,
    SQUASHED,
    UNCHECKED,
)
from gitgates.features.evidence.verification import (
    VerifiedCommit,
    asks_others,
    run_missing,
    verify,
)
from gitgates.git.paths import range_of, unpushed
from gitgates.report.result import outcome_of
from gitgates.report.text import Console, is_reused
from gitgates.store.proofs import BELIEVED
from gitgates.verbs.output import format_option, print_json, stdout, table
from gitgates.verbs.repository import current_repo
from gitgates.worktree.setup import SetupError, setup_hints

_VERSION = 1
_SHORT = 7
_BYPASSED = "bypassed the gates"
_FAILED = "failed"
_COULD_NOT_RUN = "could not run"
_WRONG = (_FAILED, _COULD_NOT_RUN, _BYPASSED, UNCHECKED)
_NOT_RUN = ("skipped", "not-run")
_DONE = (GATED, ELSEWHERE, SQUASHED)


# \b: click does not wrap the lines that follow.
_HELP = """List the commits of RANGE, and whether they passed their gates.

RANGE is as in `git log`, such as origin/main..HEAD. Default: the commits that are not in the
branch's upstream, or not in any remote. The hook is pre-commit or, for a merge,
pre-merge-commit, as configured in the commit.

\b
gated                    its gates passed on this content; in parentheses: the trusted
                         signer, if they ran elsewhere
gated on another base    its gates passed on the same patch (rebase, cherry-pick), or
                         on the same content of these files
squash of gated commits  it squashes a branch whose commits all passed
let pass                 a gate failed that does not block, as with
                         `on_fail = "CONTINUE"`
skipped                  a person skipped some gates, with SKIP or GITGATES_SKIP
bypassed the gates       there is no evidence that its gates ran
failed                   a missing gate has run now, and failed
could not run            a missing gate could not be started, so its result is unknown
nothing was checked      its gates succeeded, but one had nothing to check, such as
                         no tests
nothing to check         no gate matches its changes

Exit status 0: all commits were checked. 1: some bypassed their gates, a missing gate failed or
could not run, or a gate checked nothing.
"""


@click.command("verify", help=_HELP)
@click.argument("revisions", metavar="[RANGE]", required=False)
@click.option(
    "--run-missing", "run_it", is_flag=True, help="Run missing gates on exactly that commit."
)
@click.option(
    "--strict",
    is_flag=True,
    help="Also count a gate as missing if it was skipped, or passed only for the same patch on "
    "another base.",
)
@format_option
def command(revisions: str | None, *, run_it: bool, strict: bool, fmt: str) -> int:
    """List commits, and whether they passed the gates of their hook."""
    repo = current_repo()
    commit_range = unpushed(repo.git) if revisions is None else range_of(repo.git, revisions)
    verified_commits = verify(repo, commit_range, _say)
    todo = [verified for verified in verified_commits if verified.missing(strict=strict)]
    refused = {verified.commit.id: verified.refused for verified in todo}
    for verified in todo:
        for reason in verified.refused:
            _say(f"{verified.commit.id[:_SHORT]}: not believed: {reason}")
    failed: dict[str, str] = {}
    results: list[GateResult] = []
    if run_it and todo:
        listener = Console(stdout()) if fmt == "text" else Listener()
        failed, results = _run_all(todo, listener, strict=strict)
        verified_commits = verify(repo, commit_range, _say)
    rows = [
        {
            **commit_fields(
                verified, verified.missing(strict=strict), failed.get(verified.commit.id, "")
            ),
            "refused": [*refused.get(verified.commit.id, ())],
        }
        for verified in verified_commits
    ]
    if fmt == "json":
        print_json({"version": _VERSION, "commits": rows})
    else:
        _print(rows, revisions)
        if rows and asks_others(repo):
            click.echo(_summary(verified_commits, results, strict=strict))
    return errors.BLOCKED if any(row["state"] in _WRONG for row in rows) else errors.OK


def _summary(
    verified_commits: list[VerifiedCommit], results: list[GateResult], *, strict: bool
) -> str:
    """Return what was believed from whom, and what ran here. `results`: those of missing gates.

    Some may have reused a pass, from this machine or others.
    """
    ran = sum(each.status not in _NOT_RUN and not is_reused(each) for each in results)
    makers = [each.origin.maker or "" for each in results if is_reused(each)]
    signers = [maker.removeprefix(BELIEVED) for maker in makers if maker.startswith(BELIEVED)]
    gates = 0
    for verified in verified_commits:
        missing = verified.missing(strict=strict)
        signers += [who for name, who in verified.signers.items() if name not in missing]
        gates += sum(end in _DONE for name, end in verified.gates.items() if name not in missing)
    before = max(gates - len(signers) - ran, 0)
    counts = [
        f"{counted(signers.count(who), 'gate')} believed from {who}"
        for who in dict.fromkeys(signers)
    ]
    counts += [f"{before} recorded here"] if before else []
    commits = counted(len(verified_commits), "commit")
    return f"{commits}: {', '.join([*counts, f'{ran} run here now'])}"


def _say(text: str) -> None:
    click.echo(f"gitgates: {text}", err=True)


def _run_all(
    todo: list[VerifiedCommit], listener: Console | Listener, *, strict: bool
) -> tuple[dict[str, str], list[GateResult]]:
    """Run the missing gates; return the state of each commit that failed, and the results."""
    failed: dict[str, str] = {}
    config = Config()  # the last failed commit's
    results: list[GateResult] = []
    for verified in todo:
        try:
            call = _run(verified, listener, strict=strict)
        except (SetupError, errors.GitError) as error:  # other commits may still be checked out
            _say(f"{verified.title}: {error.full_message}")
            failed[verified.commit.id], config = _COULD_NOT_RUN, verified.config
            continue
        if not call.decision or call.decision.verdict >= BLOCK:
            is_unknown = not call.decision or outcome_of(call.decision) == "could-not-run"
            failed[verified.commit.id] = _COULD_NOT_RUN if is_unknown else _FAILED
            config = verified.config
        if call.decision:
            results += {v.result.gate: v.result for v in call.decision.visits}.values()
    if failed:
        for hint in setup_hints(current_repo(), config):
            _say(hint)
    return failed, results


def _run(verified: VerifiedCommit, listener: Console | Listener, *, strict: bool) -> HookCall:
    """Run the missing gates on a commit; return how they ended."""
    call = run_missing(verified, current_repo(), listener, strict=strict)
    if isinstance(listener, Console) and call.decision and call.plan:
        stdout().write(listener.closing(call.decision, call.plan))
    return call


def commit_fields(
    verified: VerifiedCommit, missing: tuple[str, ...], failed: str = ""
) -> dict[str, Any]:
    """Return a commit and its gates' state as data; `failed`: the state after running them now."""
    return {
        "commit": verified.commit.id,
        "tree": verified.commit.tree,
        "subject": verified.commit.subject,
        "hook": verified.event.name,
        "state": failed or _state(verified, missing),
        "missing": list(missing),
        "gates": dict(verified.gates),
        "signers": dict(verified.signers),
        "problem": verified.problem,
    }


def _state(verified: VerifiedCommit, missing: tuple[str, ...]) -> str:
    """Return a commit's state, in the help's words: the worst of its gates."""
    if verified.problem or missing:
        is_idle = missing and all(verified.gates[name] == UNCHECKED for name in missing)
        return UNCHECKED if is_idle else _BYPASSED
    ends = verified.gates.values()
    worst_first = (SKIPPED, LET_PASS, SQUASHED, ELSEWHERE, GATED)
    return next((end for end in worst_first if end in ends), "nothing to check")


def why_of(row: dict[str, Any]) -> str:
    """Return what determines a commit's state: gates, or a problem."""
    decisive = row["state"] if row["state"] in (SKIPPED, LET_PASS) else None
    named = [name for name, end in row["gates"].items() if end == decisive]
    return ", ".join(row["missing"] or named) or plain_line(row["problem"])


def _print(rows: list[dict[str, Any]], revisions: str | None) -> None:
    """Print the commits, with the gates that determine their states."""
    if not rows:
        click.echo(f"no {'' if revisions else 'unpushed '}commits to verify")
        return
    lines: list[tuple[str, ...]] = []
    for row in rows:
        why = why_of(row)
        state = f"{row['state']}: {why}" if why else row["state"]
        if row["signers"] and row["state"] not in _WRONG:
            state = f"{state} ({', '.join(dict.fromkeys(row['signers'].values()))})"
        lines.append((row["commit"][:_SHORT], state, plain_line(row["subject"])))
    click.echo(table(lines), nl=False)
    if any(row["state"] == _BYPASSED and not row["problem"] for row in rows):
        click.echo("next: gitgates verify --run-missing")
