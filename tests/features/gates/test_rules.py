"""The rules that agents are told: short, whatever is configured, and with a way out."""

from __future__ import annotations

from config_support import table, with_tables
from conftest import Repo
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.types import Config, Gate, Hook, make_gate
from gitgates.features.gates.rules import LONGEST, rules_text
from gitgates.features.review.config import Review

WAY_OUT = 'gitgates cannot-fix GATE --reason "why"'

SMALL = """
[gates.check]
description = "Formatting, linting, types"
command = "true"
[gates.security-scan]
command = "true"
on_fail = "STOP"
[gates.spelling]
command = "true"
on_fail = "CONTINUE"
[gates.new]
description = "Tried out"
command = "true"
observe = true
[hooks.pre-commit]
gates = ["check"]
[hooks.PostToolUse]
enabled_tools = ["Edit", "Write"]
gates = ["check"]
[hooks.SessionEnd]
gates = ["spelling"]
[hooks.manual]
gates = ["spelling"]
[hooks.Stop]
gates = ["check", "security-scan", "spelling", "new"]
[hooks.SubagentStop]
gates = []
"""
SMALL_TEXT = """\
gitgates checks the work in this repository. These gates run:
- When you want to stop, and files have changed: check (Formatting, linting, types), security-scan \
(stops), spelling (warns), new (Tried out) (only observes)
- After you have used a tool (Edit, Write): check (Formatting, linting, types)
- Before a commit: check (Formatting, linting, types)
- When you call gitgates run: spelling (warns)
- At SessionEnd: spelling (warns)
A gate that fails blocks, and you are told why, up to 3 times. Fix the cause, not the gate: do not \
weaken, skip or delete checks, and do not use --no-verify. To run the gates yourself: gitgates run \
Stop. To end your turn with a question: gitgates cannot-fix --question "…". If a failure cannot be \
fixed, report it, and the person decides: gitgates cannot-fix GATE \
--reason "why". A gate marked (stops) ends your turn when it fails. One marked (warns) only warns.
"""


def test_the_whole_text(repo: Repo) -> None:
    repo.config(SMALL)
    done = repo.gitgates("explain", "--for-agent")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == SMALL_TEXT


def test_without_gates_agents_are_told_nothing(repo: Repo) -> None:
    repo.config("[gates.check]\ncommand = 'true'\n[hooks.Stop]\ngates = []\n")
    done = repo.gitgates("explain", "--for-agent")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"No hook has gates, so agents receive no rules.\n"


def test_the_rules_are_of_no_single_hook(repo: Repo) -> None:
    repo.config(SMALL)
    done = repo.gitgates("explain", "Stop", "--for-agent")
    assert (done.returncode, done.stdout) == (64, b"")
    assert b"--for-agent covers all hooks" in done.stderr


@each_case(
    ("hooks", "said"),
    [
        ((Hook(name="Stop", gates=("a",), max_retries=1),), "told why, up to 1 time. "),
        ((Hook(name="Stop", gates=("a",), max_retries=0),), "told why. "),
        ((Hook(name="Stop", gates=("a",), max_retries=7),), "told why, up to 7 times. "),
        ((Hook(name="pre-push", gates=("a",)),), "told why. "),
    ],
)
def test_how_often_failures_come_back(hooks: tuple[Hook, ...], said: str) -> None:
    assert said in rules_text(Config(gates=(make_gate(name="a", command="x"),), hooks=hooks))


def test_chained_gates_are_named_too() -> None:
    gates = (
        make_gate(name="a", command="x", on_pass="b"),
        make_gate(name="b", command="x", on_fail="STOP"),
    )
    text = rules_text(Config(gates=gates, hooks=(Hook(name="Stop", gates=("a", "gone")),)))
    assert "changed: a, b (stops)\n" in text


# The gate `review`

