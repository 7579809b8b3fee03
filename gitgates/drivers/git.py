"""Handle a hook of git or of the pre-commit framework, or one that a person runs.

Only `judgements_of` decides, for each event, which configuration applies and where gates run. A
commit is judged by the configuration in its index, a push by that of each pushed commit, and
anything else by the working tree's; local settings apply on top. If the working tree differs from
what is judged, gates run in a private checkout, or its unstaged changes are hidden.

`handle` asks the policies that need the event, and turns their answers into one decision. There is
no session and no journal. A git hook fails closed: an error in a policy refuses the commit, once
the others were asked. One policy is here: the gates themselves.
"""

from __future__ import annotations

import os
import time

from gitgates.config import LOCAL_FILE, OWN_FILE, PYPROJECT
from gitgates.config.load import SettingsFiles, config_of, leads_on, load, settings_here
from gitgates.core.environ import skipped_gates
from gitgates.core.errors import ConfigError, GitError, GitgatesError
from gitgates.core.lifecycle import HOOK_POINTS, OF_A_COMMIT
from gitgates.core.policy import ask, is_provided, policies_at
from gitgates.core.record import Record
from gitgates.core.types import (
    ALLOW,
    AS_COMMITTED,
    AS_IS,
    BLOCK,
    CHECKED_OUT,
    HIDDEN,
    Config,
    Counted,
    Decision,
    Event,
    Hook,
    Plan,
    Verdict,
)
from gitgates.engine.plan.command import is_running_here
from gitgates.engine.plan.plan import (
    RUN_BY_FRAMEWORK,
    describe_refs,
    find_hook,
    has_types,
    join_decisions,
    joined_plan,
    make_plan,
    matches_deleted,
    record_skips,
    split_push,
    takes_paths,
    wants_paths,
    without_content,
)
from gitgates.engine.plan.walk import BEFORE_A_COMMIT
from gitgates.engine.run.job import RunOptions
from gitgates.engine.run.run import run_plan
from gitgates.git.index import (
    committed_tree,
    full_status,
    has_exactly,
    named_index,
    names_ending,
)
from gitgates.hosts import is_called_by_agent
from gitgates.store.files import read_or_empty
from gitgates.worktree.isolate import recover_and_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Gate, GateResult, Place, Visit
    from gitgates.engine.plan.listener import Listener
    from gitgates.git.repo import Repo

SIGNED = "signed_passes"  # provided if what gates have passed is signed for other machines
_LOCK_TRIES, _POLL_S = 20, 0.05
_SHORT = 7
_NO_CONFIGURATION = "no [tool.gitgates] found; nothing was checked (gitgates init adds it)"


class JudgedContent(Record):
    """Content that is judged, and where."""

    event: Event  # of its refs alone
    place: Place = AS_IS
    commit: str = ""  # that is pushed; empty: the index being committed, or the working tree
    why: str = ""  # why in a checkout, if nobody would expect that


class Judgement(Record):
    """What one configuration judges."""

    event: Event
    config: Config | None  # None: there is none
    contents: tuple[JudgedContent, ...]


