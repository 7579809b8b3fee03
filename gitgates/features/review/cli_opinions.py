"""`gitgates review opinions`: each command of `second_opinions` gets the request and the diff.

They run side by side, as gates do: each in a process group of its own, with a time limit, its
output kept within bounds and written to a log. Hooks of ours that they set off, as another coding
agent does, find a run under way, and are silent.
"""

from __future__ import annotations

import re

import click

from gitgates.core import environ
from gitgates.core.clean import first_few, plain, visible_line
from gitgates.core.errors import BLOCKED, OK, GitgatesError, Interrupted
from gitgates.core.types import Event, Gate, Hook, Plan, Step
from gitgates.engine.listener import Listener
from gitgates.engine.run import RunOptions, run_plan
from gitgates.engine.walk import ENDED
from gitgates.features.review.cli_session import ASKING
from gitgates.features.review.config import settings_of
from gitgates.git.diff import diff_text
from gitgates.hosts import withheld_from_agents
from gitgates.store.runs import new_run
from gitgates.verbs.output import print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.types import GateResult
    from gitgates.features.review.cli_session import ReviewSession

_VERSION = 1
_NONE = (
    "no second opinions are configured\n"
    "  Add commands to [tool.gitgates.review]: second_opinions = "
    '["codex exec -"]'
)
_TOPIC = "/opinions"
_TAIL = 10  # lines of what failed
_FILE_NAME = "GITGATES_REVIEW_FILE"
_INPUT = "stdin"  # the file of a run that keeps the input for its gates
_ANSWERED, _SILENT = "answered", "silent"
_LONGEST_DIFF = 256 * 1024  # bytes: about 80,000 tokens, what most models take at once
_LONGEST_REQUEST = 32 * 1024  # characters
_NAMED = 50  # files that are not shown
_LAST_LINES = 10  # that are searched for a decision
_DIFF = b"\ndiff --git "
_DECISION = re.compile(r"\W*(?:(?:Decision|Verdict)\W*)?(COMPLETE|ISSUES)\b")
_ASSIGNMENT = re.compile(r"\w+=")
_NAME = re.compile(r"\w[\w.+-]{0,39}")
_INSTRUCTIONS = """\
You are asked for a second opinion on a change to a repository, whose root is the current folder.

Review it independently. Whoever made it may have told you nothing, or too much: judge the change
itself, against what the person asked for. Assume that there are errors, and look for them: what was
asked for and is not done, what is done and was not asked for, what breaks, what is not tested, what
makes the checks weaker. Change no file, commit nothing.

Say what is wrong, with file and line, the gravest first, and how you know. Leave out matters of
taste. Say plainly where you could not look. End with one line: COMPLETE if nothing has to change,
otherwise ISSUES.
"""


def ask_all(session: ReviewSession, fmt: str) -> int:
    """Ask each command of `second_opinions`; return the exit status.

    Raises: Interrupted after a signal; StateError if something cannot be stored.
    """
    review = settings_of(session.config)
    change = session.change if review.second_opinions else None
    files = change.weight.files if change else ()
    paths = tuple(file.path for file in files if file.counts)
    diff = diff_text(change.whole, paths) if change and paths else b""
    if not diff:
        return _nothing(fmt, "no significant changes" if change else _NONE)
    topic = f"review/{session.caller.session}{_TOPIC}"
    opinions = _Opinions(session, fmt)
    click.echo(
        f"gitgates: asking {', '.join(opinions.commands)}, for at most "
        f"{review.opinion_timeout_s:g} s\n  Each answer is stored as it arrives; to show them: "
        f"gitgates journal read {topic}",
        err=True,
    )
    try:
        _run(session, opinions, prompt(session.requests, diff))
    except Interrupted as error:
        opinions.show()
        raise error.with_notes(
            [(f"Answers received so far are stored: gitgates journal read {topic}")]
        ) from error
    opinions.show()
    if opinions.trouble:
        raise opinions.trouble
    statuses = {opinion["status"] for opinion in opinions.answers.values()}
    return OK if _ANSWERED in statuses else BLOCKED


def _nothing(fmt: str, why: str) -> int:
    if fmt == "json":
        print_json({"version": _VERSION, "opinions": []})
    click.echo(why if fmt == "text" else f"gitgates: {why}", err=fmt == "json")
    return OK


def _run(session: ReviewSession, opinions: _Opinions, question: bytes) -> None:
    """Run all commands in parallel; `opinions` listens."""
    repo, config = session.repo, session.config
    run_abs = new_run(repo.state_abs)
    gates = [
        Gate(
            name=name,
            command=command,
            timeout_s=settings_of(config).opinion_timeout_s,
            pass_hook_input=True,
            env=((_FILE_NAME, f"{run_abs}/{_INPUT}"),),
        )
        for name, command in opinions.commands.items()
    ]
    names = tuple(opinions.commands)
    plan = Plan(
        event=Event(host="manual", name=ASKING, root_abs=repo.root_abs, stdin=question),
        hook=Hook(name=ASKING, gates=names, strategy="collect"),
        listed=names,
        steps=tuple(Step(gate=gate) for gate in gates),
        config_digest=config.digest,
    )
    withheld = withheld_from_agents()
    env = {name: value for name, value in environ.read().items() if name not in withheld}
    # They only read, and may take minutes: nobody else has to wait for them.
    options = RunOptions(locks=False, logs_abs=f"{run_abs}/logs")
    many = config._replace(jobs=len(names))
    run_plan(plan, many, repo._replace(env=env), opinions, options=options)


