"""`gitgates doctor`: check everything that the gates need to run."""

from __future__ import annotations

import json

import click

from gitgates.core import environ, errors
from gitgates.core.clean import counted, utf8, visible, visible_line
from gitgates.git.repo import current_folder, find_repo
from gitgates.hosts import AGENTS
from gitgates.setup.doctor.checks import examine
from gitgates.setup.doctor.hooks import survey
from gitgates.setup.doctor.prove import prove
from gitgates.verbs.finding import Finding
from gitgates.verbs.output import format_option, stdout

_VERSION = 1
ALL = "all"  # that is installed
_ROOM = "free space in the temporary folder, or set TMPDIR to another one"
_COLOURS = {"ok": "32", "problem": "31", "note": "33"}


@click.command("doctor")
@format_option
@click.option(
    "--prove",
    "proved",
    is_flag=False,
    flag_value=ALL,
    type=click.Choice([ALL, *AGENTS]),
    metavar="[AGENT]",
    help="Also run the installed hooks in a temporary repository, and verify that a failing "
    "gate blocks there. With the name of a coding agent, test only its hooks.",
)
def command(fmt: str, *, proved: str | None) -> int:
    """Check the configuration, and the hooks in every worktree; name a fix for each problem.

    Changes nothing, except that every command first restores files that a killed run stashed. Exit
    status 0: no problems, although there may be notes. 1: problems found.
    """
    terminal = stdout()
    repo = find_repo(current_folder(), environ.read())
    subject = survey(repo)
    findings = examine(subject)
    if proved:
        try:
            findings += prove(subject, findings, only="" if proved == ALL else proved)
        except (errors.GitError, OSError) as error:  # the other findings are still reported
            git_error = error if isinstance(error, errors.GitError) else None
            what, hint = (git_error.message, git_error.hint) if git_error else (str(error), "")
            findings.append(Finding("problem", "proof", repo.root_abs, what, hint or _ROOM))
    is_wrong = any(finding.severity == "problem" for finding in findings)
    if fmt == "json":
        finding_rows = [
            {k: utf8(value) for k, value in finding._asdict().items()} for finding in findings
        ]
        document = {"version": _VERSION, "ok": not is_wrong, "findings": finding_rows}
        text = json.dumps(document, indent=2) + "\n"
    else:
        text = _text(findings, colour=terminal.colour)
    terminal.write(text.encode("utf-8", "surrogateescape"))
    return errors.BLOCKED if is_wrong else errors.OK


def _text(findings: list[Finding], *, colour: bool) -> str:
    lines: list[str] = []
    for finding in findings:
        word = f"{finding.severity:<8}"
        if colour:
            word = f"\x1b[{_COLOURS[finding.severity]}m{word}\x1b[0m"
        lines.append(f"{word} {visible_line(finding.where)}: {visible_line(finding.what)}")
        if finding.mend:
            lines += [f"         {visible(line.strip())}" for line in finding.mend.split("\n")]
    severities = [finding.severity for finding in findings]
    problems, notes = severities.count("problem"), severities.count("note")
    parts = [counted(problems, "problem")] if problems else ["nothing is wrong"]
    parts += [counted(notes, "note")] if notes else []
    return "\n".join([*lines, f"gitgates doctor: {', '.join(parts)}"]) + "\n"
