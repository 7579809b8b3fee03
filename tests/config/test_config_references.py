"""What only the whole configuration shows: chains in circles, gates that are not there."""

from __future__ import annotations

import pytest
from config_support import fatal, read
from conftest import Repo


def chain(names: list[str], action: str, *, close: bool) -> str:
    following = [*names[1:], names[0] if close else "CONTINUE"]
    return "".join(
        f'[gates.{name}]\ncommand = "x"\n{action} = "{after}"\n'
        for name, after in zip(names, following, strict=True)
    )


@pytest.mark.parametrize("action", ["on_pass", "on_fail"])
@pytest.mark.parametrize("length", [1, 2, 3, 50])
def test_chain_that_comes_back_to_itself(action: str, length: int) -> None:
    names = [f"g{number}" for number in range(length)]
    shown = " → ".join(f"`{name}`" for name in [*names, names[0]])
    assert fatal(chain(names, action, close=True)) == (
        f"gitgates.toml: gates.g0: its chain of actions is a cycle: {shown}. "
        "Make one of them end in CONTINUE, BLOCK or STOP."
    )


@pytest.mark.parametrize("action", ["on_pass", "on_fail"])
def test_deep_chain_is_fine(action: str) -> None:
    assert fatal(chain([f"g{number}" for number in range(50)], action, close=False)) == ""


def test_of_two_circles_one_is_a_problem_first_and_a_shared_end_is_none() -> None:
    said = fatal(
        chain(["a", "b"], "on_fail", close=True)
        + chain(["c"], "on_pass", close=True)
        + '[gates.d]\ncommand = "x"\non_pass = "e"\non_fail = "e"\n[gates.e]\ncommand = "x"\n'
        + '[gates.f]\ncommand = "x"\non_fail = "a"\n'
    )
    assert [line.partition(". ")[0] for line in said.splitlines()] == [
        "gitgates.toml: gates.a: its chain of actions is a cycle: `a` → `b` → `a`",
    ]


@pytest.mark.parametrize(
    ("settings", "place", "cycle"),
    [
        ({"a": 'after = ["a"]'}, "a", "`a` → `a`"),
        ({"a": 'after = ["b"]', "b": 'after = ["a"]'}, "b", "`a` → `b` → `a`"),
        (
            {"a": 'on_fail = "b"', "b": "", "c": 'after = ["b"]\non_pass = "a"'},
            "c",
            "`a` → `b` → `c` → `a`",
        ),
    ],
)
def test_gates_that_wait_for_each_other(settings: dict[str, str], place: str, cycle: str) -> None:
    tables = (f'[gates.{name}]\ncommand = "x"\n{table}\n' for name, table in settings.items())
    assert fatal("".join(tables)) == (
        f"gitgates.toml: gates.{place}.after: "
        f"makes a cycle in the order in which gates run: {cycle}. "
        f"Remove one of them from `after` of `{place}`."
    )


def test_gates_to_wait_for_exist() -> None:
    _config, said, deferred = read('[gates.lint]\ncommand = "x"\nafter = ["lnt", "review"]\n')
    assert said == ""
    assert deferred == (
        "gitgates.toml: gates.lint.after: gate `lnt` is not defined. Did you mean `lint`?\n"
        "gitgates.toml: gates.lint.after: gate `review` is not defined. "
        "`review` is a built-in gate: list it in a hook only."
    )


def test_what_a_gate_writes_there_would_be_lost() -> None:
    assert fatal('[gates.g]\ncommand = "x"\nremote = true\nwrites = true\n') == (
        "gitgates.toml: gates.g.remote: cannot be combined with `writes`: its changes stay there. "
        "Split it into two gates, or remove `remote`."
    )


def test_parallel_needs_paths() -> None:
    assert fatal('[gates.lint]\ncommand = "x"\nparallel = true\n') == (
        "gitgates.toml: gates.lint.parallel: requires `pass_files = true`. "
        'To run gates in parallel, write `strategy = "collect"` in the hook.'
    )
    assert fatal("[gates.lint]\npre-commit = true\npass_files = true\nparallel = true\n") == (
        "gitgates.toml: gates.lint.parallel: cannot be combined with `pre-commit`, "
        "which splits the paths itself"
    )


