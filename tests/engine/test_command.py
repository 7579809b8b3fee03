"""Steps become commands that name each path once, under the limit, and never as an option."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitgates.core.types import Command, Event, Gate, Step, make_gate
from gitgates.engine.plan.command import chunks, gate_env, make_commands

EVENT = Event(host="git", name="pre-commit", root_abs="/r", argv=("one", "two"))


def commands_of(gate: Gate, *paths: str, event: Event = EVENT) -> list[Command]:
    step = Step(gate=gate, paths=paths)
    return make_commands(step, event, root_abs="/r", env={}, stdin_abs="/stdin", limit=10_000)


def argvs(gate: Gate, *paths: str, event: Event = EVENT) -> list[tuple[str, ...]]:
    commands = commands_of(gate, *paths, event=event)
    return [command.argv for command in commands]


def test_an_array_is_executed_as_it_is() -> None:
    gate = make_gate(name="g", command=("ruff", "$HOME", "a b"))
    assert argvs(gate, "a.py") == [("ruff", "$HOME", "a b")]


def test_paths_reach_a_shell_string_as_arguments() -> None:
    gate = make_gate(name="g", command="ruff check", pass_files=True)
    assert argvs(gate, "a; rm -rf x", "$(b)") == [
        ("/bin/sh", "-c", 'ruff check "$@"', "g", "a; rm -rf x", "$(b)")
    ]


def test_a_text_that_places_its_arguments_is_left_alone() -> None:
    for text in ('for f in "$@"; do :; done', "echo $*", 'head -1 "$1"'):
        assert argvs(make_gate(name="g", command=text, pass_files=True), "a")[0][2] == text


def test_a_dollar_of_awk_is_not_taken_for_ours() -> None:
    gate = make_gate(name="g", command="awk '{print $1}'", pass_files=True)
    assert argvs(gate, "a")[0][2] == "awk '{print $1}' \"$@\""


def test_a_path_is_never_an_option() -> None:
    gate = make_gate(name="g", command=("cat",), pass_files=True)
    assert argvs(gate, "-rf", "a/-b") == [("cat", "./-rf", "a/-b")]


def test_paths_are_relative_to_the_working_dir() -> None:
    gate = make_gate(name="g", command=("tsc",), pass_files=True, working_dir="web/app")
    assert argvs(gate, "web/app/-a.ts", "web/b.ts") == [("tsc", "./-a.ts", "../../web/b.ts")]
    assert commands_of(gate, "web/app/a.ts")[0].cwd_abs == "/r/web/app"


def test_hook_input_comes_before_paths() -> None:
    gate = make_gate(name="g", command=("x",), pass_files=True, pass_hook_input=True)
    assert commands_of(gate, "a") == [Command(("x", "one", "two", "a"), "/r", {}, "/stdin")]


def test_pre_commit_hooks_of_one_gate() -> None:
    gate = make_gate(name="g", pre_commit=("ruff", "mypy"), runner="/bin/prek")
    assert argvs(gate, "a.py") == [
        ("/bin/prek", "run", "ruff", "--hook-stage", "pre-commit", "--files", "a.py"),
        ("/bin/prek", "run", "mypy", "--hook-stage", "pre-commit", "--files", "a.py"),
    ]
    message = Event(host="git", name="commit-msg", root_abs="/r", message_file_abs="/m")
    assert argvs(make_gate(name="g", pre_commit=(), runner="/bin/prek"), "m", event=message) == [
        (
            "/bin/prek",
            "run",
            "--hook-stage",
            "commit-msg",
            "--commit-msg-filename",
            "/m",
            "--files",
            "/m",
        )
    ]


@given(
    paths=st.lists(st.text(min_size=1, max_size=30), max_size=50),
    limit=st.integers(min_value=1, max_value=500),
)
def test_chunks_hold_each_path_once_in_order(paths: list[str], limit: int) -> None:
    found = chunks(tuple(paths), limit)
    assert [path for chunk in found for path in chunk] == paths
    for chunk in found:
        cost = sum(len(path.encode("utf-8", "surrogatepass")) + 9 for path in chunk)
        assert len(chunk) <= 1 or cost <= limit


@pytest.mark.parametrize(
    ("gate", "person", "expected"),
    [("types", "ruff", "types,ruff"), ("types", "", "types"), ("", "ruff", "ruff")],
)
def test_what_a_person_skips_of_the_framework_comes_on_top(
    gate: str, person: str, expected: str
) -> None:
    base = {"SKIP": person} if person else {}
    env = (("SKIP", gate),) if gate else ()
    event = Event(host="git", name="pre-commit", root_abs="/")
    asked = make_gate(name="g", pre_commit=(), env=env)
    assert gate_env(base, event, asked)["SKIP"] == expected
    assert gate_env(base, event, asked.changed(pre_commit=None)).get("SKIP") == (gate or person)
