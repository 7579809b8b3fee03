"""Review settings: whether reviews are on, who reviews, and the events that they need."""

from __future__ import annotations

from gitgates.config.load import table_of
from gitgates.core.lifecycle import ENDING_HOOKS
from gitgates.core.policy import Need
from gitgates.core.record import Record
from gitgates.drivers.needs import agent_hooks
from gitgates.engine.plan.hooks import matches_agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.agent_types import Payload
    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Config
    from gitgates.drivers.call import Call

GATE = "review"
REVIEWER = "reviewer"  # stands for the gate where a reviewer may not end without a decision
# Time for the policy's own git commands in a large repository, in addition to the gates' time.
_ASSESSING_S = 45.0
_SNAPSHOT_S = 25.0
_MARKING_S = 15.0  # also for a snapshot
_AROUND: tuple[EventKind, ...] = ("before-tool", "after-tool", "tool-failed")
_ALWAYS = (
    Need(kind="prompt"),
    Need(kind="prompt-expansion", more_s=_SNAPSHOT_S),
    # Around tools that may write, so that each change has a known author.
    *(Need(kind=kind, tools=(), but_reads=True, more_s=_MARKING_S) for kind in _AROUND),
    Need(kind="subagent-start", more_s=_SNAPSHOT_S),
    Need(kind="turn-end", more_s=_ASSESSING_S),
)


class Review(Record):
    """When the built-in gate `review` asks for a review, and what counts as one."""

    mode: str  # remind, require, off
    required: bool
    weakened: str  # what a change that weakens the checks causes: tell, block, off
    prefix: str  # of prompts that request the strict form; empty: none
    skills: tuple[str, ...]
    agents: tuple[str, ...]
    reviewer: str  # the agent whose decision counts in the strict form
    reviewer_model: str
    reviewer_commands: tuple[str, ...]
    second_opinions: tuple[str, ...]
    opinion_timeout_s: float


class Weighting(Record):
    """How much the files of a change count, in the same table."""

    min_lines: float
    min_files: float
    weights: tuple[float, float, float]  # for code, tests, documentation
    tests: tuple[str, ...]  # patterns beside the built-in ones, like the next two
    documentation: tuple[str, ...]
    generated: tuple[str, ...]
    critical: tuple[str, ...]
    ignore: tuple[str, ...]


def settings_of(config: Config) -> Review:
    """Return the review settings."""
    return table_of(config, GATE, Review)


def weighting_of(config: Config) -> Weighting:
    """Return how much the files of a change count."""
    return table_of(config, GATE, Weighting)


def is_review_on(config: Config) -> bool:
    """Return whether the gate `review` is enabled: for reviews, or for weakened checks."""
    return _is_listed(config) and (is_asked(config) or settings_of(config).weakened != "off")


def is_asked(config: Config) -> bool:
    """Return whether a review may be required."""
    return settings_of(config).mode != "off" or is_strict_possible(config)


def _is_listed(config: Config) -> bool:
    ends = [hook for hook in agent_hooks(config) if hook.name in ENDING_HOOKS]
    return any(GATE in hook.gates for hook in ends)


def is_strict_possible(config: Config) -> bool:
    """Return whether the strict form is possible, by the mode or by a prompt."""
    review = settings_of(config)
    return review.mode == "require" or bool(review.prefix)


def review_needs(config: Config) -> tuple[Need, ...]:
    """Return the needed events: those of tools that may write, and of reviews."""
    if not is_review_on(config):
        return ()
    review = settings_of(config)
    reviewers = tuple(dict.fromkeys((*review.agents, review.reviewer)))
    return (*_ALWAYS, Need(kind="subagent-end", agents=reviewers, more_s=_ASSESSING_S))


def is_reviewer(review: Review, agent_type: str) -> bool:
    """Return whether an agent's decision counts in the strict form."""
    return matches_agent((review.reviewer,), agent_type)


def reviews(review: Review, payload: Payload) -> bool:
    """Return whether an event belongs to a reviewing sub-agent."""
    return matches_agent((*review.agents, review.reviewer), payload.agent.type)


def asks_for_review(call: Call) -> bool:
    """Return whether this event's hook lists `review`, and no reviewing agent ends here."""
    return GATE in call.hook.gates and not reviews(settings_of(call.config), call.payload)
