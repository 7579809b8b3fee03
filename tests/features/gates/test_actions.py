"""What actions mean, on the example configurations of the design of quality gates for agents.

Each gate writes its name to a file when it runs, so the order is what really happened.
"""

from __future__ import annotations

import pytest
from conftest import Repo, timeless

CHECK_TEST = '[hooks.pre-commit]\ngates = ["check", "test"]\n'

STRICT = """
[gates.check]
command = "$CHECK"
on_pass = "CONTINUE"
on_fail = "BLOCK"
[gates.test]
command = "$TEST"
on_pass = "CONTINUE"
on_fail = "BLOCK"
"""
PERMISSIVE = STRICT.replace("BLOCK", "CONTINUE")
PIPELINE = """
[gates.format]
command = "$FORMAT"
on_pass = "check"
on_fail = "STOP"
[gates.check]
command = "$CHECK"
on_pass = "test"
on_fail = "BLOCK"
[gates.test]
command = "$TEST"
[hooks.pre-commit]
gates = ["format"]
"""
SUBROUTINE = """
[gates.check]
command = "$CHECK"
on_pass = "reticulate"
[gates.reticulate]
command = "$RETICULATE"
[gates.test]
command = "$TEST"
"""
CRITICAL = """
[gates.security-scan]
command = "$SCAN"
on_fail = "STOP"
[gates.test]
command = "$TEST"
[hooks.pre-commit]
gates = ["security-scan", "test"]
"""
UNUSUAL = """
[gates.check]
command = "$CHECK"
on_pass = "BLOCK"
on_fail = "STOP"
[gates.test]
command = "$TEST"
"""
RESCUE = """
[gates.check]
command = "$CHECK"
on_fail = "format"
[gates.format]
command = "$FORMAT"
[gates.test]
command = "$TEST"
"""
NAMES = ("check", "test", "format", "reticulate", "scan")
FAIL = "  | {0} speaks\n"


def run_hook(repo: Repo, config: str, failing: set[str]) -> tuple[int, str, list[str]]:
    """Return exit status, standard error and the gates that ran, as git sees them."""
    if "[hooks." not in config:
        config += CHECK_TEST
    for name in NAMES:
        status = 1 if name in failing else 0
        command = f"echo {name} >> ran; echo {name} speaks; exit {status}"
        config = config.replace(f"${name.upper()}", command)
    repo.config(config)
    repo.git("add", "pyproject.toml")
    repo.shim("pre-commit")
    done = repo.ask(".git/hooks/pre-commit")
    assert done.stdout == b""
    ran = repo.path / "ran"
    return (
        done.returncode,
        timeless(done.stderr).partition("gitgates: to see ")[0],  # and how to skip that
        ran.read_text().split() if ran.exists() else [],
    )


