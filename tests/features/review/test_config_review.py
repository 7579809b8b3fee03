"""The settings of the built-in gate `review`, and the hooks that list it."""

from __future__ import annotations

import pytest
from config_support import fatal, read, table, table_in
from conftest import Repo
from each_case import each_case

from gitgates.features.review.config import Review, Weighting

LISTED = '[hooks.Stop]\ngates = ["review"]\n'
WEIGHTS = "Try weights = { code = 1, tests = 0.5, documentation = 0.1 }."


def test_without_its_table_it_is_as_usual() -> None:
    config, said, deferred = read(LISTED)
    assert (table_in(config, Review), said, deferred) == (table(Review), "", "")


def test_all_of_it() -> None:
    config, said, deferred = read(
        LISTED
        + """
        [review]
        mode = "require"
        required = true
        prefix = "#r"
        min_lines = 0
        min_files = 2.5
        weights = { tests = 1 }
        tests = ["spec/"]
        documentation = ["!docs/api/"]
        generated = ["*.snap"]
        critical = ["auth/"]
        ignore = ["*.csv"]
        skills = ["kit:review"]
        agents = ["checker"]
        reviewer = "kit:checker"
        reviewer_model = "inherit"
        reviewer_commands = ["git show"]
        second_opinions = ["codex exec -"]
        opinion_timeout = "5m"
        """
    )
    assert (said, deferred) == ("", "")
    assert table_in(config, Weighting) == table(
        Weighting,
        min_lines=0.0,
        min_files=2.5,
        weights=(1.0, 1.0, 0.1),
        tests=("spec/",),
        documentation=("!docs/api/",),
        generated=("*.snap",),
        critical=("auth/",),
        ignore=("*.csv",),
    )
    assert table_in(config, Review) == table(
        Review,
        mode="require",
        required=True,
        prefix="#r",
        skills=("kit:review",),
        agents=("checker",),
        reviewer="kit:checker",
        reviewer_model="inherit",
        reviewer_commands=("git show",),
        second_opinions=("codex exec -",),
        opinion_timeout_s=300.0,
    )


@each_case(
    ("toml", "said"),
    [
        (
            'review = "require"',
            (
                'review: got "require", expected a table. '
                'Try [tool.gitgates.review] with mode = "remind", and list `review` in a hook.'
            ),
        ),
        (
            '[review]\nmode = "strict"',
            'review.mode: got "strict", expected one of remind, require, off',
        ),
        ("[review]\nmode = true", "review.mode: got true, expected one of remind, require, off"),
        (
            '[review]\nrequired = "yes"',
            'review.required: got "yes", expected true or false, without quotes',
        ),
        (
            '[review]\nprefix = "please review"',
            (
                'review.prefix: got "please review", expected one word without a colon, such '
                "as #review, or an empty string"
            ),
        ),
        (
            '[review]\nprefix = "a:b"',
            (
                'review.prefix: got "a:b", expected one word without a colon, such as #review, '
                "or an empty string"
            ),
        ),
        (
            "[review]\nmin_lines = -1",
            "review.min_lines: got -1, expected a number from 0 to 1,000,000,000",
        ),
        (
            "[review]\nmin_lines = true",
            "review.min_lines: got true, expected a number from 0 to 1,000,000,000",
        ),
        (
            "[review]\nmin_files = inf",
            "review.min_files: got inf, expected a number from 0 to 1,000,000,000",
        ),
        (
            "[review]\nmin_files = nan",
            "review.min_files: got nan, expected a number from 0 to 1,000,000,000",
        ),
        (
            "[review]\nweights = 1",
            (
                "review.weights: got 1, expected a table with the keys `code`, `tests` and "
                f"`documentation`. {WEIGHTS}"
            ),
        ),
        (
            "[review]\nweights = { docs = 1 }",
            (
                "review.weights: got { docs = 1 }, expected a table with the keys `code`, `tests` "
                f"and `documentation`. {WEIGHTS}"
            ),
        ),
        (
            '[review]\nweights = { code = "1" }',
            (
                'review.weights: got { code = "1" }, expected numbers from 0 to 1,000,000,000. '
                f"{WEIGHTS}"
            ),
        ),
        (
            '[review]\ncritical = "auth/"',
            'review.critical: got "auth/", expected an array of strings. Try ["auth/"].',
        ),
        ("[review]\nskills = [1]", "review.skills[0]: got 1, expected text in quotes"),
        (
            '[review]\nreviewer = ""',
            'review.reviewer: got "", expected one name, without spaces and patterns',
        ),
        (
            '[review]\nreviewer_model = "the best"',
            'review.reviewer_model: got "the best", expected one name, without spaces and patterns',
        ),
        (
            '[review]\nmin_line = 1\nzzz = 1\n"weigths" = {}',
            (
                "review.min_line: unknown key. Did you mean `min_lines`?\n"
                "gitgates.toml: review.zzz: unknown key. Known keys: mode, required, weakened, "
                "prefix, min_lines, min_files, weights, tests, documentation, generated, critical, "
                "ignore, skills, agents, reviewer, reviewer_model, reviewer_commands, "
                "second_opinions, opinion_timeout.\n"
                "gitgates.toml: review.weigths: unknown key. Did you mean `weights`?"
            ),
        ),
        (
            '[gates.review]\ncommand = "x"',
            (
                "gates.review: `review` is the name of an action or of a built-in policy. "
                "Choose another name for the gate."
            ),
        ),
    ],
)
def test_values_that_are_refused(toml: str, said: str) -> None:
    assert read(f"{toml}\n{LISTED}")[1] == f"gitgates.toml: {said}"


