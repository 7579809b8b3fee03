"""Handle a hook of git, of the pre-commit framework, or one that a person runs.

`handle` reads the configuration, asks the policies that need the event, and puts what they say into
one decision. There is no session and no journal. A hook of git fails closed: what goes wrong in a
policy refuses the commit, once the others were asked.
"""

from __future__ import annotations

import time

from gitgates.config import FILES
from gitgates.config.load import checked, load, read_files, settings_among
from gitgates.core.environ import skipped_gates
from gitgates.core.errors import GitError
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.policy import ask, is_lent, policies_at
from gitgates.core.types import ALLOW, BLOCK, Config, Decision, Event, Hook, Plan, Verdict
from gitgates.engine.command import is_running_here
from gitgates.engine.plan import RUN_BY_FRAMEWORK, choose_view, find_hook
from gitgates.engine.run import RunOptions
from gitgates.engine.walk import BEFORE_A_COMMIT
from gitgates.git.index import committed_tree
from gitgates.git.repo import nul_split
from gitgates.hosts import is_called_by_agent
from gitgates.worktree.isolate import recover_and_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.core.lifecycle import EventKind
    from gitgates.core.policy import PolicyModule
    from gitgates.core.types import GateResult
    from gitgates.engine.listener import Listener
    from gitgates.git.repo import Git, Repo

SIGNED = "signed_passes"  # lent where what gates have passed is signed for other machines


class HookCall:
    """The context of an event without a session: plan, decision, notes.

    Without a plan nothing had to run, and `note` may say why. `config` is what the plan is from.
    """

    def __init__(
        self,
        event: Event,
        repo: Repo,
        listener: Listener,
        only: tuple[str, ...],
        *,
        skips: tuple[str, ...] = (),
    ) -> None:
        point = HOOK_POINTS[event.name]
        # An agent's hook that is run by hand is no event of an agent.
        self.kind: EventKind = "other" if point.host == "agent" else point.kind
        self.event, self.repo, self.env = event, repo, repo.env
        self.listener, self.say = listener, listener.message
        self.is_dry = False  # a verb asks, and no event: no gate runs
        self.is_once = False  # a push is checked once, by its first commit, and not for each
        self.only = only  # these gates run, in place of those of the hook
        # Gate → what asks to skip it.
        self.skips = {**skipped_gates(repo.env), **dict.fromkeys(skips, "--skip")}
        is_urgent = not is_called_by_agent(repo.env)
        self.options = RunOptions(began_ns=time.time_ns(), is_urgent=is_urgent)
        self.config = Config()
        self.hook = Hook(name=event.name)
        self.plan: Plan | None = None
        self.decision: Decision | None = None
        self.note = ""
        self.errors: list[Exception] = []  # of policies; the first is to be raised in the end

    @property
    def has_results(self) -> bool:
        """Whether there are results to save: something did not pass."""
        if self.decision is None:
            return False
        ends = {visit.result.status for visit in self.decision.visits}
        return self.decision.verdict != ALLOW or not ends <= {"passed", "skipped"}

    @property
    def is_refused(self) -> bool:
        """Whether gates have refused it already."""
        return self.decision is not None and self.decision.verdict >= BLOCK

    def configure(self, config: Config) -> None:
        """Set the hook from a configuration."""
        hook = find_hook(config, self.event.name) or Hook(name=self.event.name)
        self.config, self.hook = config, hook._replace(gates=self.only) if self.only else hook

    def failed(self, name: str, error: Exception) -> Verdict:
        """Record the error of a policy."""
        if self.errors:
            self.say(f"{name}: {error}")
        self.errors.append(error)
        return Verdict()

    def conclude(self, verdict: Verdict) -> None:
        """Merge the verdict of all policies into the decision about the gates."""
        texts = (verdict.to_agent, verdict.to_person)
        lines = tuple(line for text in texts for line in text.split("\n") if line)
        decision = self.decision or Decision(verdict=ALLOW)
        if verdict.level > decision.verdict:
            self.decision = decision._replace(verdict=verdict.level, reason=" ".join(lines))
        elif lines:
            self.decision = decision._replace(notes=(*decision.notes, *lines))
        if self.decision and not self.plan:
            self.plan = Plan(event=self.event, hook=self.hook, listed=(), steps=())


def handle(
    event: Event,
    repo: Repo,
    listener: Listener,
    only: tuple[str, ...] = (),
    *,
    skips: tuple[str, ...] = (),
) -> HookCall:
    """Handle an event as the configuration of its repository says.

    `only`: these gates run, in place of those of the hook. `skips`: these are to be skipped, beside
    those that the environment names.

    Raises: GitgatesError where the event cannot be handled at all, because of problems in the
    configuration, for example. What policies raise is in `errors`.
    """
    call = HookCall(event, repo, listener, only, skips=skips)
    if is_running_here(repo.env, repo.git_dir_abs, event.name):
        call.note = f"{event.name} is already running; not run again recursively"
        return call
    recover_and_report(repo, listener.message)
    config = load(event.root_abs, repo.config_cache_abs)
    call.configure(config or Config())
    if event.host == "git" and event.name in BEFORE_A_COMMIT and not call.hook.gates:
        # Taken away in an edit that is not part of the commit, gates are still asked for by it.
        config = committed_config(repo.git, config or Config()) or config
        call.configure(config or Config())
    if config is None:
        call.note = "no [tool.gitgates] found; nothing was checked (gitgates init adds it)"
    elif call.kind != "before-push" or event.refs or event.host == "manual":  # something is pushed
        policies = _policies_at(config, call.kind)
        call.conclude(ask(call, policies, call.failed))
        if call.config is not config and not call.is_refused:  # it was edited, and not staged
            more = [
                policy for policy in _policies_at(call.config, call.kind) if policy not in policies
            ]
            call.conclude(ask(call, more, call.failed))
    # Git sets GIT_INDEX_FILE, also where the framework runs us; other clients need not.
    if call.kind == "before-commit" and (event.host == "git" or "GIT_INDEX_FILE" in call.env):
        _record(call)
    return call