@pytest.mark.samples(4)
@pytest.mark.parametrize(
    ("config", "failing", "status", "ran", "said"),
    [
        pytest.param(
            STRICT,
            set(),
            0,
            ["check", "test"],
            "check  passed         0.00 s\n"
            "test   passed         0.00 s\n"
            "gitgates pre-commit: 2 gates passed\n",
            id="strict, all pass",
        ),
        pytest.param(
            STRICT,
            {"check"},
            1,
            ["check"],
            "check  failed         0.00 s  exit status 1\n"
            "  | check speaks\n"
            "test   not run      the run ended at `check`\n"
            "gitgates pre-commit: blocked by `check`\n",
            id="strict, the first fails",
        ),
        pytest.param(
            STRICT,
            {"test"},
            1,
            ["check", "test"],
            "check  passed         0.00 s\n"
            "test   failed         0.00 s  exit status 1\n"
            "  | test speaks\n"
            "gitgates pre-commit: blocked by `test`\n",
            id="strict, the last fails",
        ),
        pytest.param(
            PERMISSIVE,
            {"check", "test"},
            0,
            ["check", "test"],
            "check  failed         0.00 s  exit status 1\n"
            "  | check speaks\n"
            "test   failed         0.00 s  exit status 1\n"
            "  | test speaks\n"
            "gitgates pre-commit: passed with a warning: gate `check` failed (exit status 1); "
            "gate `test` failed (exit status 1)\n",
            id="permissive, all fail",
        ),
        pytest.param(
            PIPELINE,
            set(),
            0,
            ["format", "check", "test"],
            "format  passed         0.00 s\n"
            "check   passed         0.00 s\n"
            "test    passed         0.00 s\n"
            "gitgates pre-commit: 3 gates passed\n",
            id="pipeline, all pass",
        ),
        pytest.param(
            PIPELINE,
            {"format"},
            1,
            ["format"],
            "format  failed         0.00 s  exit status 1\n"
            "  | format speaks\n"
            "gitgates pre-commit: stopped by `format`\n",
            id="pipeline, its head fails",
        ),
        pytest.param(
            PIPELINE,
            {"test"},
            1,
            ["format", "check", "test"],
            "format  passed         0.00 s\n"
            "check   passed         0.00 s\n"
            "test    failed         0.00 s  exit status 1\n"
            "  | test speaks\n"
            "gitgates pre-commit: blocked by `test`\n",
            id="pipeline, its end fails",
        ),
        pytest.param(
            SUBROUTINE,
            set(),
            0,
            ["check", "reticulate", "test"],
            "check       passed         0.00 s\n"
            "reticulate  passed         0.00 s\n"
            "test        passed         0.00 s\n"
            "gitgates pre-commit: 3 gates passed\n",
            id="subroutine, the list resumes",
        ),
        pytest.param(
            SUBROUTINE,
            {"reticulate"},
            1,
            ["check", "reticulate"],
            "check       passed         0.00 s\n"
            "reticulate  failed         0.00 s  exit status 1\n"
            "  | reticulate speaks\n"
            "test        not run      the run ended at `reticulate`\n"
            "gitgates pre-commit: blocked by `reticulate`\n",
            id="subroutine, it fails",
        ),
        pytest.param(
            SUBROUTINE,
            {"check"},
            1,
            ["check"],
            "check       failed         0.00 s  exit status 1\n"
            "  | check speaks\n"
            "test        not run      the run ended at `check`\n"
            "gitgates pre-commit: blocked by `check`\n",
            id="subroutine, its caller fails",
        ),
        pytest.param(
            CRITICAL,
            {"scan"},
            1,
            ["scan"],
            "security-scan  failed         0.00 s  exit status 1\n"
            "  | scan speaks\n"
            "test           not run      the run ended at `security-scan`\n"
            "gitgates pre-commit: stopped by `security-scan`\n",
            id="critical",
        ),
        pytest.param(
            UNUSUAL,
            set(),
            1,
            ["check"],
            "check  passed         0.00 s\n"
            "  | check speaks\n"
            "test   not run      the run ended at `check`\n"
            "gitgates pre-commit: blocked: gate `check` passed, and its on_pass is BLOCK\n",
            id="unusual, it passes",
        ),
        pytest.param(
            UNUSUAL,
            {"check"},
            1,
            ["check"],
            "check  failed         0.00 s  exit status 1\n"
            "  | check speaks\n"
            "test   not run      the run ended at `check`\n"
            "gitgates pre-commit: stopped by `check`\n",
            id="unusual, it fails",
        ),
        pytest.param(
            RESCUE,
            {"check"},
            0,
            ["check", "format", "test"],
            "check   failed         0.00 s  exit status 1\n"
            "  | check speaks\n"
            "format  passed         0.00 s\n"
            "test    passed         0.00 s\n"
            "gitgates pre-commit: passed with a warning: gate `check` failed (exit status 1), "
            "but `format` passed\n",
            id="a failure that its chain rescues is a warning",
        ),
        pytest.param(
            RESCUE + 'on_fail = "CONTINUE"\n[gates.unused]\ncommand = "true"\n',
            {"check", "test"},
            0,
            ["check", "format", "test"],
            "check   failed         0.00 s  exit status 1\n"
            "  | check speaks\n"
            "format  passed         0.00 s\n"
            "test    failed         0.00 s  exit status 1\n"
            "  | test speaks\n"
            "gitgates pre-commit: passed with a warning: gate `check` failed (exit status 1), "
            "but `format` passed; gate `test` failed (exit status 1)\n",
            id="a rescued failure and one that goes on are both named",
        ),
        pytest.param(
            RESCUE,
            {"check", "format"},
            1,
            ["check", "format"],
            "check   failed         0.00 s  exit status 1\n"
            "  | check speaks\n"
            "format  failed         0.00 s  exit status 1\n"
            "  | format speaks\n"
            "test    not run      the run ended at `format`\n"
            "gitgates pre-commit: blocked by `format`\n",
            id="a chain that fails rescues nothing",
        ),
        pytest.param(
            CHECK_TEST.replace('"test"', '"tset"') + STRICT,
            set(),
            1,
            ["check"],
            "check  passed         0.00 s\n"
            "tset   not started  gate `tset` is listed but not defined\n"
            "gitgates pre-commit: stopped by `tset`\n",
            id="an undefined gate stops",
        ),
        pytest.param(
            "[gates.check]\non_pass = 'STOP'\n",
            set(),
            1,
            [],
            "check  not started  gate `check` has no command\n"
            "test   not run      the run ended at `check`\n"
            "gitgates pre-commit: stopped by `check`\n",
            id="a gate without a command stops",
        ),
        pytest.param(
            '[gates.check]\ncommand = "$CHECK"\non_pass = "nirvana"\n',
            set(),
            1,
            ["check"],
            "check    passed         0.00 s\n"
            "nirvana  not started  gate `nirvana` is listed but not defined\n"
            "test     not run      the run ended at `nirvana`\n"
            "gitgates pre-commit: stopped by `nirvana`\n",
            id="a chain to an undefined gate stops",
        ),
    ],
)
def test_example_configurations(
    repo: Repo, config: str, failing: set[str], status: int, ran: list[str], said: str
) -> None:
    assert run_hook(repo, config, failing) == (status, said, ran)


def test_collect_runs_everything_and_reports_every_failure(repo: Repo) -> None:
    config = STRICT + CHECK_TEST + 'strategy = "collect"\n'
    status, said, ran = run_hook(repo, "jobs = 1\n" + config, {"check", "test"})
    assert (status, ran) == (1, ["check", "test"])
    assert said == (
        "check  failed         0.00 s  exit status 1\n"
        "  | check speaks\n"
        "test   failed         0.00 s  exit status 1\n"
        "  | test speaks\n"
        "gitgates pre-commit: blocked by `check`, `test`\n"
    )


def test_a_gate_reached_twice_runs_once(repo: Repo) -> None:
    config = SUBROUTINE.replace('[gates.test]\ncommand = "$TEST"', "") + (
        '[gates.test]\ncommand = "$TEST"\non_pass = "reticulate"\n'
    )
    status, _said, ran = run_hook(repo, config, set())
    assert (status, ran) == (0, ["check", "reticulate", "test"])
