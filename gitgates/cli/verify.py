"""`gitgates verify`: which commits have passed their gates, and which went round them."""

from __future__ import annotations

from typing import Any

import click

from gitgates import errors
from gitgates.clean import plain_line
from gitgates.cli.output import format_option, print_json, stdout, table
from gitgates.cli.repository import current_repo
from gitgates.engine.run import Listener
from gitgates.policies.commit_evidence import ELSEWHERE, GATED, SKIPPED
from gitgates.policies.verification import Verified, range_of, run_missing, unpushed, verify
from gitgates.report.text import Console
from gitgates.types import BLOCK

_VERSION = 1
_SHORT = 7
_WENT_ROUND = "went round the gates"


# \b: click leaves the lines that follow as they are.
_HELP = """Tell which commits of RANGE have passed the gates of their hook.

RANGE is as in `git log`, such as origin/main..HEAD. Without it: what the upstream of the branch
does not have, or no remote. The hook is pre-commit, of a merge pre-merge-commit, as the
configuration in the commit has it.

\b
gated                  its gates have run on this content
gated on another base  they have run on the same patch (rebase, cherry-pick)
skipped                a person has skipped some, with SKIP or GITGATES_SKIP
went round the gates   nothing says that they have run
failed                 what was missing has run now, and does not let it pass
nothing to check       no gate is about what it changes

Exit status 0: none went round its gates. 1: some did, or a gate that was missing has failed.
"""


@click.command("verify", help=_HELP)
@click.argument("revisions", metavar="[RANGE]", required=False)
@click.option(
    "--run-missing", "run_it", is_flag=True, help="Run what is missing, on exactly that commit."
)
@click.option(
    "--strict",
    is_flag=True,
    help="A gate that was skipped, or has passed the same patch on another base, is missing, too.",
)
@format_option
def command(revisions: str | None, *, run_it: bool, strict: bool, fmt: str) -> int:
    """Tell which commits have passed the gates of their hook."""
    repo = current_repo()
    asked = unpushed(repo.git) if revisions is None else range_of(repo.git, revisions)
    found = verify(repo, asked, _say)
    failed: set[str] = set()
    if run_it and (todo := [one for one in found if one.missing(strict=strict)]):
        listener = Console(stdout()) if fmt == "text" else Listener()
        failed = {one.commit.id for one in todo if not _runs(one, listener, strict=strict)}
        found = verify(repo, asked, _say)
    rows = [
        _listed(one, one.missing(strict=strict), failed=one.commit.id in failed) for one in found
    ]
    if fmt == "json":
        print_json({"version": _VERSION, "commits": rows})
    else:
        _print(rows)
    is_wrong = any(row["state"] in ("failed", _WENT_ROUND) for row in rows)
    return errors.BLOCKED if is_wrong else errors.OK


def _say(text: str) -> None:
    click.echo(f"gitgates: {text}", err=True)


def _runs(found: Verified, listener: Console | Listener, *, strict: bool) -> bool:
    """Run what is missing on a commit; return whether it passes."""
    call = run_missing(found, current_repo(), listener, strict=strict)
    if isinstance(listener, Console) and call.decision and call.plan:
        stdout().write(listener.closing(call.decision, call.plan))
    return bool(call.decision and call.decision.verdict < BLOCK)


def _listed(found: Verified, missing: tuple[str, ...], *, failed: bool) -> dict[str, Any]:
    return {
        "commit": found.commit.id,
        "tree": found.commit.tree,
        "subject": found.commit.subject,
        "hook": found.event.name,
        "state": "failed" if failed else _state(found, missing),
        "missing": list(missing),
        "gates": dict(found.gates),
        "problem": found.problem,
    }


def _state(found: Verified, missing: tuple[str, ...]) -> str:
    """Return what is known of a commit, in the words of the help: the worst of its gates."""
    if found.problem or missing:
        return _WENT_ROUND
    ends = found.gates.values()
    return next((end for end in (SKIPPED, ELSEWHERE, GATED) if end in ends), "nothing to check")


def _print(rows: list[dict[str, Any]]) -> None:
    """Print the commits, with the gates that make a state what it is."""
    if not rows:
        click.echo("no commits to verify")
        return
    lines: list[tuple[str, ...]] = []
    for row in rows:
        skipped = [name for name, end in row["gates"].items() if end == SKIPPED == row["state"]]
        why = ", ".join(row["missing"] or skipped) or plain_line(row["problem"])
        state = f"{row['state']}: {why}" if why else row["state"]
        lines.append((row["commit"][:_SHORT], state, plain_line(row["subject"])))
    click.echo(table(lines), nl=False)
    if any(row["state"] == _WENT_ROUND and not row["problem"] for row in rows):
        click.echo("next: gitgates verify --run-missing")