class HookCall:
    """The context of an event without a session: plan, decision, notes.

    Without a plan nothing had to run, and `note` may say why. `config` is the plan's.
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
        self.contents: tuple[JudgedContent, ...] = (JudgedContent(event),)
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
        self.errors: list[Exception] = []  # of policies; the first is raised in the end

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
        self.config, self.hook = config, hook_of(config, self.event.name, self.only)

    def judge(self, judgement: Judgement) -> None:
        """Ask the policies about what one configuration judges, after what others have said."""
        self.event, self.contents = judgement.event, judgement.contents
        self.configure(judgement.config or Config())
        if judgement.config is None:
            self.note = judgement.event.note or _NO_CONFIGURATION
            return
        others = self.decision, self.plan
        self.decision = self.plan = None
        self.conclude(self.ask_policies(self.failed))
        self._join(*others)

    def ask_policies(
        self,
        failed: Callable[[str, Exception], Verdict],
        on_verdict: Callable[[str, Verdict, Verdict], None] | None = None,
    ) -> Verdict:
        """Ask the policies that need the event, in order."""
        policies = [(row.name, module) for row, module, _ in policies_at(self.config, self.kind)]
        return ask(self, policies, failed, on_verdict)

    def _join(self, decision: Decision | None, plan: Plan | None) -> None:
        if decision and self.decision:
            self.decision = join_decisions((decision, self.decision))
        if plan and self.plan:
            self.plan = joined_plan(plan, self.plan)
        self.decision, self.plan = self.decision or decision, self.plan or plan

    def failed(self, name: str, error: Exception) -> Verdict:
        """Record a policy's error."""
        if self.errors:
            self.say(f"{name}: {error}")
        self.errors.append(error)
        return Verdict()

    def conclude(self, verdict: Verdict) -> None:
        """Merge all policies' verdict into the decision about the gates."""
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
    earlier: Mapping[tuple[str, int], GateResult] | None = None,
) -> HookCall:
    """Handle an event as its repository's configuration says.

    `only`: these gates run, in place of those of the hook. `skips`: these are skipped, beside
    those that the environment names. `earlier`: results that count as they are.

    Raises: GitgatesError if the event cannot be handled at all, because of problems in the
    configuration, for example. What policies raise is in `errors`.
    """
    call = HookCall(event, repo, listener, only, skips=skips)
    if earlier:
        call.options = call.options._replace(earlier=earlier)
    if is_running_here(repo.env, repo.git_dir_abs, event.name):
        call.note = f"{event.name} is already running; not run again recursively"
        return call
    recover_and_report(repo, listener.message)
    if call.kind == "before-push" and not event.refs and event.host != "manual":
        return call  # nothing is pushed
    for judgement in judgements_of(event, repo, only):
        call.judge(judgement)
        if call.is_refused and call.hook.strategy == "sequence":
            break
    # Git sets GIT_INDEX_FILE, also if the framework runs us; other clients need not.
    if call.kind == "before-commit" and (event.host == "git" or "GIT_INDEX_FILE" in call.env):
        _record_commit(call)
    return call


def judgements_of(event: Event, repo: Repo, only: tuple[str, ...] = ()) -> tuple[Judgement, ...]:
    """Return what an event is about, by each configuration that applies. `only`: as in `hook_of`.

    Raises: ConfigError with every problem that is not deferred; GitError.
    """
    if event.host == "git" and event.name in OF_A_COMMIT:
        return (_of_index(event, repo, only),)
    if event.refs:
        return _of_push(event, repo, only)
    return (Judgement(event, load(event.root_abs, repo.config_cache_abs), (JudgedContent(event),)),)


def hook_of(config: Config | None, name: str, only: tuple[str, ...] = ()) -> Hook:
    """Return a hook as configured. `only`: these gates run, in place of its own."""
    hook = (config and find_hook(config, name)) or Hook(name=name)
    return hook._replace(gates=only) if only else hook


def _of_index(event: Event, repo: Repo, only: tuple[str, ...]) -> Judgement:
    _refuse_unnamed_index(repo)
    config, note = _staged_config(repo)
    event = _noted(event, note)
    hook = hook_of(config, event.name, only)
    if event.name not in BEFORE_A_COMMIT or hook.unstaged == "keep" or not config:
        return Judgement(event, config, (JudgedContent(event),))
    if hook.unstaged == "checkout":
        return Judgement(event, config, (JudgedContent(event, CHECKED_OUT),))
    content = JudgedContent(event, HIDDEN)
    if wants_paths(config, hook):
        from gitgates.git.paths import HIDES, not_checked_out, with_paths  # only then

        content = content._replace(event=with_paths(event, repo))
        if absent := not_checked_out(repo, content.event.paths or ()):
            why = f"{HIDES}`{absent[0]}`, which is part of the commit"
            content = content._replace(place=CHECKED_OUT, why=why)
    return Judgement(content.event, config, (content,))


