"""Second opinions: each command in `second_opinions` gets the request and the diff.

They run in parallel like gates: each in its own process group, with a time limit, and with limited
output that is written to a log. If one triggers our hooks, as another coding agent does, these find
a run in progress, and do nothing.
"""

from __future__ import annotations

import re

import click

from gitgates.core import environ
from gitgates.core.clean import first_few, plain, visible_line
from gitgates.core.errors import BLOCKED, OK, GitgatesError
from gitgates.core.types import Event, Hook, Plan, Step, make_gate
from gitgates.engine.plan.listener import Listener
from gitgates.engine.plan.walk import ENDED
from gitgates.engine.run.job import RunOptions
from gitgates.engine.run.run import run_plan
from gitgates.features.review.cli_session import ASKING
from gitgates.features.review.config import settings_of
from gitgates.hosts import withheld_from_agents
from gitgates.store.runs import new_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import GateResult
    from gitgates.features.review.cli_session import ReviewSession

_NONE = (
    "no second opinions are configured\n"
    '  Add commands to [tool.gitgates.review]: second_opinions = ["codex exec -"]'
)
_ENDED_WELL = ("passed", "unchecked")  # for a text, exit status 0 is enough
_TAIL = 10  # lines of a failed command's output
_FILE_NAME = "GITGATES_REVIEW_FILE"
_INPUT = "stdin"  # the file in a run's folder with the input for its gates
_LONGEST_DIFF = 256 * 1024  # bytes: about 80,000 tokens, which most models accept
_NAMED = 50  # files that are not shown
_LAST_LINES = 10  # lines that are searched for a decision
_DIFF = b"\ndiff --git "
_DECISION = re.compile(r"\W*(?:(?:Decision|Verdict)\W*)?(COMPLETE|ISSUES)\b")
_ASSIGNMENT = re.compile(r"\w+=")
_NAME = re.compile(r"\w[\w.+-]{0,39}")
_INSTRUCTIONS = """\
You are asked for a second opinion on a change to a repository, whose root is the current folder.

Review it independently. Its author may have told you nothing, or too much: judge the change itself,
against what the person asked for. Assume that there are errors, and look for them: what was asked
for but not done, what was done but not asked for, what breaks, what is not tested, what weakens the
checks. Change no file, commit nothing.

Say what is wrong, with file and line, the most serious first, and how you know. Leave out matters
of taste. Say plainly what you could not check. End with one line: COMPLETE if nothing must change,
otherwise ISSUES.

"""


def ask_all(session: ReviewSession, text: str, patch: bytes) -> int:
    """Ask each command in `second_opinions`; return the exit status.

    Raises: Interrupted after a signal; StateError if something cannot be stored.
    """
    review = settings_of(session.config)
    if not (patch and review.second_opinions):
        click.echo("no significant changes" if review.second_opinions else _NONE)
        return OK
    opinions = _Opinions(session, names_of(review.second_opinions))
    names, topic = ", ".join(opinions.names), f"review/{session.caller.session}/opinions"
    click.echo(
        f"gitgates: asking {names}, for at most {review.opinion_timeout_s:g} s\n"
        f"  Each answer is stored as it arrives; to show them: gitgates journal read {topic}",
        err=True,
    )
    _run(session, opinions, prompt(text, patch))
    if opinions.trouble:
        raise opinions.trouble
    return OK if opinions.has_answer else BLOCKED


def _run(session: ReviewSession, opinions: _Opinions, question: bytes) -> None:
    """Run all commands in parallel; `opinions` listens."""
    repo, config = session.repo, session.config
    review, run_abs = settings_of(config), new_run(repo.state_abs)
    gates = [
        make_gate(
            name=name,
            command=command,
            timeout_s=review.opinion_timeout_s,
            pass_hook_input=True,
            env=((_FILE_NAME, f"{run_abs}/{_INPUT}"),),
        )
        for name, command in zip(opinions.names, review.second_opinions, strict=True)
    ]
    plan = Plan(
        event=Event(host="manual", name=ASKING, root_abs=repo.root_abs, stdin=question),
        hook=Hook(name=ASKING, gates=opinions.names, strategy="collect"),
        listed=opinions.names,
        steps=tuple(Step(gate=gate) for gate in gates),
        config_digest=config.digest,
    )
    withheld = withheld_from_agents()
    env = {name: value for name, value in environ.read().items() if name not in withheld}
    # They only read, and may take minutes: nobody else must wait for them.
    options = RunOptions(locks=False, logs_abs=f"{run_abs}/logs")
    many = config._replace(jobs=len(gates))
    run_plan(plan, many, repo._replace(env=env), opinions, options=options)


