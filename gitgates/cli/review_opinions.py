"""`gitgates review opinions`: each command of `second_opinions` gets the request and the diff.

They run side by side, as gates do: each in a process group of its own, with a time limit, its
output kept within bounds and written to a log. Hooks of ours that they set off, as another coding
agent does, find a run under way, and are silent.
"""

from __future__ import annotations

import re
import shlex

import click

from gitgates import environ
from gitgates.clean import plain, visible_line
from gitgates.cli.output import print_json
from gitgates.cli.review_session import ASKING
from gitgates.engine.run import NullListener, RunOptions, run_plan
from gitgates.engine.walk import ENDED
from gitgates.errors import BLOCKED, OK, GitgatesError, Interrupted
from gitgates.git.diff import diff_text
from gitgates.hosts import withheld_from_agents
from gitgates.record import Record
from gitgates.store.runs import new_run
from gitgates.types import Config, Event, Gate, Hook, Plan, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from gitgates.cli.review_session import ReviewSession
    from gitgates.git.repo import Repo
    from gitgates.policies.change import SessionChange
    from gitgates.types import GateResult

_VERSION = 1
_NONE = (
    "no second opinions are configured\n"
    '  Name commands in [tool.gitgates.review]: second_opinions = ["codex exec -"]'
)
_TOPIC = "/opinions"
_TAIL = 10  # lines of what failed
FILE_NAME = "GITGATES_REVIEW_FILE"
INPUT = "stdin"  # the file of a run that keeps the input for its gates
ANSWERED, SILENT = "answered", "silent"
_LONGEST_DIFF = 256 * 1024  # bytes: about 80,000 tokens, what most models take at once
_LONGEST_REQUEST = 32 * 1024  # characters
_NAMED = 50  # files that are not shown
_LAST_LINES = 10  # that a decision is looked for in
_FILE, _HEAD = b"\ndiff --git ", b"diff --git "
_DECISION = re.compile(r"\W*(?:(?:Decision|Verdict)\W*)?(COMPLETE|ISSUES)\b")
_ASSIGNMENT = re.compile(r"\w+=|\d+$")  # or what is redirected
_NAME = re.compile(r"\w[\w.+-]{0,39}")
# What stands before a program, and what is none and is over before the next one.
_BEFORE = ("!", "{", "command", "do", "else", "env", "exec", "if", "then", "time", "until", "while")
_NO_PROGRAM = (
    *(".", "alias", "cd", "export", "set", "shopt", "source", "trap", "ulimit", "umask"),
    *("case", "done", "esac", "fi", "for", "function", "select", "test"),
)
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


class Opinion(Record):
    """What became of one command."""

    name: str
    command: str
    status: str  # answered, silent, or how it ended: failed, timed-out, not-started, killed
    text: str  # what it said
    reason: str = ""  # why it is no opinion
    decision: str = ""  # COMPLETE or ISSUES, as it ends with
    duration_s: float = 0.0
    log_abs: str = ""  # all of what it said; empty: there is no more

    @property
    def answered(self) -> bool:
        """Return whether this is an opinion."""
        return self.status == ANSWERED


def ask_all(session: ReviewSession, fmt: str) -> int:
    """Ask each command of `second_opinions`; return the exit status."""
    review = session.config.review
    commands = review.second_opinions
    diff = _diff(session.change) if commands else b""
    if not diff:
        return _nothing(fmt, "nothing has changed that counts" if commands else _NONE)
    topic = f"review/{session.caller.session}{_TOPIC}"
    click.echo(
        f"gitgates: asking {', '.join(names_of(commands))}, for at most "
        f"{review.opinion_timeout_s:g} s\n"
        f"  Each answer is kept at once, and shown by: gitgates journal read {topic}",
        err=True,
    )
    output = _OpinionOutput(session, fmt)
    question = prompt(session.evidence.requests, diff)
    try:
        ask(session.repo, session.config, environ.read(), question, on_opinion=output.on_opinion)
    except Interrupted as error:
        output.show()
        raise error.with_notes([f"What has come is kept: gitgates journal read {topic}"]) from error
    return output.finish()


def _diff(change: SessionChange) -> bytes:
    """Return the change that is to be reviewed."""
    paths = tuple(one.path for one in change.weight.files if one.counts)
    return diff_text(change.whole, paths) if paths else b""