def _of_push(event: Event, repo: Repo, only: tuple[str, ...]) -> tuple[Judgement, ...]:
    # Not needed before a commit.
    from gitgates.git.paths import HIDES, UNCOMMITTED, difference, differs_unstaged, pushed_commits

    commits = pushed_commits(repo, event.refs)
    event = event._replace(refs=tuple(ref for ref in event.refs if commits.get(ref.local_id)))
    if not event.refs:  # deletions, tags of trees: there is no content
        config = load(event.root_abs, repo.config_cache_abs)
        return (Judgement(event, config, (JudgedContent(event),)),)
    parts = split_push(event, commits)
    whys = {commit: difference(repo, commit) for commit, _part in parts}
    configs = _pushed_configs(repo, parts, whys)
    judgements: dict[str, Judgement] = {}
    for commit, part in parts:
        config, note = configs[commit]
        place: Place = CHECKED_OUT if whys[commit] else AS_COMMITTED
        why = whys[commit] if whys[commit].startswith(HIDES) else ""
        unstaged = hook_of(config, event.name, only).unstaged
        # By hiding unstaged changes, the working tree becomes what is pushed.
        if unstaged == "hide" and whys[commit] == UNCOMMITTED and differs_unstaged(repo):
            place = HIDDEN
        content = JudgedContent(_noted(part, note), place, commit, why)
        key = config.digest if config else ""
        first = Judgement(_noted(event._replace(refs=()), note), config, ())
        judgement = judgements.get(key, first)
        judgements[key] = judgement._replace(
            event=judgement.event._replace(refs=(*judgement.event.refs, *part.refs)),
            contents=(*judgement.contents, content),
        )
    return tuple(
        # The working tree alone is judged if its hook says so.
        judgement._replace(contents=(JudgedContent(judgement.event),))
        if hook_of(judgement.config, event.name, only).unstaged == "keep"
        else judgement
        for judgement in judgements.values()
    )


def _pushed_configs(
    repo: Repo, parts: Sequence[tuple[str, Event]], whys: Mapping[str, str]
) -> dict[str, Counted]:
    """Return commit → its configuration. `whys`: commit → why the working tree is not like it."""
    names = {
        commit: f"in the pushed commit {commit[:_SHORT]} ({describe_refs(part)})"
        for commit, part in parts
    }
    elsewhere = {commit: names[commit] for commit, why in whys.items() if why}
    configs: dict[str, Counted] = {}
    if elsewhere:
        from gitgates.git.settings import counted_in  # most push what is here

        configs = counted_in(repo, repo.as_stored.git, elsewhere, _settings_of(repo))
    for commit in names.keys() - elsewhere.keys():
        configs[commit] = _staged_config(repo, names[commit])
    return configs


def _refuse_unnamed_index(repo: Repo) -> None:
    """Raise GitError if git commits from an index that it has not told us."""
    lock_abs = f"{repo.git_dir_abs}/index.lock"
    for _ in range(_LOCK_TRIES):  # git may hold it for a moment, to write what it has found out
        if "GIT_INDEX_FILE" in repo.env or not os.path.exists(lock_abs):
            return
        time.sleep(_POLL_S)
    message = f"GIT_INDEX_FILE is not set, and git holds {lock_abs}"
    hint = (
        "So it is not known what is being committed (`git commit -a`, or another git command), and "
        "nothing was checked. Whatever starts this hook has to pass that variable of git on."
    )
    raise GitError(message, hint)


def _staged_config(repo: Repo, place: str = "") -> Counted:
    """Return the configuration in the index being committed. `place`: where it is, for people.

    Raises: ConfigError, which says so if it is not that of the working tree; GitError.
    """
    files = _settings_of(repo)
    index_abs, _is_other = named_index(repo)
    if files and _is_in(read_or_empty(index_abs), files):
        return Counted(config_of(files, repo.config_cache_abs))
    # Cold: only if it is another one, or the index does not show that it is the same.
    from gitgates.git.settings import counted_in_index

    return counted_in_index(repo, files, place)


def _settings_of(repo: Repo) -> SettingsFiles | None:
    """Return the settings files of the working tree; None if they cannot be read."""
    try:
        return settings_here(repo.root_abs, repo.config_cache_abs)
    except ConfigError:  # of one that does not count, or else it is met again
        return None


def _is_in(index: bytes, files: SettingsFiles) -> bool:
    """Return whether the index has the settings files of the working tree, as far as it tells."""
    shared = {path: content for path, content in files.raw.items() if path != LOCAL_FILE}
    if not has_exactly(index, shared):
        return False
    if not leads_on(files.raw):
        return True
    from gitgates.config.folders import expand, names_in  # most have one file

    names = [names_ending(index, name) for name in (PYPROJECT, OWN_FILE)]
    if not files.config or None in names:
        return False
    others = {path for some in names for path in some or () if path not in shared}
    folders = expand(files.config.members, lambda folder: names_in(folder, others))
    return not {os.path.dirname(path) for path in others} & {*folders}


def _noted(event: Event, note: str) -> Event:
    return event._replace(note="; ".join(filter(None, (event.note, note))))