class _Opinions(Listener):
    """A listener that posts and prints each opinion as it arrives."""

    def __init__(self, session: ReviewSession, names: tuple[str, ...]) -> None:
        self._session = session
        self.names = names
        self.has_answer = False
        self.trouble: GitgatesError | None = None  # why an opinion could not be stored

    def ended(self, result: GateResult, plan: Plan) -> None:  # noqa: ARG002 - the listener's
        """Post and print a command's opinion, unless we have ended it."""
        if result.reason == ENDED:
            return
        text = plain(result.output).strip()
        data = {"name": result.gate, "decision": _decision(result, text), "text": text}
        self.has_answer |= _is_answer(result, text)
        message = ""
        try:
            message = self._session.post(_shown(result, text), data, topic="/opinions")
        except GitgatesError as error:
            self.trouble = error  # the answer is still printed
        click.echo(_shown(result, text, message))


def _is_answer(result: GateResult, text: str) -> bool:
    return bool(text) and result.status in _ENDED_WELL


def _decision(result: GateResult, text: str) -> str:
    """Return the decision in an answer's last lines; empty if there is none."""
    lines = text.splitlines()[-_LAST_LINES:] if _is_answer(result, text) else []
    matches = filter(None, map(_DECISION.match, reversed(lines)))
    return next((match[1] for match in matches), "")


def _shown(result: GateResult, text: str, message: str = "") -> str:
    name = visible_line(result.gate)
    reference = f" (message {message})" if message else ""
    if _is_answer(result, text):
        decision = _decision(result, text)
        return f"== {name}{f': {decision}' if decision else ''}{reference} ==\n{text}\n"
    reasons = {
        **dict.fromkeys(_ENDED_WELL, "it printed nothing"),
        "timed-out": f"it took too long: {result.reason}",
        "failed": f"it failed: exit status {result.exit_status}",
        "not-started": f"it could not be started: {result.reason}",
    }
    reason = reasons.get(result.status, "it was killed")
    tail = "".join(f"  {line}\n" for line in text.splitlines()[-_TAIL:])
    log = f"  full output: {result.log_abs}\n" if result.log_abs else ""
    return f"== {name}: no opinion, {reason}{reference} ==\n{tail}{log}"


def names_of(commands: tuple[str, ...]) -> tuple[str, ...]:
    """Return a name for each command: its first word, numbered if there are several."""
    programs = []
    for number, command in enumerate(commands, start=1):
        words = (word for word in command.split() if not _ASSIGNMENT.match(word))
        name = next(words, "").rpartition("/")[2]
        programs.append(name if _NAME.fullmatch(name) else f"opinion {number}")
    return tuple(
        f"{name} {programs[:at].count(name) + 1}" if programs.count(name) > 1 else name
        for at, name in enumerate(programs)
    )


def prompt(text: str, diff: bytes) -> bytes:
    """Return the prompt for all commands. A diff that is too large is cut, with a note."""
    note = ""
    if len(diff) > _LONGEST_DIFF:
        end = diff.rfind(b"\n", 0, _LONGEST_DIFF) + 1
        heads = [part.partition(b"\n")[0] for part in diff[end - 1 :].split(_DIFF)[1:]]
        paths = [head.partition(b" b/")[2].decode("utf-8", "replace") for head in heads]
        unseen = f" Not shown at all; read them in place: {first_few(paths, _NAMED)}."
        cut = f"Truncated: these are the first {end} bytes of {len(diff)}."
        note = f"({cut}{unseen if paths else ''})\n\n"
        diff = diff[:end]
    return f"{_INSTRUCTIONS}{text}{note}".encode("utf-8", "replace") + diff