class _Opinions(Listener):
    """The listener that posts and prints each opinion as it comes."""

    def __init__(self, session: ReviewSession, fmt: str) -> None:
        self._session, self._fmt = session, fmt
        commands = settings_of(session.config).second_opinions
        self.commands = dict(zip(names_of(commands), commands, strict=True))
        self.answers: dict[str, dict[str, Any]] = {}
        self.trouble: GitgatesError | None = None  # why something could not be stored

    def ended(self, result: GateResult, plan: Plan) -> None:  # noqa: ARG002 - the listener's
        """Post and print the opinion of a command, unless we have ended it."""
        if result.reason == ENDED:
            return
        opinion, message = _opinion(self.commands[result.gate], result), ""
        try:
            message = self._session.post(_text(opinion), opinion, topic=_TOPIC)
        except GitgatesError as error:
            self.trouble = error  # the answer must not be lost because of that
        if self._fmt == "text":
            click.echo(("\n" if self.answers else "") + _text(opinion, message), nl=False)
        self.answers[result.gate] = {**opinion, "message": message}

    def show(self) -> None:
        """Show all of it as a document, in the order of the configuration."""
        if self._fmt == "json":
            documents = [self.answers[name] for name in self.commands if name in self.answers]
            print_json({"version": _VERSION, "opinions": documents})


def _opinion(command: str, result: GateResult) -> dict[str, Any]:
    """Return the opinion of one command, to post and print."""
    text = plain(result.output).strip()
    status: str = result.status
    if status in ("passed", "unchecked"):  # of a text, exit status 0 is enough
        status = _ANSWERED if text else _SILENT
    lines = [line for line in text.splitlines() if line.strip()]
    # The decision is on the last line, unless the program appends something.
    matches = filter(None, map(_DECISION.match, reversed(lines[-_LAST_LINES:])))
    decided = next(matches, None) if status == _ANSWERED else None
    return {
        "name": result.gate,
        "command": command,
        "status": status,
        "text": text,
        "reason": _why_none(status, result),
        "decision": decided[1] if decided else "",
        "duration_s": round(result.duration_s, 3),
        "log_abs": result.log_abs,
    }


def _why_none(status: str, result: GateResult) -> str:
    """Return why there is no opinion; empty if there is one."""
    killed = f"it was killed{f' by signal {result.signal}' if result.signal else ''}"
    return {
        _ANSWERED: "",
        _SILENT: "it printed nothing",
        "timed-out": f"it took too long: {result.reason}",
        "failed": f"it failed: exit status {result.exit_status}",
        "not-started": f"it could not be started: {result.reason}",
    }.get(status, killed)


def _text(opinion: dict[str, Any], message: str = "") -> str:
    decision = f": {opinion['decision']}" if opinion["decision"] else ""
    reference = f" (message {message})" if message else ""
    name = visible_line(opinion["name"])
    if opinion["status"] == _ANSWERED:
        return f"== {name}{decision}{reference} ==\n{opinion['text']}\n"
    tail = "".join(f"  {line}\n" for line in opinion["text"].splitlines()[-_TAIL:])
    log = f"  full output: {opinion['log_abs']}\n" if opinion["log_abs"] else ""
    return f"== {name}: no opinion, {opinion['reason']}{reference} ==\n{tail}{log}"


def names_of(commands: tuple[str, ...]) -> tuple[str, ...]:
    """Return a name for each command: its first word, with a number if there are several."""
    programs = []
    for number, command in enumerate(commands, start=1):
        words = (word for word in command.split() if not _ASSIGNMENT.match(word))
        name = next(words, "").rpartition("/")[2]
        programs.append(name if _NAME.fullmatch(name) else f"opinion {number}")
    return tuple(
        f"{name} {programs[:at].count(name) + 1}" if programs.count(name) > 1 else name
        for at, name in enumerate(programs)
    )


def prompt(requests: tuple[str, ...], diff: bytes) -> bytes:
    """Return the prompt for each command. A diff that is too large is cut, with a note."""
    prompts = "\n\n".join(f"{number}. {text}" for number, text in enumerate(requests, start=1))
    if len(prompts) > _LONGEST_REQUEST:
        # The first prompts say what it is about, the last ones what it has become.
        half = _LONGEST_REQUEST // 2
        omitted = len(prompts) - 2 * half
        prompts = f"{prompts[:half]}\n[... {omitted} characters left out ...]\n{prompts[-half:]}"
    prompts = prompts or "(The person's prompts are unknown. Judge the change by itself.)"
    excerpt, note = _cut(diff)
    head = f"{_INSTRUCTIONS}\n# What the person asked for, word for word\n\n{prompts}\n"
    return f"{head}\n# The change\n\n{note}".encode("utf-8", "replace") + excerpt


def _cut(diff: bytes) -> tuple[bytes, str]:
    """Return a diff cut to the limit, and a note on what is left out."""
    if len(diff) <= _LONGEST_DIFF:
        return diff, ""
    end = diff.rfind(_DIFF, 0, _LONGEST_DIFF) + 1
    if end < _LONGEST_DIFF // 2:  # within a large file: at a line
        end = diff.rfind(b"\n", 0, _LONGEST_DIFF) + 1
    heads = [part.partition(b"\n")[0] for part in diff[end - 1 :].split(_DIFF)[1:]]
    paths = [head.partition(b" b/")[2].decode("utf-8", "replace") for head in heads]
    rest = f" Not shown at all; read them in place: {first_few(paths, _NAMED)}."
    return diff[:end], (
        f"(Truncated: these are the first {end} bytes of {len(diff)}.{rest if paths else ''})\n\n"
    )
