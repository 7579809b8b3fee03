"""The records that flow through gitgates. No logic, no input or output.

Paths are `str`, relative to the root, `/`-separated, unless named `*_abs`. Times are float seconds
named `*_s`. Digests are lower-case hex.
"""

from __future__ import annotations

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal, TypeAlias

    from gitgates.core.agent_types import Payload
    from gitgates.core.failure import Failure

    # How one gate ended. A gate that timed out, was killed or could not start did not "fail"; one
    # that is `unchecked` exited with status 0, and had nothing to check: that is no pass. One that
    # is `flaky` has failed, and then passed on the same content.
    Status: TypeAlias = Literal[
        "passed",
        "flaky",
        "failed",
        "timed-out",
        "not-started",
        "killed",
        "skipped",
        "not-run",
        "unchecked",
    ]
    Strategy: TypeAlias = Literal["sequence", "collect"]
    # CONTINUE, BLOCK, STOP, or the name of a gate (which can be none of these words).
    Action: TypeAlias = str
    # ALLOW < WARN < BLOCK < STOP: max() is the precedence.
    Level: TypeAlias = Literal[0, 1, 2, 3]
    Place: TypeAlias = Literal["as-is", "as-committed", "hidden", "checked-out"]

ALLOW: Level = 0
WARN: Level = 1
BLOCK: Level = 2
STOP: Level = 3
# Where gates run: in the working tree as it is, where it equals the commit, or where unstaged
# changes are hidden; or in a private checkout.
AS_IS: Place = "as-is"
AS_COMMITTED: Place = "as-committed"
HIDDEN: Place = "hidden"
CHECKED_OUT: Place = "checked-out"
VERDICTS = ("allow", "warn", "block", "stop")
ACTIONS = ("CONTINUE", "BLOCK", "STOP")
# How passes of a gate are reused: for each file; so, too, but only if that saves time.
BY_FILE, DECLARED = "by-file", "declared"
PRIORITIES = ("critical", "high", "normal", "low")


class RefUpdate(Record):
    """One line of pre-push's standard input. An id of zeros means: no such ref on that side."""

    local_ref: str
    local_id: str
    remote_ref: str
    remote_id: str

    @property
    def has_code(self) -> bool:
        """Whether there is anything that gates could check; git notes do not count."""
        return not self.remote_ref.startswith("refs/notes/")


class Verdict(Record):
    """The verdict on an agent's event, independent of hosts."""

    level: Level = ALLOW
    to_agent: str = ""  # why, and what to do; or what it should know
    to_person: str = ""
    command: str = ""  # what a shell tool runs instead
    caller: str = ""  # the nonce that a tool of ours is called with
    ask: bool = False  # the person must permit the tool call, if the level lets it pass
    entries: tuple[Any, ...] = ()  # of the session's journal, which are above
    final: bool = False  # no further policy is asked
    blocked_by: tuple[str, ...] = ()  # the policies that asked for a block
    replayed_answer: str | None = None  # what the host received for the same event, to be repeated

    def joined(self, other: Verdict, between: str = "\n\n") -> Verdict:
        """Join two verdicts: all texts, equal ones once, and the stronger level."""
        return Verdict(
            max(self.level, other.level),
            to_agent=between.join(filter(None, dict.fromkeys((self.to_agent, other.to_agent)))),
            to_person="\n".join(filter(None, dict.fromkeys((self.to_person, other.to_person)))),
            command=other.command or self.command,
            caller=other.caller or self.caller,
            ask=self.ask or other.ask,
            entries=(*self.entries, *other.entries),
            final=other.final,
            blocked_by=self.blocked_by,
        )


class Event(Record):
    """One firing of a hook, independent of hosts."""

    host: str  # git, pre-commit, manual, claude
    name: str  # the hook, in the host's word
    root_abs: str
    paths: tuple[str, ...] | None = None  # None: this hook is not about paths
    refs: tuple[RefUpdate, ...] = ()
    argv: tuple[str, ...] = ()  # what the host gave the hook, for gates that ask for it
    stdin: bytes = b""
    message_file_abs: str = ""
    note: str = ""  # what the person should know about how the paths were chosen
    payload: Payload | None = None  # of an agent's event
    deleted: tuple[str, ...] = ()  # paths that were there, for gates that are given none
    within_framework: bool = False  # the pre-commit framework runs us, and its own hooks
    base: str = ""  # a commit that a person has named to compare with
    files_abs: str = ""  # where its files are, if not in the root: a private checkout
    with_untracked: bool = False  # among `paths` are some that git does not know and nobody named