def _policies_at(config: Config, kind: EventKind) -> list[tuple[str, PolicyModule]]:
    return [(row.name, module) for row, module, _needs in policies_at(config, kind)]


def _record(call: HookCall) -> None:
    """Record which gates let this commit pass, for `gitgates verify`.

    Where that cannot be written, no commit is refused: its gates will be missing there.
    """
    decision, repo = call.decision, call.repo
    if not decision or decision.verdict >= BLOCK or call.errors:
        return
    try:
        record(call, committed_tree(repo), repo.head, saw_more=_saw_more(call))
    except (GitError, OSError) as error:
        from gitgates.store.owners import denied  # only where something is wrong

        not_ours = denied(error)
        if call.config.verifies or not_ours:
            why = not_ours or error
            call.say(f"the results were not recorded for `gitgates verify`: {why}")


def _saw_more(call: HookCall) -> bool:
    """Return whether gates saw files that are not in the commit, if others are to believe them."""
    view = choose_view(call.event, call.hook)
    if view == "checkout" or not is_lent(call.config, SIGNED):
        return False
    status = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal")
    entries = nul_split(call.repo.git.out_of_files(*status))
    return any(entry[1] == "?" or (view == "keep" and entry[1] != " ") for entry in entries)


def record(call: HookCall, tree: str, base: str, *, saw_more: bool = False) -> None:
    """Record how the gates of a call have ended on a tree, which it lets be committed.

    `base` is the commit that paths were compared with. `saw_more`: not that tree alone. `unmatched`
    by any path differs from `skipped` by a person. How hooks end that pre-commit runs itself is not
    known yet: they are `skipped`, too.

    Raises: OSError where it cannot be written.
    """
    if not (call.decision and call.plan):
        return
    from gitgates.store.proofs import append, proof_of  # other hooks record nothing

    now, by_person = time.time(), call.skips
    gates = {step.gate.name: step.gate for step in call.plan.steps}
    visits = call.decision.visits
    results = {visit.result.gate: visit.result for visit in visits}
    ends = dict(results)
    for visit in reversed(visits):  # a gate has looked if the one that it leads to has
        if visit.called_by and ends[visit.result.gate].status == "unchecked":
            ends[visit.called_by] = ends[visit.result.gate]
    # What a gate has changed is in the commit, and others may have run before.
    saw_more |= any(visit.result.changed_paths for visit in visits)
    more = _for_others(call, results, saw_more=saw_more) if is_lent(call.config, SIGNED) else {}
    proofs = [
        proof_of(
            gates[name],
            result,
            **more.get(name, {}),
            status=ends[name].status if name in by_person else _end(ends[name]),
            time_s=now,
            content=tree,
            hook=call.event.name,
            root_abs=call.repo.root_abs,
            base=base,
            config=call.config.digest,
        )
        for name, result in results.items()
    ]
    append(call.repo.shared_state_abs, proofs)


def _for_others(
    call: HookCall, results: Mapping[str, GateResult], *, saw_more: bool
) -> dict[str, dict[str, str]]:
    """Return gate → what is recorded of its end for other machines."""
    from gitgates.engine.signed_keys import maker_of  # only where proofs are signed

    maker = maker_of(call.event, call.env)
    return {
        name: {
            "shared": result.shared,
            # Who signs has not run what a server ran.
            "exact": "" if saw_more or result.action_digest else "1",
            "maker": maker if result.maker is None else result.maker,
        }
        for name, result in results.items()
    }


def _end(result: GateResult) -> str:
    if result.excused:
        return "accepted"  # a baseline has its failures
    is_unmatched = result.status == "skipped" and result.reason != RUN_BY_FRAMEWORK
    return "unmatched" if is_unmatched else result.status


def committed_config(git: Git, config: Config) -> Config | None:
    """Return the configuration that is being committed, if it is not `config`, the working tree's.

    Raises: ConfigError where that has problems.
    """
    diff = ("diff", "--name-only", "-z", "--no-ext-diff", "--no-relative", "--")
    files = () if config.members else (*FILES, *config.sources)
    changed = settings_among(nul_split(git.out_of_files(*diff, *files)), config)
    if not changed:
        return None
    if not changed.isdisjoint(FILES):  # they may lead to others now
        changed |= {*git.names(*diff)}
    staged = {
        name: blob.stdout
        for name in changed
        if name.endswith(".toml")
        and not (blob := git.ask("cat-file", "blob", f":{name}")).exit_status
    }
    return checked(read_files(git.cwd_abs, staged))
