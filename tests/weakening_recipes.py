"""Recipes that check less, and recipes that only look so: two tables, as of `weakening_cases`."""

from __future__ import annotations

from weakening_samples import HOOKS, Case, Files, but, one

from gitgates.features.review.weakening import finding as F  # noqa: N812 - one letter in a long table

M = "Makefile"
C = ".pre-commit-config.yaml"
MAKE = """\
.PHONY: test lint clean

test: build
	pytest -q --cov-fail-under=90

lint:
	@ruff check .
	$(PYTHON) -m mypy src

clean:
	rm -rf build
"""
JUST = (
    "test *args:\n    uv run pytest {{args}}\n\n"
    "lint:\n    npm run lint\n    cargo clippy -- -D warnings\n"
)
SCRIPT = "#!/bin/sh\nset -eu\ngo vet ./...\ngo test -race ./...\n"
TOX = "[tox]\nenvlist = py\n[testenv]\ndeps = pytest\ncommands =\n    pytest -q\n    mypy src\n"
PACKAGE = '{"scripts": {"test": "jest", "lint": "eslint ."}}'

RUN_LESS: tuple[Case, ...] = (
    one(
        "|| true in a Makefile",
        M,
        MAKE,
        ("=90", "=90 || true"),
        F.RECIPE,
        "pytest -q --cov-fail-under=90 || true",
    ),
    one("; true", M, MAKE, ("=90", "=90; true"), F.RECIPE, "; true"),
    one("|| :", M, MAKE, ("mypy src", "mypy src || :"), F.RECIPE, "mypy src || :"),
    one("|| exit 0", M, MAKE, ("mypy src", "mypy src || exit 0"), F.RECIPE, "|| exit 0"),
    one("|| echo", M, MAKE, ("mypy src", "mypy src || echo failed"), F.RECIPE, "|| echo failed"),
    one("a dash", M, MAKE, ("\t@ruff", "\t-ruff"), F.RECIPE, "-ruff check ."),
    one("a dash and an at", M, MAKE, ("\t@ruff", "\t@-ruff"), F.RECIPE, "@-ruff check ."),
    one("a check removed", M, MAKE, ("\t@ruff check .\n", ""), F.RECIPE, "gone: `ruff check .`"),
    one(
        "a check put into a comment",
        M,
        MAKE,
        ("\t@ruff", "\t# @ruff"),
        F.RECIPE,
        "gone: `ruff check .`",
    ),
    one(
        "a check that only speaks",
        M,
        MAKE,
        ("\t@ruff check .", "\t@echo ruff check ."),
        F.RECIPE,
        "gone: `ruff",
    ),
    one(
        "a check that is true",
        M,
        MAKE,
        ("pytest -q --cov-fail-under=90", "true"),
        F.RECIPE,
        "gone: `pytest",
    ),
    one(
        "a threshold",
        M,
        MAKE,
        ("=90", "=10"),
        F.RECIPE,
        "is now `pytest -q --cov-fail-under=10`",
    ),
    one(
        "tests left out",
        M,
        MAKE,
        ("=90", "=90 --deselect tests/test_a.py"),
        F.RECIPE,
        "--deselect",
    ),
    one("tests chosen", M, MAKE, ("=90", '=90 -k "not slow"'), F.RECIPE, "-k"),
    one(".IGNORE", M, MAKE, ("clean:\n", ".IGNORE: test\nclean:\n"), F.RECIPE, ".IGNORE: test"),
    one(
        "|| true in a justfile",
        "justfile",
        JUST,
        ("{{args}}", "{{args}} || true"),
        F.RECIPE,
        "|| true",
    ),
    one(
        "a dash in a justfile",
        "justfile",
        JUST,
        ("    npm", "    -npm"),
        F.RECIPE,
        "-npm run lint",
    ),
    one(
        "warnings that are none",
        "justfile",
        JUST,
        (" -- -D warnings", ""),
        F.RECIPE,
        "is now `cargo clippy`",
    ),
    one(
        "|| true in a script",
        "scripts/check.sh",
        SCRIPT,
        ("vet ./...", "vet ./... || true"),
        F.RECIPE,
        "go vet",
    ),
    one(
        "go test removed",
        "ci/run.sh",
        SCRIPT,
        ("go test -race ./...\n", ""),
        F.RECIPE,
        "gone: `go test -race",
    ),
    one("no race", "ci/run.sh", SCRIPT, (" -race", ""), F.RECIPE, "is now `go test ./...`"),
    one("set +e", "scripts/test", SCRIPT, ("go vet", "set +e\ngo vet"), F.RECIPE, "set +e"),
    one(
        "|| true in tox.ini",
        "tox.ini",
        TOX,
        ("pytest -q", "pytest -q || true"),
        F.SETTING,
        "commands: - pytest -q",
    ),
    one(
        "a dash in tox.ini",
        "tox.ini",
        TOX,
        ("    pytest -q", "    - pytest -q"),
        F.SETTING,
        "commands: - pytest -q",
    ),
    one(
        "a command of tox.ini removed",
        "tox.ini",
        TOX,
        ("    mypy src\n", ""),
        F.SETTING,
        "- mypy src",
    ),
    one(
        "a script that may fail",
        "package.json",
        PACKAGE,
        ('"jest"', '"jest || true"'),
        F.SETTING,
        "jest || true",
    ),
    one(
        "a script removed",
        "package.json",
        PACKAGE,
        (', "lint": "eslint ."', ""),
        F.SETTING,
        "scripts.lint",
    ),
    one(
        "success codes of nox",
        "noxfile.py",
        'session.run("pytest")\n',
        ('("pytest")', '("pytest", success_codes=[0, 1])'),
        F.SETTING,
        "success_codes",
    ),
    one(
        "a hook that runs by hand",
        C,
        HOOKS,
        ("id: mypy", "id: mypy\n        stages: [manual]"),
        F.SETTING,
        "repos[].hooks[].stages: + manual",
    ),
    one(
        "a hook with stages, by hand",
        C,
        but(HOOKS, ("id: mypy", "id: mypy\n        stages: [pre-push]")),
        ("pre-push", "manual"),
        F.SETTING,
        "repos[].hooks[].stages: + manual",
    ),
    ("a Makefile deleted", ((M, "test:\n\tpytest\n", None),), ((M, F.RECIPE, "gone: `pytest`"),)),
    (
        "all hooks by hand",
        ((C, HOOKS, "default_stages: [manual]\n" + HOOKS),),
        ((C, F.SETTING, "default_stages: + manual"),),
    ),
)