# How gates have ended, for `gitgates verify` and for other machines.


def record(
    call: HookCall, visits: tuple[Visit, ...], tree: str, base: str, *, saw_more: bool = False
) -> None:
    """Record how gates have ended on a tree, which a decision lets be committed.

    `base` is the commit that paths were compared with. `saw_more`: not that tree alone.
    `unmatched` by any path differs from `skipped` by a person. How hooks end that pre-commit
    runs itself is not known yet: they are `skipped`, too.

    Raises: OSError if it cannot be written.
    """
    from gitgates.store.proofs import Sharing, append, proof_of  # other hooks record nothing

    now, gates = time.time(), _gates(call)
    results = {visit.result.gate: visit.result for visit in visits}
    ends = dict(results)
    for visit in reversed(visits):  # a gate has looked if the one that it leads to has
        if visit.called_by and ends[visit.result.gate].status == "unchecked":
            ends[visit.called_by] = ends[visit.result.gate]
    sharing: dict[str, Sharing] = {}
    if is_provided(call.config, SIGNED):
        from gitgates.engine.reuse.signed_keys import maker_of  # only if proofs are signed

        maker = maker_of(call.event, call.env)
        # What a gate has changed is in the commit, and others may have run before.
        saw_more |= any(result.changed_paths for result in results.values())
        for name, result in results.items():
            sharing[name] = Sharing(
                result.origin.shared,
                # Who signs has not run what a server ran.
                "" if saw_more or result.origin.action_digest else "1",
                maker if result.origin.maker is None else result.origin.maker,
            )
    proofs = [
        proof_of(
            gates[name],
            result,
            sharing=sharing.get(name, Sharing()),
            status=ends[name].status if name in call.skips else _end(ends[name]),
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


def _record_commit(call: HookCall) -> None:
    """Record which gates let this commit pass."""
    decision, repo = call.decision, call.repo
    if not decision or decision.verdict >= BLOCK or call.errors:
        return
    try:
        tree = committed_tree(repo)
        record(call, decision.visits, tree, repo.head, saw_more=_saw_more(call))
    except (GitError, OSError) as error:
        from gitgates.store.owners import denied  # only if something is wrong

        not_ours = denied(error)
        if call.config.verifies or not_ours:
            why = not_ours or error
            call.say(f"the results were not recorded for `gitgates verify`: {why}")


def _record_push(call: HookCall, content: JudgedContent, decision: Decision) -> None:
    """Record the gates that have run on the tree of a pushed commit, if they are signed."""
    if not is_provided(call.config, SIGNED):
        return
    from gitgates.git.paths import pushed  # only if proofs are signed

    git, gates = call.repo.git, _gates(call)
    remote = call.event.argv[0] if call.event.argv else ""
    try:
        tree = git.resolve(f"{content.commit}^{{tree}}")
        revisions = pushed(content.event.refs, remote, git)
        listing = git.ask("rev-list", "--boundary", *revisions).stdout if revisions else b""
        edges = [line[1:] for line in listing.decode().split() if line.startswith("-")]
        # With one commit below all that is pushed, or none, the paths are what differs from that.
        visits = tuple(
            visit
            for visit in decision.visits
            if not edges[1:] or not takes_paths(gates[visit.result.gate])
        )
        if tree and visits:
            # Untracked files are seen if the rest is hidden.
            base = edges[0] if edges else ""
            record(call, visits, tree, base, saw_more=content.place == HIDDEN)
    except (GitgatesError, OSError) as error:
        call.say(f"the results were not recorded for others: {error}")


def _gates(call: HookCall) -> dict[str, Gate]:
    return {step.gate.name: step.gate for step in call.plan.steps} if call.plan else {}


def _saw_more(call: HookCall) -> bool:
    """Return whether gates saw files that are not in the commit, if others will believe them."""
    place = call.contents[0].place
    if place == CHECKED_OUT or not is_provided(call.config, SIGNED):
        return False
    from gitgates.git.paths import unwatched  # only if proofs are signed

    lines, is_whole = full_status(call.repo.git, "--porcelain=v2", "--untracked-files=normal")
    return bool(not is_whole or unwatched(call.repo.git)) or any(
        line[:1] == b"?" or (line[3:4] not in b"." and (place == AS_IS or line[5:6] == b"S"))
        for line in lines
    )


def _end(result: GateResult) -> str:
    if result.findings.excused:
        return "accepted"  # a baseline has its failures
    is_unmatched = result.status == "skipped" and result.reason != RUN_BY_FRAMEWORK
    return "unmatched" if is_unmatched else result.status


# The policy that runs the gates.


def decide(call: HookCall, so_far: Verdict) -> Verdict:
    """Run the hook's gates on all content that is judged, one commit after the other."""
    if not call.hook.gates or call.is_dry:
        return so_far
    decisions: list[Decision] = []
    for content in call.contents[:1] if call.is_once else call.contents:
        decisions.append(_run_gates(call, content))
        is_passed = decisions[-1].verdict < BLOCK
        if is_passed and content.commit:
            _record_push(call, content, decisions[-1])
        if not is_passed and call.hook.strategy == "sequence":
            break
    call.decision = join_decisions(tuple(decisions))
    return so_far.joined(Verdict(call.decision.verdict))


def _run_gates(call: HookCall, content: JudgedContent) -> Decision:
    if content.place != CHECKED_OUT:
        return _run_here(call, content.event, content.place)
    refs = describe_refs(content.event)
    what = f"is pushed to {refs}" if content.commit else "is being committed"
    if content.commit or content.why:
        why = f": {content.why}" if content.why else ""
        call.say(f"checking what {what} in a private checkout{why}")
    decision = run_in_checkout(call, content.event, content.commit)
    if decision.verdict >= BLOCK:
        from gitgates.worktree.setup import setup_hints  # nothing is missing in most

        for hint in setup_hints(call.repo, call.config, content.event.name):
            call.say(hint)
    return decision


def _plan(call: HookCall, event: Event, place: Place) -> Plan:
    call.plan = plan_event(call, event, place)
    record_skips(call.plan, call.repo, call.skips)
    return call.plan


def _run_here(call: HookCall, event: Event, place: Place) -> Decision:
    """Check the working tree."""

    def plan_again() -> Plan:
        call.plan = plan_event(call, event, place)
        return call.plan

    options = call.options._replace(place=place, plan_again=plan_again)
    plan = _plan(call, event, place)
    if event.name == "pre-push" and event.host == "git" and not event.refs:
        plan = call.plan = without_content(plan)
    return run_plan(plan, call.config, call.repo, call.listener, options=options)


def run_in_checkout(call: HookCall, event: Event, tip: str = "") -> Decision:
    """Check a commit, or without one the index being committed, in a private checkout."""
    # Cold: only if something else than the working tree must be checked.
    from gitgates.git.checkout import tree_of_index
    from gitgates.worktree.checkouts import check_out
    from gitgates.worktree.setup import worktree_settings

    repo, settings = call.repo, worktree_settings(call.config)
    plan = _plan(call, event, CHECKED_OUT)
    treeish = tip or tree_of_index(repo, named_index(repo)[0])
    with check_out(repo, treeish, settings, call.say) as checkout:
        for note in checkout.notes:
            call.say(note)
        if has_types(plan):  # those of the files there
            files_abs = checkout.repo.root_abs
            plan = call.plan = plan_event(call, event._replace(files_abs=files_abs), CHECKED_OUT)
        options = call.options._replace(checkout=checkout.repo, place=CHECKED_OUT)
        return run_plan(plan, call.config, repo, call.listener, options=options)


def plan_event(call: HookCall, event: Event, place: Place) -> Plan:
    """Return the plan of an event; git is asked for paths if a gate needs them."""
    config, hook, repo = call.config, call.hook, call.repo
    is_named = HOOK_POINTS[event.name].scope in ("staged", "pushed")
    # If unstaged work is hidden, git is asked for the staged paths as well.
    is_needed = wants_paths(config, hook) or (is_named and place != HIDDEN)
    if event.paths is None and is_needed:
        from gitgates.git.paths import with_paths  # only if a gate is about paths

        event = with_paths(event, repo)
    plan = make_plan(config, hook, event, call.skips)
    is_framework = event.host == "pre-commit" and is_named
    if is_framework and any(step.skip and matches_deleted(step.gate) for step in plan.steps):
        # The framework does not name deleted files; git is asked only if that may matter.
        from gitgates.git.paths import with_paths

        deleted = with_paths(event, repo).deleted
        plan = make_plan(config, hook, event._replace(deleted=deleted), call.skips)
    return plan
