"""Local settings over shared ones, and the required gates that they cannot take away."""

from __future__ import annotations

import pytest
from config_support import fatal, read

from gitgates.core.types import make_gate

SHARED = """
[gates.lint]
command = "lint"
required = true
timeout = 10
[gates.test]
command = "test"
on_fail = "lint"
[gates.call]
command = "call"
on_pass = "test"
[hooks.pre-commit]
gates = ["lint", "test"]
[hooks.pre-push]
gates = ["call"]
[hooks.PreToolUse]
gates = ["lint"]
enabled_tools = ["Edit"]
"""
BACK = "Add `lint` to the list again."
SEEN = "Change it in gitgates.toml instead."
LEAVE = "Keep `on_pass` and `on_fail` as in gitgates.toml."


@pytest.mark.parametrize(
    ("local", "said"),
    [
        (
            "[hooks.pre-commit]\ngates = []",
            f"hooks.pre-commit.gates: removes the required gate `lint`. {BACK}",
        ),
        (
            # git runs pre-merge-commit in place of pre-commit
            "[hooks.pre-merge-commit]\ngates = []",
            f"hooks.pre-merge-commit.gates: removes the required gate `lint`. {BACK}",
        ),
        (
            '[gates.test]\non_fail = "BLOCK"',
            "gates: breaks the chain of pre-push to the required gate `lint`. " + LEAVE,
        ),
        (
            '[gates.call]\non_pass = "CONTINUE"',
            "gates: breaks the chain of pre-push to the required gate `lint`. " + LEAVE,
        ),
        (
            '[gates.lint]\ncommand = "true"',
            f"gates.lint.command: gate `lint` is required and cannot be changed locally. {SEEN}",
        ),
        (
            '[gates.lint]\nenv = { PATH = "/mine" }',
            f"gates.lint.env: gate `lint` is required and cannot be changed locally. {SEEN}",
        ),
        (
            "[gates.lint]\nrequired = false",
            f"gates.lint.required: gate `lint` is required and cannot be changed locally. {SEEN}",
        ),
        (
            "[gates.lint]\npass_files = true",
            "gates.lint.pass_files: gate `lint` is required and cannot be changed locally. " + SEEN,
        ),
        (
            '[gates.lint]\non_fail = "CONTINUE"\nfiles = []',
            (
                "gates.lint.on_fail: gate `lint` is required and cannot be changed locally. "
                f"{SEEN}\ngitgates.local.toml: gates.lint.files: gate `lint` is required and "
                f"cannot be changed locally. {SEEN}"
            ),
        ),
        (
            '[hooks.pre-commit]\nunstaged = "keep"',
            (
                "hooks.pre-commit.unstaged: cannot be changed locally: the required gate `lint` "
                f"runs at pre-commit. {SEEN}"
            ),
        ),
        (
            "[hooks.PreToolUse]\nenabled_tools = []\nenabled_agents = []",
            (
                "hooks.PreToolUse.enabled_tools: cannot be changed locally: the required gate "
                f"`lint` runs at PreToolUse. {SEEN}\n"
                "gitgates.local.toml: hooks.PreToolUse.enabled_agents: cannot be changed locally: "
                f"the required gate `lint` runs at PreToolUse. {SEEN}"
            ),
        ),
    ],
)
def test_required_gate_cannot_be_taken_away(local: str, said: str) -> None:
    _config, problems, _deferred = read(SHARED, local)
    assert problems == f"gitgates.local.toml: {said}"


@pytest.mark.parametrize(
    "local",
    [
        "[gates.lint]\ntimeout = 99",
        '[gates.lint]\ndescription = "mine"\nweight = 2\nafter = ["test"]',
        '[gates.lint]\ncommand = "lint"',
        '[hooks.pre-commit]\ngates = ["test"]',  # its chain still leads there
        '[hooks.pre-commit]\ngates = ["test", "lint"]\nstrategy = "collect"',
        '[gates.extra]\ncommand = "x"\n[hooks.pre-commit]\ngates = ["extra", "lint"]',
        '[hooks.PreToolUse]\nenabled_tools = ["Edit"]',
        '[hooks.pre-commit]\nunstaged = "hide"',
        '[gates.mine]\ncommand = "x"\n[hooks.pre-merge-commit]\ngates = ["mine", "lint"]',
    ],
)
def test_local_settings_that_leave_required_gates_alone(local: str) -> None:
    assert fatal(SHARED, local) == ""


def test_local_settings_win_key_by_key() -> None:
    config, said, _deferred = read(
        SHARED,
        'jobs = 9\n[gates.lint]\ntimeout = 99\n[gates.mine]\ncommand = "x"\n'
        '[hooks.pre-push]\ngates = ["mine", "call"]\n[hooks.manual]\ngates = ["mine"]\n',
    )
    gates = {gate.name: gate for gate in config.gates}
    assert said == ""
    assert gates["lint"] == make_gate(name="lint", command="lint", required=True, timeout_s=99.0)
    assert gates["mine"] == make_gate(name="mine", command="x")
    assert [(hook.name, hook.gates) for hook in config.hooks] == [
        ("pre-commit", ("lint", "test")),
        ("pre-push", ("mine", "call")),
        ("PreToolUse", ("lint",)),
        ("manual", ("mine",)),
    ]
    assert (config.jobs, config.sources) == (9, ("gitgates.toml", "gitgates.local.toml"))


def test_gate_that_is_required_locally_only() -> None:
    assert fatal('[gates.g]\ncommand = "x"', "[gates.g]\nrequired = true") == ""
