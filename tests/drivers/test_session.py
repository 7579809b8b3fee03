"""What the facts of a session mean together."""

from __future__ import annotations

import copy
from typing import Any

from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from json_support import JSON, TEXTS

from gitgates.journal.entries import Baseline, Beginning, Round, Session, fold

WHATS = [
    *("event", "snapshot", "prompt", "deferred", "round", "cannot-fix"),
    *("baseline", "warning", "stop", "note"),
]


def prompt(prompt_id: str = "") -> dict[str, Any]:
    return {"what": "prompt", "prompt_id": prompt_id, "text": "go"}


def pseudo(prompt_id: str = "") -> dict[str, Any]:
    return {"what": "prompt", "prompt_id": prompt_id, "text": "", "automatic": True}


def round_fact(outcome: str = "blocked", **fields: Any) -> dict[str, Any]:
    fact = {"what": "round", "t": 1.0, "key": "k", "hook": "Stop", "agent": "", "prompt": "1"}
    return fact | {"gates": "check", "outcome": outcome} | fields


def warning(text: str, hook: str = "Stop") -> dict[str, Any]:
    return {"what": "warning", "hook": hook, "text": text}


def test_no_facts_are_a_session_of_which_nothing_is_known() -> None:
    assert fold([]) == Session()


ROUND = Round(
    key="Stop:1",
    stamp=1.0,
    hook="Stop",
    agent="a",
    prompt="1",
    gates="check",
    outcome="blocked",
    tree="t2",
    statuses=(("check", "failed"),),
    failures=(("check", (("f1", "one"), ("f2", "two"))),),
    answer="{}",
    run="/r",
    config="d",
)


def test_everything_that_a_session_says() -> None:
    facts = [
        {"what": "event", "key": "SessionStart:1"},
        {"what": "snapshot", "tree": "t0", "why": ""},
        prompt("p1"),
        {"what": "snapshot", "tree": "t1", "why": ""},
        {"what": "event", "key": "Stop:1"},
        {"what": "deferred", "prompt": "1"},
        {"what": "event", "key": "Stop:1"},
        {
            **round_fact(key="Stop:1", agent="a", answer="{}", run="/r", config="d"),
            "tree": "t2",
            "statuses": [["check", "failed"]],
            "failures": [["check", [["f1", "one"], ["f2", "two"]]]],
        },
        {"what": "cannot-fix", "prompt": "1", "gate": "check", "reason": "old"},
        {"what": "cannot-fix", "prompt": "", "gate": "check", "reason": "new"},
        {"what": "baseline", "definition": "d", "gate": "check", "failures": [["f1", "one"]]},
        {"what": "baseline", "definition": "d", "gate": "check", "why_not": "later"},
        warning("careful"),
        {"what": "stop", "reason": "first"},
        {"what": "stop", "reason": "second"},
        {"what": "note", "text": "n"},
    ]
    before = copy.deepcopy(facts)
    found = fold(facts)
    assert found == Session(
        beginning=Beginning("t0"),
        prompt="1",
        request="go",
        prompts={"p1": "1"},
        rounds=(ROUND,),
        last="Stop:1",
        deliveries={"SessionStart:1": 1, "Stop:1": 2},
        deferred=("1",),
        cannot_fix=(("1", "check", "old"), ("1", "check", "new")),
        baselines={"d": Baseline(gate="check", failures=(("f1", "one"),))},
        warnings=(("Stop", "careful"),),
        stop="first",
        notes=("n",),
    )
    assert found.reasons_not_to_fix("1") == {"check": "new"}
    assert found.reasons_not_to_fix("2") == {}
    assert found.rounds[0].fingerprints() == {"check:f1", "check:f2"}
    assert fold(facts) == found
    assert facts == before


def test_a_prompt_that_is_delivered_twice_counts_once() -> None:
    found = fold([prompt("a"), prompt("a"), prompt("b"), prompt("a")])
    assert (found.prompt, found.prompts) == ("2", {"a": "1", "b": "2"})


def test_pseudo_prompts_belong_to_the_real_prompt_before() -> None:
    found = fold([pseudo("early"), prompt("a"), pseudo("x"), prompt("b"), pseudo("y"), pseudo("x")])
    assert found.prompt == "2"
    asked = ("early", "a", "x", "b", "y", "unheard", "")
    assert [found.prompt_of(one) for one in asked] == ["", "1", "1", "2", "2", "unheard", "2"]


def test_a_host_without_prompt_ids() -> None:
    assert fold([]).prompt_of("") == ""
    found = fold([prompt(), prompt(), pseudo()])
    assert (found.prompt, found.prompts, found.prompt_of("")) == ("2", {}, "2")


@each_case(
    ("facts", "base", "why"),
    [
        ([("", "no git")], "", "no git"),
        ([("", "no git"), ("t1", "")], "t1", ""),
        ([("t1", ""), ("", "no git")], "t1", ""),
        ([("t1", ""), ("t2", "")], "t1", ""),
        ([("", "first"), ("", "second")], "", "second"),
    ],
)
def test_the_first_snapshot_is_the_base(facts: list[tuple[str, str]], base: str, why: str) -> None:
    found = fold([{"what": "snapshot", "tree": tree, "why": said} for tree, said in facts])
    assert (found.beginning.tree, found.beginning.why_not) == (base, why)