def _nothing(fmt: str, why: str) -> int:
    if fmt == "json":
        print_json({"version": _VERSION, "opinions": []})
        click.echo(f"gitgates: {why}", err=True)
    else:
        click.echo(why)
    return OK


class _OpinionOutput:
    """What has been said so far: kept and shown, each as it comes."""

    def __init__(self, session: ReviewSession, fmt: str) -> None:
        self._session, self._fmt = session, fmt
        self._shown: list[tuple[Opinion, str]] = []
        self._trouble: GitgatesError | None = None

    def on_opinion(self, one: Opinion) -> None:
        """Keep an opinion, and show it."""
        message = ""
        try:
            message = self._session.post(_text(one), _fields(one), topic=_TOPIC)
        except GitgatesError as error:
            self._trouble = error  # what was said is not to be lost for that
        if self._fmt == "text":
            click.echo(("\n" if self._shown else "") + _text(one, message), nl=False)
        self._shown.append((one, message))

    def show(self) -> None:
        """Show all of it as a document, in the order of the configuration."""
        if self._fmt == "json":
            names = names_of(self._session.config.review.second_opinions)
            told = sorted(self._shown, key=lambda each: names.index(each[0].name))
            listed = [{**_fields(one), "message": message} for one, message in told]
            print_json({"version": _VERSION, "opinions": listed})

    def finish(self) -> int:
        """Show it, and return the exit status.

        Raises: GitgatesError where something could not be kept.
        """
        self.show()
        if self._trouble:
            raise self._trouble
        return OK if any(one.answered for one, _ in self._shown) else BLOCKED


def _text(one: Opinion, message: str = "") -> str:
    decision = f": {one.decision}" if one.decision else ""
    kept = f" (message {message})" if message else ""
    if one.answered:
        return f"== {visible_line(one.name)}{decision}{kept} ==\n{one.text}\n"
    tail = "".join(f"  {line}\n" for line in one.text.splitlines()[-_TAIL:])
    log = f"  all of its output: {one.log_abs}\n" if one.log_abs else ""
    return f"== {visible_line(one.name)}: no opinion, {one.reason}{kept} ==\n{tail}{log}"


def _fields(one: Opinion) -> dict[str, Any]:
    return {**one._asdict(), "duration_s": round(one.duration_s, 3)}


def names_of(commands: tuple[str, ...]) -> tuple[str, ...]:
    """Return a name for each command: its program, with a number where there are several."""
    programs = [
        _program(command) or f"opinion {number}" for number, command in enumerate(commands, start=1)
    ]
    seen: dict[str, int] = {}
    found = []
    for program in programs:
        seen[program] = seen.get(program, 0) + 1
        found.append(f"{program} {seen[program]}" if programs.count(program) > 1 else program)
    return tuple(found)


def prompt(requests: tuple[str, ...], diff: bytes) -> bytes:
    """Return what each command is asked. A diff that is too large is cut, and that is said."""
    asked = "\n\n".join(f"{number}. {text}" for number, text in enumerate(requests, start=1))
    if len(asked) > _LONGEST_REQUEST:
        # The first says what it is about, the last what it has come to.
        half = _LONGEST_REQUEST // 2
        left = len(asked) - 2 * half
        asked = f"{asked[:half]}\n[... {left} characters left out ...]\n{asked[-half:]}"
    asked = asked or "(The person's words are not known. Judge the change by itself.)"
    shown, note = _cut(diff)
    head = f"{_INSTRUCTIONS}\n# What the person asked for, word for word\n\n{asked}\n"
    middle = f"\n# The change\n\n{note}" if note else "\n# The change\n\n"
    return f"{head}{middle}".encode("utf-8", "replace") + shown


class _OpinionListener(NullListener):
    """Passes on the result of each gate that has ended by itself, as an opinion."""

    def __init__(self, commands: Mapping[str, str], on_opinion: Callable[[Opinion], None]) -> None:
        self._commands, self._on_opinion = commands, on_opinion

    def ended(self, result: GateResult, plan: Plan) -> None:  # noqa: ARG002 - the listener's
        """Tell of it."""
        if result.reason != ENDED:
            self._on_opinion(_opinion(result.gate, self._commands[result.gate], result))