class GateProgram(Record):
    """What a gate starts, where, with what, and what that may change."""

    command: str | tuple[str, ...] | None = None  # str: for the shell; tuple: executed; None: none
    pre_commit: tuple[str, ...] | None = None  # hook ids to run instead of a command; (): all
    runner: str = "pre-commit"  # the program that runs them
    working_dir: str = "."
    env: tuple[tuple[str, str], ...] = ()
    pass_env: tuple[str, ...] = ()  # of what is held back from gates of an agent's hooks
    git_env: str = "auto"  # auto, commit, clean: see engine/plan/command.py
    pass_files: bool = False
    pass_hook_input: bool = False
    writes: bool = False
    restage: bool = False


class PathSelection(Record):
    """The paths that a gate is about."""

    files: tuple[str, ...] | None = None  # None: all; (): none
    exclude: tuple[str, ...] = ()
    types: tuple[str, ...] = ()  # tags that a file must have, or with `!` must not have
    types_or: tuple[str, ...] = ()  # tags of which it must have one


class Schedule(Record):
    """When a gate may run, beside what, how long, and how often."""

    timeout_s: float = 300.0
    priority: str = "normal"
    after: tuple[str, ...] = ()  # gates that must have ended, if they run at all
    weight: int = 1  # job slots that it takes, at most all
    parallel: bool = False  # whether its paths are split into runs side by side
    resources: tuple[str, ...] = ()  # of this machine, that it needs for itself
    retry: int | None = None  # how often a failure runs again on the same content; None: not said

    @property
    def runs(self) -> int:
        """How often a gate may run on the same content."""
        return 1 + (self.retry or 0)


class Actions(Record):
    """What a gate's result leads to."""

    on_pass: Action = "CONTINUE"
    on_fail: Action = "BLOCK"
    required: bool = False
    observe: bool = False
    terminal: bool = False
    quarantine_until: str = ""  # the last day on which its failures only warn: 2027-01-31


class Measures(Record):
    """What is read in a gate's output, and compared."""

    failures: str = ""  # how failures are found in its output: engine/findings/failures.py
    baseline: bool | str = False  # "file": accepted failures only
    metrics: tuple[
        tuple[str, str, str], ...
    ] = ()  # name, pattern, whether higher or lower is better
    ratchet: bool | str = False  # "measure": the base is run if nothing is recorded for it
    tolerance: float = 0.0  # by how much a number may be worse, in its own unit


class ReuseRules(Record):
    """What a gate's pass depends on."""

    mode: bool | str = False  # or BY_FILE or DECLARED
    scratch: tuple[str, ...] = ()  # patterns of files that never count: it writes and reads them
    inputs: tuple[str, ...] = ()  # patterns of what it can see; empty: everything
    env_inputs: tuple[str, ...] = ()  # variables that it depends on; `NAME*`: all that begin so
    reads: tuple[str, ...] = ()  # files outside of the repository that it depends on
    max_age_s: float = 0.0  # of a pass that is reused; 0: any


class Remote(Record):
    """How a gate runs on another machine: see features/remote."""

    allowed: bool = False
    ignored_inputs: tuple[str, ...] = ()  # what git ignores, and is sent there
    outputs: tuple[str, ...] = ()  # what is brought back from there
    image: str = ""  # of a container, that it runs in there


# The parts of a gate, by the names of its fields.
GATE_PARTS: dict[str, Any] = {
    "program": GateProgram,
    "selection": PathSelection,
    "schedule": Schedule,
    "actions": Actions,
    "measures": Measures,
    "reuse": ReuseRules,
    "remote": Remote,
}
# Fields that a table of the settings calls by another name.
_WRITTEN_AS = {"mode": "reuse", "allowed": "remote"}