def test_what_is_missing_is_deferred() -> None:
    config, said, deferred = read(
        """
        [gates.lint]
        on_pass = "lnt"
        on_fail = "block"
        [hooks.pre-commit]
        gates = ["lint", "lintt", "guard", "STOP", "zzz", "\\u001b"]
        """
    )
    assert (said, len(config.gates)) == ("", 1)
    assert deferred == (
        'gitgates.toml: gates.lint: has no `command`. Add command = "…" to `lint`.\n'
        "gitgates.toml: gates.lint.on_pass: gate `lnt` is not defined. Did you mean `lint`?\n"
        "gitgates.toml: gates.lint.on_fail: gate `block` is not defined. Did you mean `BLOCK`?\n"
        "gitgates.toml: hooks.pre-commit.gates: gate `lintt` is not defined. Did you mean "
        "`lint`?\ngitgates.toml: hooks.pre-commit.gates: gate `guard` is not defined. `guard` "
        "is a built-in policy, not a gate; it cannot be listed in a hook."
        "\n"
        "gitgates.toml: hooks.pre-commit.gates: gate `STOP` is not defined. `STOP` is an "
        "action, not a gate."
        "\n"
        "gitgates.toml: hooks.pre-commit.gates: gate `zzz` is not defined. "
        "Define it with a command, or remove the name.\n"
        "gitgates.toml: hooks.pre-commit.gates: gate `\\x1b` is not defined. "
        "Define it with a command, or remove the name."
    )


@pytest.mark.parametrize(
    "line",
    ["command = 1", "command = [1]", "pre-commit = 1", "pre-commit = [1]", 'pre-commit = "x"'],
)
def test_bad_command_is_not_a_missing_one_too(line: str) -> None:
    assert fatal(f"[gates.g]\n{line}").count("\n") == 0
    assert fatal("[gates.g]", f"[gates.g]\n{line}").startswith("gitgates.local.toml: gates.g.")


def test_command_beside_pre_commit() -> None:
    assert fatal('[gates.g]\ncommand = "x"\npre-commit = true') == (
        "gitgates.toml: gates.g.pre-commit: cannot be combined with `command`. "
        "Split it into two gates, and list both in the hook."
    )
    assert fatal('[gates.g]\ncommand = "x"\npre-commit = false') == ""


GATE_OF_HOOKS = '[gates.g]\npre-commit = true\n[gates.call]\ncommand = "x"\non_fail = "g"\n'


@pytest.mark.parametrize("listed", ["g", "call"])
def test_pre_commit_gate_at_a_hook_without_paths(listed: str) -> None:
    assert fatal(f'{GATE_OF_HOOKS}[hooks.pre-rebase]\ngates = ["{listed}"]') == (
        "gitgates.toml: hooks.pre-rebase.gates: gate `g` runs pre-commit hooks on paths, but "
        "pre-rebase has no paths"
        ". Use a gate with a command."
    )


@pytest.mark.parametrize("hook", ["pre-commit", "commit-msg", "pre-push", "post-commit", "Stop"])
def test_pre_commit_gate_at_a_hook_with_paths(hook: str) -> None:
    assert fatal(f'{GATE_OF_HOOKS}[hooks.{hook}]\ngates = ["g", "call"]') == ""


def test_all_problems_at_once_in_the_order_of_the_files() -> None:
    config, said, deferred = read(
        'jobs = "x"\n[gates.a]\ntimeout = "x"\non_fail = "nope"\n[hooks.pre-comit]\n',
        'max_output = 0\n[gates.a]\ncomand = "x"\n',
    )
    assert config.jobs == 0
    assert [line.partition(": got")[0].partition(": unknown")[0] for line in said.splitlines()] == [
        "gitgates.toml: jobs",
        "gitgates.toml: gates.a.timeout",
        "gitgates.toml: hooks.pre-comit",
        "gitgates.local.toml: max_output",
        "gitgates.local.toml: gates.a.comand",
    ]
    assert deferred.count("\n") == 1


@pytest.mark.samples(1, "nightly")
@pytest.mark.parametrize(
    ("length", "verb", "status", "said"),
    [
        (1100, "check", 0, "1100 gates, 1 hook, no problems"),  # calls are 1,000 deep at the most
        (5000, "check", 0, "5000 gates, 1 hook, no problems"),
        (2000, "explain manual", 0, " → g1999: always runs"),
        (500, "run", 1, "blocked by `g499`"),
    ],
)
def test_a_long_chain_is_followed_to_its_end(
    repo: Repo, length: int, verb: str, status: int, said: str
) -> None:
    lines = ["[hooks.manual]", 'gates = ["g0"]']
    for number in range(length):
        lines += [f"[gates.g{number}]", 'command = ["no-such-program"]']
        lines += [f'on_fail = "g{number + 1}"'] if number < length - 1 else []
    repo.write("gitgates.toml", "\n".join(lines))
    done = repo.gitgates(*verb.split())
    assert done.returncode == status
    assert said in done.stdout.decode()
    assert b"Traceback" not in done.stderr