def ask(
    repo: Repo,
    config: Config,
    env: Mapping[str, str],
    question: bytes,
    *,
    on_opinion: Callable[[Opinion], None],
) -> None:
    """Ask all commands at once. `on_opinion` is told what became of each, as soon as it has ended.

    Raises: Interrupted after a signal; StateError where the question cannot be kept for them.
    """
    commands = config.review.second_opinions
    names = names_of(commands)
    run_abs = new_run(repo.state_abs)
    gates = tuple(
        Gate(
            name=name,
            command=command,
            timeout_s=config.review.opinion_timeout_s,
            pass_hook_input=True,
            env=((FILE_NAME, f"{run_abs}/{INPUT}"),),
        )
        for name, command in zip(names, commands, strict=True)
    )
    plan = Plan(
        event=Event(host="manual", name=ASKING, root_abs=repo.root_abs, stdin=question),
        hook=Hook(name=ASKING, gates=names, strategy="collect"),
        listed=names,
        steps=tuple(Step(gate=gate) for gate in gates),
        config_digest=config.digest,
    )
    env = {name: value for name, value in env.items() if name not in withheld_from_agents()}
    listener = _OpinionListener(dict(zip(names, commands, strict=True)), on_opinion)
    # They only read, and may take minutes: nobody else is to wait for that.
    options = RunOptions(locks=False, logs_abs=f"{run_abs}/logs")
    many = config._replace(jobs=len(names))
    run_plan(plan, many, repo._replace(env=env), listener, options=options)


def _opinion(name: str, command: str, result: GateResult) -> Opinion:
    said = plain(result.output).strip()
    status = result.status if result.status != "passed" or said else SILENT
    return Opinion(
        name=name,
        command=command,
        status=ANSWERED if status == "passed" else status,
        text=said,
        reason=_why_none(status, result),
        decision=_decision(said) if status == "passed" else "",
        duration_s=result.duration_s,
        log_abs=result.log_abs,
    )


def _why_none(status: str, result: GateResult) -> str:
    """Say why there is no opinion; nothing if there is one."""
    match status:
        case "passed":
            return ""
        case "silent":
            return "it said nothing"
        case "timed-out":
            return f"it took too long: {result.reason}"
        case "failed":
            return f"it failed: exit status {result.exit_status}"
        case "not-started":
            return f"it could not be started: {result.reason}"
        case _:
            return f"it was killed{f' by signal {result.signal}' if result.signal else ''}"


def _decision(said: str) -> str:
    """Return the word that an opinion ends with. What a program adds behind it is passed over."""
    lines = [line for line in said.splitlines() if line.strip()]
    for line in reversed(lines[-_LAST_LINES:]):
        found = _DECISION.match(line)
        if found:
            return found[1]
    return ""


def _program(command: str) -> str:
    """Return the first program that a shell text calls, without its folder; empty for none."""
    signs = shlex.shlex(command.replace("\n", "\n;"), posix=True, punctuation_chars=True)
    signs.whitespace_split = True
    try:
        words = list(signs)
    except ValueError:  # a quotation that does not end
        return ""
    is_first, is_target = True, False
    for word in words:
        name = word.rpartition("/")[2]
        is_sign = bool(word) and not word.strip(signs.punctuation_chars)
        if is_sign and (is_target := not {*"<>"}.isdisjoint(word)):
            continue
        if is_target:
            is_target = False  # what is redirected stands anywhere
        elif is_sign:
            is_first = True
        elif is_first and not (word in _BEFORE or _ASSIGNMENT.match(word)):
            if word not in _NO_PROGRAM and _NAME.fullmatch(name):
                return name
            is_first = False
    return ""


def _cut(diff: bytes) -> tuple[bytes, str]:
    """Return as much of a diff as can be asked about, and a note on what is left out."""
    if len(diff) <= _LONGEST_DIFF:
        return diff, ""
    end = diff.rfind(_FILE, 0, _LONGEST_DIFF) + 1
    if end < _LONGEST_DIFF // 2:  # within a large file: at a line
        end = diff.rfind(b"\n", 0, _LONGEST_DIFF) + 1
    rest = [line.partition(b" b/")[2] for line in diff[end:].split(b"\n") if line.startswith(_HEAD)]
    named = ", ".join(path.decode("utf-8", "replace") for path in rest[:_NAMED])
    more = f" and {len(rest) - _NAMED} more" if len(rest) > _NAMED else ""
    files = f" Not shown at all, so read them where they are: {named}{more}." if rest else ""
    return diff[:end], (
        f"(It is too large to be shown whole: these are the first {end} bytes of {len(diff)}."
        f"{files})\n\n"
    )