class Gate(Record):
    """A named check: one command, its limits, and its two actions."""

    name: str
    description: str = ""
    program: GateProgram = GateProgram()
    selection: PathSelection = PathSelection()
    schedule: Schedule = Schedule()
    actions: Actions = Actions()
    measures: Measures = Measures()
    reuse: ReuseRules = ReuseRules()
    remote: Remote = Remote()
    examples: tuple[tuple[str, str], ...] = ()  # fail or pass, and a path

    def table(self) -> dict[str, Any]:
        """Return all fields by their names in a table of the settings, which has no parts."""
        names = ("name", "description", "examples")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        for part in GATE_PARTS:
            for name, value in getattr(self, part)._asdict().items():
                fields[_WRITTEN_AS.get(name, name)] = value
        return fields

    def changed(self, **fields: Any) -> Gate:  # noqa: ANN401 - of any field
        """Return the gate with other values of fields, named as in a table of the settings."""
        return make_gate(**{**self.table(), **fields})


def make_gate(**fields: Any) -> Gate:  # noqa: ANN401 - of any field
    """Make a gate of fields that are named as in a table of the settings.

    Raises: TypeError if there is no such field.
    """
    parts: dict[str, Any] = {}
    for part, record in GATE_PARTS.items():
        names = {_WRITTEN_AS.get(name, name): name for name in record._fields}
        own = {names[name]: fields.pop(name) for name in [*fields] if name in names}
        if own:
            parts[part] = record(**own)
    return Gate(**fields, **parts)


def freeze_gate(gate: Gate) -> tuple[Any, ...]:
    """Return a gate as plain tuples, which can be written with marshal."""
    return tuple(
        [tuple(value) if name in GATE_PARTS else value for name, value in gate._asdict().items()]
    )


def thaw_gate(frozen: tuple[Any, ...]) -> Gate:
    """Return the gate that `freeze_gate` was given."""
    fields = dict(zip(Gate._fields, frozen, strict=True))
    return Gate(**fields | {name: part(*fields[name]) for name, part in GATE_PARTS.items()})


class Hook(Record):
    """What runs at one lifecycle point."""

    name: str
    gates: tuple[str, ...] = ()
    strategy: Strategy = "sequence"
    enabled_tools: tuple[str, ...] | None = None  # None: all; (): none
    enabled_agents: tuple[str, ...] | None = None
    max_retries: int = 3
    on_exhausted: str = "allow"  # allow, stop
    timeout_s: float = 0.0  # of all its gates together; 0: what theirs come to
    unstaged: str = ""  # hide, checkout, keep; empty: the hook's default, see engine/plan/plan.py
    verify: bool = False
    fail_fast: bool = False

    @property
    def attempts(self) -> int:
        """How often an agent may try: once, and after each of its retries."""
        return self.max_retries + 1


class Config(Record):
    """All settings of one repository, checked."""

    members: tuple[str, ...] = ()  # patterns of their folders
    jobs: int = 0  # 0: one per CPU
    resources: tuple[tuple[str, int], ...] = ()  # how many gates may have one at once, if not one
    max_output_bytes: int = 65536
    max_log_bytes: int = 16 << 20
    breaker: tuple[int, int] = (10, 30)  # blocks of an agent, in one prompt and in one session
    keep_runs: int = 50
    artifacts_dir: str = ""  # where results are copied to, relative to the root; empty: nowhere
    cloud_hooks: bool = False
    gates: tuple[Gate, ...] = ()
    hooks: tuple[Hook, ...] = ()
    # Of features: name → field → value, or for an array a tuple of such, from which `table_of` of
    # config/load.py makes records. What is off without its table has none.
    tables: Mapping[str, Any] = {}
    tuned: tuple[str, ...] = ()  # those of them that are not as if they were not written
    digest: str = ""  # of the merged settings, not of the files' bytes
    sources: tuple[str, ...] = ()  # the file names read, in the order of merging

    @property
    def verifies(self) -> bool:
        """Return whether a push is refused with commits that bypassed their gates."""
        return any(hook.verify for hook in self.hooks)


class Counted(Record):
    """The configuration that applies to something; None: it has none."""

    config: Config | None
    note: str = ""  # for people, if the working tree has another one


class Problem(Record):
    """One thing wrong with the configuration: where, what, and what to do."""

    location: str
    message: str
    hint: str = ""
    deferred: bool = False  # only the hook that reaches this place is refused


