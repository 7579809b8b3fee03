"""The gate `review`: require a review before an agent stops.

Reviews are recorded as they run (`marker`); at the end of work, `end.py` compares them with the
changes. `reviewer.py` has the strict form, and its reviewer.
"""

from __future__ import annotations

from gitgates.core.lifecycle import ENDINGS
from gitgates.core.types import BLOCK, STOP, WARN, Verdict
from gitgates.drivers.start import record_base
from gitgates.engine.plan.hooks import matches_agent
from gitgates.features.review.config import (
    asks_for_review,
    is_asked,
    is_review_on,
    review_needs,
    reviews,
    settings_of,
    weighting_of,
)
from gitgates.files.points import has_changed_since
from gitgates.hosts import DEFAULT_AGENT, agent_host
from gitgates.journal.entries import TIMELINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.core.types import Config
    from gitgates.drivers.call import Call
    from gitgates.git.repo import Repo


needs = review_needs
follows_writers = is_review_on


def rules(config: Config) -> str:
    """Return the review rules for a session's start."""
    if not (is_review_on(config) and is_asked(config)):
        return ""
    from gitgates.features.review.text import rules_of

    return rules_of(settings_of(config))


def person_verbs(call: Call) -> tuple[tuple[str, ...], ...]:
    """Return the verb that skips a review, if a reviewer must decide."""
    from gitgates.features.review.facts import is_strict

    return (("review", "skip"),) if is_strict(call) else ()


def guarded_files(call: Call) -> list[tuple[str, str]]:
    """Return the files of reviewing agents and skills."""
    host, review = agent_host(call.payload.host or DEFAULT_AGENT), settings_of(call.config)
    folders = host.folders_of(call.repo.root_abs, call.env)
    agents = dict.fromkeys((review.reviewer, *review.agents))
    paths = [path for name in agents for path in host.agent_files(_plain(name), folders)]
    paths += [path for name in review.skills for path in host.skill_files(_plain(name), folders)]
    return [("reviewer_files", path) for path in paths]


def weakened_between(repo: Repo, config: Config, before: str, after: str) -> str:
    """Return what weakens the checks between two trees, on one line; empty if nothing does."""
    from gitgates.features.review.weakened import find_weakened, in_one_line
    from gitgates.git.diff import Trees, file_differences

    if settings_of(config).weakened == "off":
        return ""
    trees = Trees(repo, before, after)
    return in_one_line(find_weakened(trees, file_differences(trees), weighting_of(config)))


def bars_landing(repo: Repo, config: Config, trees: Sequence[str]) -> str:
    """Return why a change may not land; empty: no review of it is missing.

    `trees`: before it landed, after it, and of the branch that made it.
    """
    review = settings_of(config)
    if review.weakened != "block" and review.mode != "require":
        return ""
    from gitgates.features.review.landed import LandedChange
    from gitgates.git.diff import Trees

    before, after, tip = trees
    return LandedChange(Trees(repo, before, after), config, tip).missing


def _plain(name: str) -> str:
    """Return a name without its plugin."""
    return name.rpartition(":")[2]


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Record reviews; at a turn's end, block an agent whose change was not reviewed."""
    if call.payload.kind == "before-tool":
        if call.payload.tool.kind not in ("shell", "ours"):
            return so_far
        from gitgates.drivers.shell_commands import name_caller  # other tools do not need it

        return name_caller(call, so_far)
    ran = _review_that_ran(call, so_far)
    if ran is not None:
        from gitgates.features.review.end import marker_now  # takes a snapshot

        entry = marker_now(call, *ran)
        so_far = so_far.joined(Verdict(entries=(entry,) if entry else ()))
    if call.payload.kind not in ENDINGS or not asks_for_review(call):
        return so_far
    if call.ends_work or call.payload.agent.mode == "plan":
        record_base(call)
    return _decide_end(call, so_far) if call.ends_work else so_far


def _review_that_ran(call: Call, so_far: Verdict) -> tuple[str, str] | None:
    """Return the kind and name of the review that an event shows; None if it shows none."""
    payload, review = call.payload, settings_of(call.config)
    is_skill = matches_agent(review.skills, payload.tool.skill)
    match payload.kind, payload.tool.kind:
        case "prompt-expansion", _ if is_skill:
            return "command", payload.tool.skill
        case "after-tool", "report" if not payload.tool.failed:
            return "findings", ""
        case "after-tool", "skill" if is_skill and not payload.tool.failed:
            return "skill", payload.tool.skill
        case "subagent-end", _ if so_far.level < BLOCK and reviews(review, payload):
            return "agent", payload.agent.type
    return None


def _decide_end(call: Call, so_far: Verdict) -> Verdict:
    """Return the verdict on reviews, unless gates block already."""
    if so_far.level == STOP or (so_far.level == BLOCK and call.hook.strategy == "sequence"):
        return so_far
    if call.is_unchanged and not has_changed_since(call.repo, _began_s(call)):
        return so_far
    from gitgates.core.errors import GitError
    from gitgates.features.review.end import decide_end  # rarely needed

    try:
        verdict = decide_end(call)
    except GitError as error:
        text = (
            f"gitgates: review: no decision was made, because git cannot compare: {error.message}"
        )
        call.note(text)
        verdict = Verdict(WARN, to_person=text)
    return so_far.joined(verdict, between="\n\n---\n\n")


def _began_s(call: Call) -> float:
    """Return when the session began, even if it has since switched branches and back."""
    base = call.state(TIMELINE).base
    return base.stamp if base else 0.0
