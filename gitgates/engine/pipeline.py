"""Handle one event: configuration, plan, run, decision. The one place that calls them in order."""

from __future__ import annotations

import time

from gitgates.config.load import FILES, checked, load, read_files
from gitgates.engine.command import is_running_here, without_git
from gitgates.engine.plan import (
    choose_view,
    describe_refs,
    find_hook,
    join,
    make_plan,
    matches_deleted,
    split_push,
    wants_paths,
)
from gitgates.engine.run import RunOptions, run_plan
from gitgates.engine.walk import BEFORE_A_COMMIT
from gitgates.environ import skipped_gates
from gitgates.errors import StateError
from gitgates.git.index import named_index
from gitgates.lifecycle import HOOK_POINTS
from gitgates.record import Record
from gitgates.types import ALLOW, BLOCK, Config, Decision, Event, Hook, Plan
from gitgates.worktree.isolate import recover_and_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.engine.run import Listener
    from gitgates.git.repo import Git, Repo


class PipelineResult(Record):
    """What became of an event. Without a plan nothing had to run, and `note` may say why."""

    plan: Plan | None = None
    decision: Decision | None = None
    note: str = ""
    config: Config | None = None  # that the plan is from

    @property
    def has_results(self) -> bool:
        """Whether something did not pass, which is to be written down."""
        if self.decision is None:
            return False
        ends = {visit.result.status for visit in self.decision.visits}
        return self.decision.verdict != ALLOW or not ends <= {"passed", "skipped"}


def handle(
    event: Event, repo: Repo, listener: Listener, only: tuple[str, ...] = ()
) -> PipelineResult:
    """Handle an event as the configuration of its repository says.

    `only`: these gates run, in place of those of the hook.

    Raises: GitgatesError for each expected failure, configuration problems among them.
    """
    options = RunOptions(began_ns=time.time_ns())
    if is_running_here(repo.env, repo.git_dir_abs, event.name):
        return PipelineResult(
            note=f"{event.name} is running here already; not run again inside itself"
        )
    recover_and_report(repo, listener.said)
    config = load(event.root_abs, _cache(repo))
    hook = _hook_of(config, event, only)
    if event.host == "git" and event.name in BEFORE_A_COMMIT and not (hook and hook.gates):
        # Taken away in an edit that is not part of the commit, gates are still asked for by it.
        config = committed_config(repo.git) or config
        hook = _hook_of(config, event, only)
    if config is None:
        return PipelineResult(
            note="no [tool.gitgates] here; nothing was checked (gitgates init adds it)"
        )
    if hook is None or not hook.gates:
        return PipelineResult()
    if event.name == "pre-push" and not event.refs:
        return PipelineResult()  # nothing is pushed
    ran: list[tuple[Plan, Config]] = []

    def as_committed() -> tuple[Plan, Config]:
        shown = load(event.root_abs, _cache(repo)) or Config()
        named = _hook_of(shown, event, only) or Hook(name=event.name)
        note = "the configuration has changes that are not part of the commit; they do not count"
        told = event._replace(note="; ".join(filter(None, (event.note, note))))
        ran.append((plan_event(shown, named, told, repo), shown))
        return ran[0]

    pipeline = _Pipeline(config, hook, repo, listener)
    if choose_view(event, hook) != "checkout":
        options = options._replace(as_committed=as_committed)
        handled = pipeline.run_here(event, options)
        return handled._replace(plan=ran[0][0], config=ran[0][1]) if ran else handled
    if event.name == "pre-push":
        return pipeline.run_push(event, options)
    return pipeline.run_in_checkout(event, options)


def _hook_of(config: Config | None, event: Event, only: tuple[str, ...]) -> Hook | None:
    hook = find_hook(config, event.name) if config else None
    return (hook or Hook(name=event.name))._replace(gates=only) if config and only else hook


def _cache(repo: Repo) -> str:
    return f"{repo.state_abs}/config.marshal"


