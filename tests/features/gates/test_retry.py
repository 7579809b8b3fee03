"""How often failures go back to an agent, and when it is let go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from gitgates.core.types import ALLOW, BLOCK, STOP, WARN, Hook
from gitgates.drivers import breaker
from gitgates.drivers.breaker import (
    BLOCKED,
    BREAKER,
    CANNOT_FIX,
    COULD_NOT_RUN,
    EXHAUSTED,
    NOT_CONVERGING,
    PASSED,
    STOPPED,
    Attempt,
    Ruling,
)
from gitgates.journal.entries import Session, fold

if TYPE_CHECKING:
    from gitgates.core.types import Level

LET_GO = (EXHAUSTED, BREAKER, NOT_CONVERGING, CANNOT_FIX, COULD_NOT_RUN)


class Try(NamedTuple):
    """What gates have said, and of which hook they are."""

    hook: str
    prompt: str
    agent: str
    gates: str
    verdict: Level
    deciding: tuple[tuple[str, str], ...]
    diverges: str = ""


class Limits(NamedTuple):
    """How often failures may go back."""

    retries: int
    per_prompt: int
    per_session: int
    stops: bool = False


def rule(session: Session, one: Try, limits: Limits) -> Ruling:
    ends = "stop" if limits.stops else "allow"
    hook = Hook(name=one.hook, max_retries=limits.retries, on_exhausted=ends)
    most = (limits.per_prompt, limits.per_session)
    blocks = session.blocks(one.prompt), session.blocks()
    return breaker.rule(session, Attempt(*one[1:]), hook, blocks=blocks, breaker=most)


LIMITS = Limits(retries=3, per_prompt=10, per_session=30)
FAILED = (("check", "failed"),)
MISSING = (("check", "not-started"),)
TRY = Try(hook="Stop", prompt="1", agent="", gates="check", verdict=BLOCK, deciding=FAILED)
ATTEMPTS_USED_UP = "after 4 attempts"
SAYS_SO = "because it reported that it cannot fix this"
SAID_ONCE = "because it was already told once what is missing"


def fact_of(one: Try, outcome: str) -> dict[str, Any]:
    return {
        "what": "round",
        "t": 1.0,
        "key": "k",
        "hook": one.hook,
        "agent": one.agent,
        "prompt": one.prompt,
        "gates": one.gates,
        "outcome": outcome,
        "statuses": [list(pair) for pair in one.deciding],
    }


def after(*rounds: tuple[str, Try], gave_up: tuple[str, ...] = (), prompt: str = "1") -> Session:
    """Return a session with these outcomes."""
    given_up = [
        {"what": "cannot-fix", "prompt": prompt, "gate": gate, "reason": "x"} for gate in gave_up
    ]
    return fold([*(fact_of(one, outcome) for outcome, one in rounds), *given_up])


def blocks(count: int, **fields: Any) -> tuple[tuple[str, Try], ...]:
    return ((BLOCKED, TRY._replace(**fields)),) * count


def let_go(outcome: str, how: str, attempt: int = 0) -> Ruling:
    return Ruling(ALLOW, outcome, attempt, how)


def sent_back(attempt: int) -> Ruling:
    return Ruling(BLOCK, BLOCKED, attempt)


@each_case("verdict", [ALLOW, WARN])
def test_a_pass_is_a_pass_whatever_was_before(verdict: Level) -> None:
    one = TRY._replace(verdict=verdict)
    assert rule(after(*blocks(40)), one, LIMITS) == Ruling(verdict, PASSED)


def test_a_stop_is_a_stop_whatever_was_before() -> None:
    one = TRY._replace(verdict=STOP)
    session = after(*blocks(40), gave_up=("check",))
    assert rule(session, one, LIMITS) == Ruling(STOP, STOPPED)


@each_case(
    ("retries", "before", "expected"),
    [
        (3, 0, sent_back(1)),
        (3, 1, sent_back(2)),
        (3, 2, sent_back(3)),
        (3, 3, let_go(EXHAUSTED, ATTEMPTS_USED_UP, 3)),
        (3, 4, let_go(EXHAUSTED, ATTEMPTS_USED_UP, 4)),
        (1, 0, sent_back(1)),
        (1, 1, let_go(EXHAUSTED, "after 2 attempts", 1)),
        (0, 0, let_go(EXHAUSTED, "at once, because max_retries is 0", 0)),
        (99, 9, sent_back(10)),
        (99, 10, let_go(BREAKER, "after 10 blocks in this prompt, the maximum", 10)),
    ],
)
def test_attempts(retries: int, before: int, expected: Ruling) -> None:
    assert rule(after(*blocks(before)), TRY, LIMITS._replace(retries=retries)) == expected


@each_case(
    ("retries", "before", "diverges", "expected"),
    [
        (3, 2, "", sent_back(3)),
        (3, 3, "", Ruling(STOP, EXHAUSTED, 3, ATTEMPTS_USED_UP)),
        (0, 0, "", Ruling(STOP, EXHAUSTED, 0, "at once, because max_retries is 0")),
        (3, 1, "they move", Ruling(STOP, NOT_CONVERGING, 1, "because they move")),
    ],
)
def test_on_exhausted_stop(retries: int, before: int, diverges: str, expected: Ruling) -> None:
    limits = LIMITS._replace(retries=retries, stops=True)
    one = TRY._replace(diverges=diverges)
    assert rule(after(*blocks(before)), one, limits) == expected


@each_case("used_up", [EXHAUSTED, NOT_CONVERGING])
def test_a_sub_agent_is_told_to_end_once(used_up: str) -> None:
    one = TRY._replace(hook="SubagentStop", agent="a")
    before = (*blocks(3, hook="SubagentStop", agent="a"), (used_up, one))
    stops = LIMITS._replace(stops=True)
    assert rule(after(*before[:-1]), one, stops).verdict == STOP
    assert rule(after(*before), one, stops) == let_go(EXHAUSTED, ATTEMPTS_USED_UP, 3)
    # The main thread is stopped by what it is told, each time.
    assert rule(after(*blocks(3), (used_up, TRY)), TRY, stops).verdict == STOP


@each_case(
    ("session", "one"),
    [
        (after(*blocks(10, gates="other")), TRY),
        (after(*blocks(5, agent="a"), *blocks(5, hook="SubagentStop")), TRY),
        # Passes in between do not make it start afresh.
        (after(*(*blocks(1), (PASSED, TRY)) * 10), TRY),
    ],
)
def test_the_breaker_of_a_prompt_counts_all_stops(session: Session, one: Try) -> None:
    ruling = rule(session, one, LIMITS)
    assert ruling.outcome == BREAKER
    assert ruling.how == "after 10 blocks in this prompt, the maximum"


def test_the_breaker_of_a_session() -> None:
    rounds = [pair for n in range(15) for pair in blocks(2, prompt=str(n))]
    one = TRY._replace(prompt="new")
    assert rule(after(*rounds[:-1]), one, LIMITS) == sent_back(1)
    assert rule(after(*rounds), one, LIMITS) == let_go(
        BREAKER, "after 30 blocks in this session, the maximum"
    )


def test_refused_edits_do_not_let_a_stop_go() -> None:
    edits = ((BLOCKED, TRY._replace(hook="PostToolUse")),) * 50
    assert rule(after(*edits), TRY, LIMITS) == sent_back(1)


BOTH = (("check", "failed"), ("test", "not-started"))


@each_case(
    ("deciding", "before", "expected"),
    [
        (MISSING, (), sent_back(1)),
        (MISSING, blocks(1, deciding=MISSING), let_go(COULD_NOT_RUN, SAID_ONCE, 1)),
        (MISSING, blocks(1, deciding=(("check", "not-run"),)), let_go(COULD_NOT_RUN, SAID_ONCE, 1)),
        (MISSING, blocks(1), sent_back(2)),  # it failed before, and cannot run only now
        (MISSING, blocks(1, deciding=(("other", "not-started"),)), sent_back(2)),
        (BOTH, blocks(1, deciding=BOTH), sent_back(2)),  # the other can be mended
        ((("test", "not-started"),), blocks(1, deciding=BOTH), let_go(COULD_NOT_RUN, SAID_ONCE, 1)),
        (MISSING, (*blocks(1, deciding=MISSING), (PASSED, TRY)), sent_back(1)),  # it was there
        ((), blocks(1, deciding=()), sent_back(2)),
    ],
)
def test_what_could_not_run_blocks_once(
    deciding: tuple[tuple[str, str], ...], before: tuple[tuple[str, Try], ...], expected: Ruling
) -> None:
    assert rule(after(*before), TRY._replace(deciding=deciding), LIMITS) == expected


@each_case(
    ("gave_up", "prompt", "deciding", "expected"),
    [
        (("check",), "1", FAILED, let_go(CANNOT_FIX, SAYS_SO, 1)),
        (("check",), "2", FAILED, sent_back(2)),  # it was said in another prompt
        (("other",), "1", FAILED, sent_back(2)),
        (("check",), "1", BOTH, sent_back(2)),  # the other gate blocks all the same
        (("check", "test"), "1", BOTH, let_go(CANNOT_FIX, SAYS_SO, 1)),
        (("check",), "1", (), sent_back(2)),  # nobody is known to block
    ],
)
def test_what_cannot_be_fixed(
    gave_up: tuple[str, ...], prompt: str, deciding: tuple[tuple[str, str], ...], expected: Ruling
) -> None:
    session = after(*blocks(1), gave_up=gave_up, prompt=prompt)
    assert rule(session, TRY._replace(deciding=deciding), LIMITS) == expected
    stops = rule(session, TRY._replace(deciding=deciding), LIMITS._replace(stops=True))
    assert stops == expected  # who says so is not stopped for it


def test_what_cannot_be_fixed_ends_attempts_even_where_there_are_none() -> None:
    session = after(gave_up=("check",))
    assert rule(session, TRY, LIMITS._replace(retries=0)).outcome == CANNOT_FIX


def test_failures_that_do_not_go_away() -> None:
    one = TRY._replace(diverges="the number of failures oscillates")
    how = "because the number of failures oscillates"
    assert rule(after(*blocks(2)), one, LIMITS) == let_go(NOT_CONVERGING, how, 2)


@each_case(
    "other",
    [{"hook": "SubagentStop"}, {"gates": "test"}, {"agent": "a"}, {"prompt": "0"}],
)
def test_cycles_are_counted_apart(other: dict[str, Any]) -> None:
    assert rule(after(*blocks(3, **other)), TRY, LIMITS) == sent_back(1)
    assert rule(after(*blocks(3, **other), *blocks(3)), TRY, LIMITS).outcome == EXHAUSTED


def test_a_pass_begins_a_cycle_anew() -> None:
    assert rule(after(*blocks(3), (PASSED, TRY)), TRY, LIMITS) == sent_back(1)


_TRIES = st.builds(
    Try,
    hook=st.sampled_from(["Stop", "SubagentStop"]),
    prompt=st.sampled_from(["", "1"]),
    agent=st.sampled_from(["", "a", "b"]),
    gates=st.sampled_from(["check", "test"]),
    verdict=st.sampled_from([BLOCK, BLOCK, BLOCK, WARN, STOP]),
    deciding=st.sampled_from([FAILED, MISSING, BOTH, ()]),
    diverges=st.sampled_from(["", "", "they move"]),
)


@given(
    tries=st.lists(_TRIES, max_size=60),
    retries=st.integers(0, 99),
    per_prompt=st.integers(1, 10),
    per_session=st.integers(1, 12),
    stops=st.booleans(),
)
def test_no_endless_loop(
    tries: list[Try],
    retries: int,
    per_prompt: int,
    per_session: int,
    stops: bool,  # noqa: FBT001 - a case of the table
) -> None:
    limits = Limits(retries, per_prompt, per_session, stops=stops)
    facts: list[dict[str, Any]] = []
    sent: list[str] = []
    for one in tries:
        ruling = rule(fold(facts), one, limits)
        facts.append(fact_of(one, ruling.outcome))
        if ruling.verdict == BLOCK:
            assert ruling.attempt <= retries
            sent.append(one.prompt)
        assert (ruling.outcome in LET_GO) is bool(ruling.how)
        assert (ruling.outcome == PASSED) is (one.verdict < BLOCK)  # never a pass that is none
    assert sent.count("1") <= per_prompt
    assert sent.count("") <= per_prompt
    assert len(sent) <= per_session