@each_case(
    ("facts", "left"),
    [
        ([warning("a"), warning("b", "PostToolUse")], ("a", "b")),
        ([warning("a"), warning(""), warning("b")], ("b",)),
        ([warning("a"), round_fact("passed")], ()),
        ([warning("a"), round_fact("blocked")], ("a",)),
        ([warning("a"), round_fact("exhausted")], ("a",)),
        ([warning("a"), warning("b", "SubagentStop"), round_fact("passed")], ("b",)),
        ([round_fact("passed"), warning("a")], ("a",)),
        # A damaged round says nothing, not even that gates have passed.
        ([warning("a"), round_fact("passed", t="never")], ("a",)),
        ([warning("a"), {"what": "round", "outcome": "passed", "hook": "Stop"}], ("a",)),
    ],
)
def test_warnings_that_the_agent_has_not_been_told(
    facts: list[dict[str, Any]], left: tuple[str, ...]
) -> None:
    assert tuple(text for _hook, text in fold(facts).warnings) == left


def test_a_stop_is_over_when_it_was_said() -> None:
    stop = {"what": "stop", "reason": "why"}
    assert fold([stop, {"what": "stop", "reason": ""}]).stop == ""
    assert fold([stop, {"what": "stop", "reason": ""}, {**stop, "reason": "again"}]).stop == "again"


def test_rounds_since_the_gates_passed_last() -> None:
    outcomes = ("blocked", "passed", "blocked", "exhausted", "blocked")
    found = fold([round_fact(one, key=str(n)) for n, one in enumerate(outcomes)])
    assert [one.key for one in found.rounds_of("Stop", "", "1", "check")] == ["2", "3", "4"]
    for other in (
        ("SubagentStop", "", "1", "check"),
        ("Stop", "a", "1", "check"),
        ("Stop", "", "2", "check"),
        ("Stop", "", "1", "check, test"),
    ):
        assert found.rounds_of(*other) == ()


def test_passes_of_others_do_not_begin_a_cycle_anew() -> None:
    others = [{"hook": "PostToolUse"}, {"agent": "a"}, {"prompt": "2"}, {"gates": "test"}]
    facts = [round_fact(), *(round_fact("passed", **other) for other in others)]
    assert len(fold(facts).rounds_of("Stop", "", "1", "check")) == 1


@each_case(
    ("later", "left"),
    [
        (round_fact("passed"), {}),
        (round_fact("passed", gates="a, check"), {}),
        (round_fact("passed", hook="SubagentStop", agent="a"), {}),
        (round_fact("passed", gates="test"), {"check": "why"}),
        (round_fact("passed", prompt="2"), {"check": "why"}),
        (round_fact("passed", hook="PostToolUse"), {"check": "why"}),  # of one file only
        (round_fact("cannot-fix"), {"check": "why"}),
    ],
)
def test_what_cannot_be_fixed_until_it_passes(later: dict[str, Any], left: dict[str, str]) -> None:
    said = {"what": "cannot-fix", "prompt": "1", "gate": "check", "reason": "why"}
    assert fold([said, later]).reasons_not_to_fix("1") == left
    assert fold([said, later, said]).reasons_not_to_fix("1") == {"check": "why"}


def test_how_often_the_agent_was_kept_from_stopping() -> None:
    found = fold(
        [
            round_fact(),
            round_fact(prompt="2"),
            round_fact(hook="SubagentStop", agent="a"),
            round_fact("stopped", hook="SubagentStop", agent="a"),
            round_fact("passed"),
            round_fact("stopped"),
            round_fact("exhausted"),
            # Refused edits keep nobody from stopping.
            *[round_fact(hook="PreToolUse"), round_fact(hook="PostToolUse")] * 20,
        ]
    )
    assert (found.blocks(), found.blocks("1"), found.blocks("2"), found.blocks("3")) == (4, 3, 1, 0)


DAMAGED: list[Any] = [
    {},
    {"what": "of a newer gitgates", "x": 1},
    {"what": None},
    {"what": ["round"]},
    {"what": "event"},
    {"what": "snapshot"},
    {"what": "round"},
    round_fact(t=None),
    round_fact(t=10**400),  # more than a float can be
    round_fact(statuses=3),
    round_fact(statuses=[["only one"]]),
    round_fact(failures=[["check", [1]]]),
    round_fact(failures={"check": 3}),
    {"what": "cannot-fix"},
    {"what": "baseline", "definition": "d"},
    {"what": "warning"},
    {"what": "stop"},
    {"what": "deferred"},
    {"what": "note"},
    ["round"],
    None,
    3,
    "prompt",
]


@each_case("fact", DAMAGED)
def test_damaged_facts_are_passed_over(fact: Any) -> None:
    good = [prompt("a"), warning("w")]
    assert fold([*good, fact, {"what": "note", "text": "n"}]) == fold(
        [*good, {"what": "note", "text": "n"}]
    )


_NAMES = st.sampled_from(
    [
        *("key", "tree", "why", "prompt_id", "prompt", "t", "hook", "agent", "gates", "outcome"),
        *("statuses", "failures", "gate", "reason", "definition", "text", "run"),
    ]
)
_FACTS = st.dictionaries(_NAMES, JSON, max_size=12).flatmap(
    lambda fact: st.sampled_from(WHATS).map(lambda what: {**fact, "what": what})
)
_ROUNDS = st.dictionaries(_NAMES, JSON, max_size=4).map(lambda odd: round_fact() | odd)


@given(facts=st.lists(_FACTS | _ROUNDS | JSON, max_size=8), text=TEXTS)
def test_any_facts_can_be_folded(facts: list[Any], text: str) -> None:
    found = fold(facts)
    assert fold(facts) == found
    found.prompt_of(text)
    found.rounds_of("Stop", "", text, "check")
    found.reasons_not_to_fix(text)
    assert found.blocks(text or "1") <= found.blocks() <= len(found.rounds)


def test_a_fact_as_deep_as_the_stack() -> None:
    deep: Any = []
    for _ in range(20_000):
        deep = [deep]
    facts = [{"what": "note", "text": deep}, {"what": deep}, prompt("a")]
    assert fold(facts) == fold([prompt("a")])