RUN_STILL: tuple[tuple[str, Files], ...] = (
    (
        "|| true of what is no check",
        ((M, MAKE, but(MAKE, ("rm -rf build", "rm -rf build || true"))),),
    ),
    ("a dash before what is no check", ((M, MAKE, but(MAKE, ("\trm", "\t-rm"))),)),
    ("a soft check more", ((M, MAKE, MAKE + "\nlook:\n\t-ruff check --preview . || true\n"),)),
    (
        "a check at another target",
        ((M, MAKE, but(MAKE, ("\t@ruff check .\n", "")) + "\nstyle:\n\truff check .\n"),),
    ),
    (
        "checks moved to a justfile",
        (
            (M, MAKE, None),
            (
                "justfile",
                None,
                "test:\n    pytest -q --cov-fail-under=90\nlint:\n    ruff check .\n    mypy src\n",
            ),
        ),
    ),
    (
        "checks moved to CI",
        (
            (M, MAKE, but(MAKE, ("\t$(PYTHON) -m mypy src\n", ""))),
            (
                ".github/workflows/a.yml",
                None,
                "on: push\njobs:\n  a:\n    steps:\n      - run: mypy src\n",
            ),
        ),
    ),
    (
        "a check moved to a script",
        (
            (M, MAKE, but(MAKE, ("pytest -q --cov-fail-under=90", "./scripts/run-tests.sh"))),
            ("scripts/run-tests.sh", None, "set -e\npytest -q --cov-fail-under=90\n"),
        ),
    ),
    ("one tool for another", ((M, MAKE, but(MAKE, ("$(PYTHON) -m mypy src", "pyright src"))),)),
    (
        "a program for a test",
        ((M, MAKE, but(MAKE, ("pytest -q --cov-fail-under=90", "$(MAKE) -C sub test"))),),
    ),
    ("through a variable", ((M, MAKE, but(MAKE, ("@ruff", "@$(BIN)/ruff"))),)),
    ("through uv", ((M, MAKE, but(MAKE, ("\tpytest", "\tuv run pytest"))),)),
    ("more flags", ((M, MAKE, but(MAKE, ("pytest -q", "pytest -q -n 4"))),)),
    ("a threshold more", ((M, "test:\n\tpytest\n", "test:\n\tpytest --cov-fail-under=90\n"),)),
    (
        "what is installed",
        ((M, "dev:\n\tpip install pytest ruff\n", "dev:\n\tpip install -e .\n"),),
    ),
    ("a fixer gone", ((M, "fix:\n\truff check --fix\n\truff format\n", "fix:\n\ttrue\n"),)),
    (
        "a target more",
        ((M, MAKE, but(MAKE, ("test lint clean", "test lint clean all")) + "\nall: test lint\n"),),
    ),
    ("a dash gone", ((M, but(MAKE, ("\t@ruff", "\t-ruff")), MAKE),)),
    (
        "a script that checks nothing",
        (("scripts/release.sh", "set -e\ngit tag x\n", "git tag x || true\n"),),
    ),
    ("what a test of a script says", (("tests/test_run.sh", "pytest\n", "pytest || true\n"),)),
    ("set -euo pipefail", (("ci/run.sh", SCRIPT, but(SCRIPT, ("set -eu", "set -euo pipefail"))),)),
    ("a message after a check", (("ci/run.sh", SCRIPT, SCRIPT + "echo 'go test: done'\n"),)),
    (
        "a hook that runs by itself again",
        ((C, but(HOOKS, ("id: mypy", "id: mypy\n        stages: [manual]")), HOOKS),),
    ),
    (
        "stages that say what was so",
        ((C, HOOKS, but(HOOKS, ("id: mypy", "id: mypy\n        stages: [pre-commit, pre-push]"))),),
    ),
)
