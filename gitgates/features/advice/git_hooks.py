"""Run advice hooks without a session: at a git hook, or by hand."""

from __future__ import annotations

from gitgates.core.environ import skipped_gates
from gitgates.core.errors import StateError
from gitgates.core.lifecycle import kind_of
from gitgates.core.types import Verdict
from gitgates.drivers import git as git_hooks
from gitgates.engine.plan.listener import Listener
from gitgates.engine.plan.plan import join_decisions, joined_plan, make_plan
from gitgates.features.advice.items import advice_of, hooks_at, identify, records, with_hooks
from gitgates.hosts.git import decode_by_hand
from gitgates.journal.journal import fact_of
from gitgates.store.log import write_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config, Event, Plan
    from gitgates.features.advice.items import Advice, Identity
    from gitgates.git.repo import Repo

_HOOKS = {"before-commit": "pre-commit", "before-push": "pre-push"}


class AdviceCall(git_hooks.HookCall):
    """The context of an event whose gates are advice hooks."""

    def __init__(
        self,
        event: Event,
        repo: Repo,
        listener: Listener,
        *,
        trigger: str,
        who: Identity,
        folder: str = ".",
    ) -> None:
        super().__init__(event, repo, listener, ())
        self.trigger, self.who, self.folder = trigger, who, folder
        self.is_once = True
        self.hooks: list[Advice] = []

    def configure(self, config: Config) -> None:
        """Set the hook from a configuration's advice."""
        super().configure(config)
        self.hooks = hooks_at(advice_of(config), self.who, (self.trigger,))
        self.config = with_hooks(config, self.hook, self.hooks, self.folder)
        self.hook = self.config.hooks[-1]

    def run(self) -> None:
        """Run the hooks and record the results.

        Raises: GitgatesError if they cannot be run or recorded.
        """
        git_hooks.decide(self, Verdict())
        if not (self.decision and self.plan):
            return
        try:
            for entry in records(self.decision, self.hooks):
                write_ledger(self.repo.shared_state_abs, "advice", fact_of(entry))
        except OSError as error:
            folder_abs = self.repo.shared_state_abs
            what = f"{folder_abs}: advice cannot be recorded: {error.strerror}"
            raise StateError(what) from error


def decide_hook(call: git_hooks.HookCall) -> Verdict:
    """Run a git hook's advice beside its gates; return the verdict."""
    who = identify(call.env)
    advice_call = AdviceCall(call.event, call.repo, call.listener, trigger=call.kind, who=who)
    advice_call.options, advice_call.contents = call.options, call.contents
    advice_call.configure(call.config)
    if not advice_call.hooks or call.is_dry or call.only:
        return Verdict()
    advice_call.run()
    if advice_call.decision and advice_call.plan:
        decisions = (
            (call.decision, advice_call.decision) if call.decision else (advice_call.decision,)
        )
        call.decision = join_decisions(decisions)
        call.plan = joined_plan(call.plan, advice_call.plan) if call.plan else advice_call.plan
        return Verdict(advice_call.decision.verdict)
    return Verdict()


def plan_of(event: Event, repo: Repo, config: Config) -> Plan | None:
    """Return the plan for a git hook's advice; None if there is none."""
    advice_call = AdviceCall(
        event, repo, Listener(), trigger=kind_of(event.name), who=identify(repo.env)
    )
    advice_call.configure(config)
    skips = skipped_gates(repo.env)
    return (
        make_plan(advice_call.config, advice_call.hook, event, skips) if advice_call.hooks else None
    )


def run_by_hand(
    repo: Repo, config: Config, listener: Listener, *, trigger: str, who: Identity, folder: str
) -> AdviceCall:
    """Run a trigger's hooks in the current working tree.

    Raises: as `AdviceCall.run`.
    """
    hook = _HOOKS.get(trigger, "manual")
    event = decode_by_hand(hook, (), (), (repo.root_abs, repo.git_dir_abs))
    call = AdviceCall(event, repo, listener, trigger=trigger, who=who, folder=folder)
    call.configure(config)
    if call.hooks:
        call.run()
    return call