@each_case(
    ("toml", "said"),
    [
        (
            '[hooks.pre-commit]\ngates = ["review"]',
            (
                "hooks.pre-commit.gates: the built-in gate `review` decides whether an agent "
                "may stop"
                ". List it in Stop or SubagentStop instead."
            ),
        ),
        (
            '[hooks.headless]\ngates = ["review"]',
            (
                "hooks.headless.gates: the built-in gate `review` decides whether an agent may stop"
                ". List it in Stop or SubagentStop instead."
            ),
        ),
        (
            '[gates.a]\ncommand = "a"\non_fail = "review"',
            (
                "gates.a.on_fail: gate `review` is not defined. `review` is a built-in gate: "
                "list it in a hook only."
            ),
        ),
        (
            "[review]\nmin_lines = 1",
            (
                "review: no hook lists the gate `review`, so these settings have no effect. "
                'Add it: [tool.gitgates.hooks.Stop] gates = [..., "review"].'
            ),
        ),
        ('[hooks.SubagentStop]\ngates = ["review"]\n[review]\nmin_lines = 1', ""),
        (LISTED + '[review]\nmode = "off"', ""),
    ],
)
def test_where_it_may_stand(toml: str, said: str) -> None:
    _config, refused, deferred = read(toml)
    assert (refused, deferred) == ("", f"gitgates.toml: {said}" if said else "")


def test_local_settings_win_key_by_key() -> None:
    shared = LISTED + '[review]\nmode = "require"\nmin_lines = 10\n'
    config, said, _deferred = read(shared, '[review]\nmode = "off"\nmin_files = 1\n')
    assert said == ""
    assert table_in(config, Review) == table(Review, mode="off")
    assert table_in(config, Weighting) == table(Weighting, min_lines=10.0, min_files=1.0)


REQUIRED = LISTED + "[review]\nrequired = true\nmin_lines = 10\n"
SEEN = "Change it in gitgates.toml instead."
MINE = "the gate `review` is required and cannot be changed locally"


@each_case(
    ("local", "said"),
    [
        ('[review]\nmode = "off"', f"review.mode: {MINE}. {SEEN}"),
        ("[review]\nrequired = false", f"review.required: {MINE}. {SEEN}"),
        (
            '[review]\nmin_lines = 99\nignore = ["*"]\nopinion_timeout = 1',
            (
                f"review.min_lines: {MINE}. {SEEN}\n"
                f"gitgates.local.toml: review.ignore: {MINE}. {SEEN}\n"
                f"gitgates.local.toml: review.opinion_timeout: {MINE}. {SEEN}"
            ),
        ),
        (
            "[hooks.Stop]\ngates = []",
            (
                "hooks.Stop.gates: removes the required gate `review`. "
                "Add `review` to the list again."
            ),
        ),
    ],
)
def test_what_is_required_cannot_be_changed_locally(local: str, said: str) -> None:
    assert read(REQUIRED, local)[1] == f"gitgates.local.toml: {said}"


@each_case(
    "local",
    [
        "[review]\nmin_lines = 10",  # as it is
        '[review]\nmode = "remind"',  # as it is where nothing is said
        '[gates.mine]\ncommand = "x"\n[hooks.Stop]\ngates = ["mine", "review"]',
    ],
)
def test_what_leaves_it_alone(local: str) -> None:
    assert fatal(REQUIRED, local) == ""


def test_required_locally_only() -> None:
    assert fatal(LISTED, "[review]\nrequired = true\nmin_lines = 1\n") == ""


PLAN = """\
Stop: 2 gates, sequence; on 1 path: pyproject.toml

1. check: always runs
   command   true
   timeout   5 min
   on pass   CONTINUE
   on fail   BLOCK

2. review: skipped: it is evaluated when an agent stops

the answer depends on the session: no session has begun yet in this worktree
"""


@pytest.fixture(name="listed")
def _listed(repo: Repo) -> Repo:
    repo.config('[gates.check]\ncommand = "true"\n[hooks.Stop]\ngates = ["check", "review"]\n')
    return repo


def test_explain_says_who_decides_it(listed: Repo) -> None:
    done = listed.gitgates("explain", "Stop", env={"GITGATES_SKIP": "review"})
    assert (done.returncode, done.stdout.decode(), done.stderr) == (
        0,
        PLAN,
        b"",
    )


def test_a_run_by_hand_skips_it(listed: Repo) -> None:
    done = listed.gitgates("run", "Stop")
    said = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (0, b"")
    assert said[1:] == [
        "review  skipped      it is evaluated when an agent stops",
        "gitgates Stop: 1 gate passed, 1 gate skipped",
    ]


def test_settings_without_effect_are_told_by_check(repo: Repo) -> None:
    repo.config("[review]\nmin_lines = 1\n")
    done = repo.gitgates("check")
    assert done.returncode == 78
    assert b"review: no hook lists the gate `review`" in done.stdout + done.stderr