class Step(Record):
    """One gate of a plan."""

    gate: Gate
    paths: tuple[str, ...] = ()  # those that match; empty if the gate takes none
    skip: str = ""  # why it does not run
    fault: str = ""  # why it cannot be run at all: this stops the run when it is reached
    note: str = ""  # a wish that was not granted
    after: tuple[str, ...] = ()  # listed gates that it waits for, with what they lead to
    quarantine: str = ""  # what to add if it fails: until when that only warns, or did


class Plan(Record):
    """Which gates an event runs, on which paths, and why each other one is skipped."""

    event: Event
    hook: Hook
    listed: tuple[str, ...]  # in the order of running; chained gates are only in `steps`
    steps: tuple[Step, ...]  # every gate that can be reached, listed ones first
    config_digest: str = ""


class Ending(Record):
    """How one process ended: exit status or signal, and why it was ended."""

    exit_status: int | None = None
    signal: int | None = None
    timed_out: bool = False
    ended_by_us: bool = False  # because we were interrupted, or the run was stopped
    not_started: str = ""  # why it never ran


class ResultOrigin(Record):
    """Where a result comes from, other than a run here and now."""

    reused: str = ""  # the run that a reused pass is from: when, and in which hook
    shared: str = ""  # keys of the pass that mean the same on any machine, between spaces
    maker: str | None = None  # of the pass, as in a Proof; None: whoever runs this
    where: str = ""  # the server that it ran on; empty: here
    action_digest: str = ""  # what ran there, as the server tells it apart: a digest
    remote_failure: str = ""  # why it could not run on a server, and has run here


class Findings(Record):
    """What was read in a gate's output, and compared."""

    failures: tuple[Failure, ...] = ()  # if `failures` tells them apart
    accepted: tuple[str, ...] = ()  # fingerprints of failures that do not count
    excused: str = ""  # why the result does not count, though it is no pass
    metrics: Mapping[str, float] = {}


class GateResult(Record):
    """How one gate ended."""

    gate: str
    status: Status
    exit_status: int | None = None
    signal: int | None = None
    duration_s: float = 0.0
    waited_s: float = 0.0  # before it, for slots or resources
    output: bytes = b""  # head and tail, the gap marked
    dropped_bytes: int = 0
    log_abs: str = ""  # all of the output; empty if there was none
    changed_paths: tuple[str, ...] = ()
    restaged_paths: tuple[str, ...] = ()  # of them; the rest is not in the commit
    reason: str = ""  # why, if the status alone does not say
    findings: Findings = Findings()
    origin: ResultOrigin = ResultOrigin()

    def with_findings(self, **fields: Any) -> GateResult:  # noqa: ANN401 - of any field
        """Return the result with other findings."""
        return self._replace(findings=self.findings._replace(**fields))

    def from_origin(self, **fields: Any) -> GateResult:  # noqa: ANN401 - of any field
        """Return the result with another origin."""
        return self._replace(origin=self.origin._replace(**fields))


class Visit(Record):
    """One gate of a walk: its result, and the effect of its action."""

    result: GateResult
    verdict: Level
    action: Action
    called_by: str = ""  # the gate whose action led here
    rescued_by: str = ""  # the gate that its on_fail chain ended well with
    would: Action = ""  # of a gate that only observes: the action that it was kept from


class Decision(Record):
    """What all results mean together."""

    verdict: Level
    decided_by: str = ""  # the name of a gate
    reason: str = ""  # for a person, one line
    visits: tuple[Visit, ...] = ()  # in the order in which the walk met them
    not_run: tuple[str, ...] = ()  # listed gates that did not get their turn
    results: tuple[tuple[tuple[str, int], GateResult], ...] = ()  # what a run goes on from
    notes: tuple[str, ...] = ()
    run_abs: str = ""  # the folder of the run; if nothing was written it is not there


class Command(Record):
    """One process to start: everything decided, nothing started."""

    argv: tuple[str, ...]
    cwd_abs: str
    env: Mapping[str, str]
    stdin_abs: str = ""  # a file to read from; empty: nothing to read
    shell: bool = False  # then exit statuses 126 and 127 mean what sh means by them