class _Pipeline:
    """From an event to its decision, with one configuration."""

    def __init__(self, config: Config, hook: Hook, repo: Repo, listener: Listener) -> None:
        self.config, self.hook = config, hook
        self.repo, self.listener = repo, listener

    def run_here(self, event: Event, options: RunOptions) -> PipelineResult:
        """Check the working tree."""
        plan = plan_event(self.config, self.hook, event, self.repo)
        record_skips(plan, self.repo)
        decision = run_plan(plan, self.config, self.repo, self.listener, options=options)
        return PipelineResult(plan=plan, decision=decision, config=self.config)

    def run_push(self, event: Event, options: RunOptions) -> PipelineResult:
        """Check each pushed commit: where the working tree is just that, there; else apart."""
        from gitgates.git.paths import is_as_committed  # not needed before a commit

        handled: list[PipelineResult] = []
        for tip, part in split_push(event):
            if not tip or is_as_committed(self.repo.git, tip):
                handled.append(self.run_here(part, options))
            else:
                refs = describe_refs(part)
                self.listener.said(f"checking what is pushed to {refs} in a private checkout")
                handled.append(self.run_in_checkout(part, options, tip))
            decision = handled[-1].decision
            if decision and decision.verdict >= BLOCK and self.hook.strategy == "sequence":
                break
        decisions = tuple(one.decision for one in handled if one.decision)
        return handled[-1]._replace(decision=join(decisions))

    def run_in_checkout(self, event: Event, options: RunOptions, tip: str = "") -> PipelineResult:
        """Check a commit, or without one the index being committed, in a private checkout."""
        # Cold: only where the working tree is not what is to be checked.
        from gitgates.git.checkout import check_out, check_out_index

        repo, link = self.repo, self.config.link
        plan = plan_event(self.config, self.hook, event, repo)
        record_skips(plan, repo)
        laid_out = (
            check_out(repo, tip, link=link)
            if tip
            else check_out_index(repo, named_index(repo)[0], link=link)
        )
        with laid_out as checkout:
            for note in checkout.notes:
                self.listener.said(note)
            there = checkout.repo._replace(env=without_git(repo.env))
            options = options._replace(checkout=there)
            decision = run_plan(plan, self.config, repo, self.listener, options=options)
            return PipelineResult(plan=plan, decision=decision, config=self.config)


def committed_config(git: Git) -> Config | None:
    """Return the configuration that is being committed, if it is not the working tree's.

    Raises: ConfigError where that has problems.
    """
    changed = git.names("diff", "--name-only", "-z", "--no-ext-diff", "--no-relative", "--", *FILES)
    if not changed:
        return None
    read = read_files(git.cwd_abs)
    staged = [git.ask("cat-file", "blob", f":{name}") for name in FILES]
    raw = tuple(
        done.stdout if name in changed and not done.exit_status else content
        for name, done, content in zip(FILES, staged, read, strict=True)
    )
    return checked(raw)


def plan_event(config: Config, hook: Hook, event: Event, repo: Repo) -> Plan:
    """Return the plan of an event, its paths asked from git where a gate wants them."""
    is_named = HOOK_POINTS[event.name].scope in ("staged", "pushed")
    # Where unstaged work is hidden, git tells what is staged as well.
    is_needed = wants_paths(config, hook) or (is_named and choose_view(event, hook) != "hide")
    if event.paths is None and is_needed:
        from gitgates.git.paths import with_paths  # only where a gate is about paths

        event = with_paths(event, repo)
    plan = make_plan(config, hook, event, skipped_gates(repo.env))
    is_framework = event.host == "pre-commit" and is_named
    if is_framework and any(step.skip and matches_deleted(step.gate) for step in plan.steps):
        # The framework does not name deleted files; git is asked only where that may matter.
        from gitgates.git.paths import with_paths

        gone = with_paths(event, repo).gone
        plan = make_plan(config, hook, event._replace(gone=gone), skipped_gates(repo.env))
    return plan


def record_skips(plan: Plan, repo: Repo) -> None:
    """Write to the ledger which gates a person left out of this run."""
    skips = skipped_gates(repo.env)
    skipped = [step.gate.name for step in plan.steps if step.skip and step.gate.name in skips]
    if not skipped:
        return
    from gitgates.store.log import write_ledger  # seldom needed, and it loads json

    fields = {"hook": plan.event.name, "gates": skipped, "by": skips[skipped[0]]}
    try:
        write_ledger(repo.shared_state_abs, "skip", {**fields, "root": plan.event.root_abs})
    except OSError as error:
        raise StateError(
            f"{repo.shared_state_abs}: a skip cannot be recorded: {error.strerror}",
            "Run without GITGATES_SKIP and SKIP, or make the folder writable.",
        ) from error