STOP = Hook(name="Stop", gates=("a", "review"))
REMINDED = (
    "review: after a significant change, have it reviewed by a review skill or the sub-agent "
    "reviewer. If no review is needed, say why: gitgates"
    ' review skip --reason "why".'
)
ASKED = " If a prompt starts with #review, reviewer must post COMPLETE."
REQUIRED = (
    "review: have the sub-agent reviewer review every change, in the foreground, until it "
    "posts COMPLETE."
)


@each_case(
    ("review", "said"),
    [
        (table(Review), REMINDED + ASKED),
        (table(Review, prefix=""), REMINDED),
        (table(Review, mode="require"), REQUIRED),
        (table(Review, mode="off"), f"review:{ASKED}"),
        (table(Review, mode="off", prefix="", weakened="off"), ""),
    ],
)
def test_what_a_review_asks_for(review: Review, said: str) -> None:
    config = with_tables(Config(gates=(make_gate(name="a", command="x"),), hooks=(STOP,)), review)
    text = rules_text(config)
    assert ("changed: a, review\n" if said else "changed: a\n") in text
    assert text.split('--reason "why".', 1)[1] == (f"\n{said}" if said else "")


def test_a_review_alone(repo: Repo) -> None:
    repo.config('[hooks.Stop]\ngates = ["review"]\n')
    done = repo.gitgates("explain", "--for-agent")
    assert done.stdout.decode() == (
        "gitgates checks the work in this repository. These gates run:\n"
        f"- When you want to stop, and files have changed: review\n{REMINDED}{ASKED}\n"
    )


def test_a_review_that_is_never_asked_for_is_not_told_of() -> None:
    review = table(Review, mode="off", prefix="", weakened="off")
    hooks = (Hook(name="Stop", gates=("review",)),)
    assert rules_text(with_tables(Config(hooks=hooks), review)) == ""


_NAMES = st.integers(0, 400).map(lambda n: f"gate-{n}") | st.integers(1, 300).map(lambda n: "é" * n)
_GATES = st.builds(
    make_gate,
    name=_NAMES,
    description=st.integers(0, 900).map(lambda n: "long words " * (n // 9)) | st.just("a\nb"),
    command=st.just("x"),
    on_fail=st.sampled_from(["BLOCK", "STOP", "CONTINUE", "gate-1", "gate-2"]),
    observe=st.booleans(),
)


def _gate(number: int) -> Gate:
    return make_gate(
        name=f"many-{number}", command="x", description="What it is for, in a few words"
    )


@given(
    gates=st.lists(_GATES, min_size=1, max_size=8),
    many=st.sampled_from([0, 0, 300]),
    points=st.lists(st.sampled_from(list(HOOK_POINTS)), unique=True) | st.none(),
    listed=st.lists(st.integers(0, 300)) | st.none(),
    tools=st.sampled_from([None, (), ("Edit",), ("mcp__" + "x" * 400,) * 20]),
    review=st.sampled_from(
        [None, table(Review), table(Review, reviewer="é" * 900, prefix="#" * 900)]
    ),
)
def test_it_is_short_and_names_the_way_out(
    gates: list[Gate],
    many: int,
    points: list[str] | None,
    listed: list[int] | None,
    tools: tuple[str, ...] | None,
    review: Review | None,
) -> None:
    gates = [*gates, *(_gate(number) for number in range(many))]
    names = [gate.name for gate in gates]
    chosen = tuple(names if listed is None else (names[n % len(names)] for n in listed))
    more = ("review",) if review and chosen else ()
    hooks = tuple(
        Hook(name=name, gates=(*chosen, *more), enabled_tools=tools)
        for name in (HOOK_POINTS if points is None else points)
    )
    config = Config(gates=tuple(gates), hooks=hooks)
    text = rules_text(with_tables(config, review or table(Review)))
    if not (hooks and chosen):
        assert text == ""
        return
    assert len(text) <= LONGEST
    assert WAY_OUT in text
    assert "--no-verify" in text
    assert text.startswith("gitgates checks the work in this repository.")
