"""What `gitgates init` makes of the names of tasks and of well-known files. Nothing is run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gitgates.setup.discover.candidates import KINDS, TryResult
from gitgates.setup.discover.propose import (
    QUICK_S,
    Choice,
    agents_used,
    choose,
    inspect_project,
    propose,
)

PROGRAMS = (
    "make just task npm pnpm yarn bun deno composer bundle mix cargo cargo-fmt pixi hatch mise"
)


class Files:
    """A folder of files, and a PATH of programs that do nothing."""

    def __init__(self, tmp_path: Path) -> None:
        self.root, self.bin = tmp_path / "root", tmp_path / "bin"
        self.root.mkdir()
        self.bin.mkdir()

    def write(self, files: dict[str, str], programs: str = "") -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if text.startswith("#!") else 0o644)
        for program in programs.split():
            (self.bin / program).write_text("#!/bin/sh\n")
            (self.bin / program).chmod(0o755)

    def choose(self, outcomes: dict[str, TryResult] | None = None) -> Choice:
        """Choose gates; `outcomes`: command → what was seen of it."""
        inspection = inspect_project(str(self.root), {"PATH": str(self.bin)})
        if outcomes is None:
            return choose(inspection)
        keys = {each.command: each.key for each in inspection.candidates}
        if inspection.framework:
            keys["pre-commit run --all-files"] = inspection.framework.candidate.key
        return choose(inspection, {keys[command]: seen for command, seen in outcomes.items()})

    def gates(self, files: dict[str, str], programs: str = PROGRAMS) -> dict[str, str]:
        """Return gate → command, of a project that is tried: fixers count."""
        self.write(files, programs)
        return {each.name: each.candidate.command for each in self.choose({}).proposals}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


MIX = """\
defmodule X.MixProject do
  def project do
    [app: :x, deps: deps(), aliases: aliases()]
  end
  defp aliases do
    [lint: ["format", "credo"], setup: ["deps.get"]]
  end
end
"""
RAKE = """\
require "rubocop/rake_task"
RuboCop::RakeTask.new
RSpec::Core::RakeTask.new(:spec)
desc "Types"
task :typecheck do
  sh "srb"
end
"""
NOX = """\
import nox
@nox.session(python=["3.11", "3.12"])
@nox.parametrize("x", [1])
def tests(session): ...
@nox.session(name="type-check", venv_backend=None)
def types_of_all(session): ...
def lint(session): ...
"""
MAKE = """\
.PHONY: lint test
lint := no
include other.mk
lint fmt: $(SRC) | venv ## checks
\t@ruff check
check:: x
\tone
build/out.o: a.c
deploy:
"""
JUST = """\
set shell := ["bash", "-c"]
alias t := test
test *args:
  pytest {{ args }}
@lint path="src dir" +rest='x': build
  ruff
check target:
  echo {{ target }}
_types:
  mypy
"""
POE = "[tool.poe.tasks]\nlint = 'x'\n[tool.poe.tasks.test]\ncmd = 'y'\n"
HATCH = "[tool.hatch.envs.default.scripts]\ntest='x'\n[tool.hatch.envs.style.scripts]\nlint='x'\n"
PIXI = "[tasks]\nlint = 'x'\n[feature.dev.tasks]\ntest = 'x'\n"


@pytest.mark.samples(6)
@pytest.mark.parametrize(
    ("texts", "gates"),
    [
        ({"Makefile": MAKE}, {"format": "make fmt", "lint": "make lint", "test": "make check"}),
        ({"justfile": JUST}, {"lint": "just lint", "test": "just test"}),
        (
            {"package.json": json.dumps({"scripts": {"lint:check": "x", "test": "y"}})},
            {"lint": "npm run lint:check", "test": "npm run test"},
        ),
        (
            {"Taskfile.yml": "tasks:\n  fmt-check: x\n  fmt: y\n  it: z\n"},
            {"format": "task fmt-check"},
        ),
        ({"deno.jsonc": '{\n  // how\n  "tasks": {"test": "x"}\n}\n'},
         {"format": "deno fmt --check", "lint": "deno lint", "test": "deno task test"}),
        ({"composer.json": '{"scripts": {"phpcs": "x", "phpstan": "y", "test": ["a", "b"]}}'},
         {"lint": "composer run phpcs", "typecheck": "composer run phpstan",
          "test": "composer run test"}),
        ({"Rakefile": RAKE}, {"lint": "bundle exec rake rubocop",
                              "typecheck": "bundle exec rake typecheck",
                              "test": "bundle exec rake spec"}),
        ({"mix.exs": MIX, ".formatter.exs": "[]"},
         {"format": "mix format --check-formatted", "lint": "mix lint", "test": "mix test"}),
        ({".cargo/config.toml": "[alias]\nlint = 'clippy'\n", "Cargo.toml": "[package]\n"},
         {"format": "cargo fmt --all --check", "lint": "cargo lint",
          "test": "cargo test --workspace"}),
        ({"noxfile.py": NOX}, {"typecheck": "nox -s type-check", "test": "nox -s tests"}),
        ({"tox.ini": "[tox]\n[testenv]\n[testenv:lint]\n[testenv:docs]\n"},
         {"lint": "tox -e lint", "test": "tox -e py"}),
        ({"pyproject.toml": POE}, {"lint": "poe lint", "test": "poe test"}),
        ({"pyproject.toml": HATCH}, {"lint": "hatch run style:lint", "test": "hatch run test"}),
        ({"pixi.toml": PIXI}, {"lint": "pixi run lint", "test": "pixi run test"}),
        ({"mise.toml": "[tasks.lint]\nrun = 'x'\n", "mise-tasks/test.sh": "#!/bin/sh\n"},
         {"lint": "mise run lint", "test": "mise run test"}),
        ({"scripts/lint.sh": "#!/bin/sh\n", "test": "#!/bin/sh\n", "scripts/types": "no program"},
         {"lint": "scripts/lint.sh", "test": "./test"}),
    ],
)  # fmt: skip
def test_tasks_are_found_by_their_names(
    files: Files, texts: dict[str, str], gates: dict[str, str]
) -> None:
    assert files.gates(texts, f"{PROGRAMS} nox tox poe") == gates


@pytest.mark.parametrize(
    ("lock", "call"),
    [
        ("pnpm-lock.yaml", "pnpm run lint"),
        ("yarn.lock", "yarn run lint"),
        ("bun.lock", "bun run lint"),
    ],
)
def test_the_lock_file_tells_the_package_manager(files: Files, lock: str, call: str) -> None:
    assert files.gates({"package.json": '{"scripts": {"lint": "x"}}', lock: ""}) == {"lint": call}


def test_a_script_that_npm_has_made_is_no_test(files: Files) -> None:
    script = 'echo "Error: no test specified" && exit 1'
    assert files.gates({"package.json": json.dumps({"scripts": {"test": script}})}) == {}


RUFF = "[tool.ruff.format]\n[tool.pytest.ini_options]\n[tool.mypy]\nstrict = true\n"
GROUPS = "[tool.ruff]\n[dependency-groups]\ndev = ['pytest']\nstyle = ['ruff>=1']\n"
UV_LOCK = 'version = 1\n[[package]]\nname = "ruff"\n'


@pytest.mark.parametrize(
    ("texts", "programs", "gates"),
    [
        (
            {"pyproject.toml": RUFF},
            "ruff pytest",
            {
                "format": "ruff format --check --force-exclude",
                "lint": "ruff check --no-fix --force-exclude",
                "test": "pytest",
            },
        ),
        (
            {"pyproject.toml": GROUPS, "uv.lock": UV_LOCK},
            "uv",
            {"lint": "uv run --group style ruff check --no-fix --force-exclude"},
        ),
        (
            {"pyproject.toml": "[tool.ruff]\n", ".venv/bin/ruff": "#!/bin/sh\n"},
            "",
            {"lint": ".venv/bin/ruff check --no-fix --force-exclude"},
        ),
        ({"manage.py": "import django\n"}, "python3",
         {"check": "python3 manage.py check", "test": "python3 manage.py test"}),
        ({"go.mod": "module x\n"}, "go", {"lint": "go vet ./...", "test": "go test ./..."}),
        ({"Cargo.toml": "[package]\n"}, "cargo", {"test": "cargo test --workspace"}),
        ({"pom.xml": "<x/>", "mvnw": "#!/bin/sh\n"}, "", {"test": "./mvnw -q test"}),
        ({"build.gradle.kts": "plugins { spotless }", "gradlew": "#!/bin/sh\n"}, "",
         {"format": "./gradlew spotlessCheck", "test": "./gradlew test"}),
        ({"X.sln": ""}, "dotnet",
         {"format": "dotnet format --verify-no-changes", "test": "dotnet test"}),
    ],
)  # fmt: skip
def test_tools_are_found_by_their_files(
    files: Files, texts: dict[str, str], programs: str, gates: dict[str, str]
) -> None:
    assert files.gates(texts, programs) == gates


def test_what_a_missing_program_would_run_is_left_out(files: Files) -> None:
    files.write({"justfile": "lint:\n  x\n", "go.mod": "module x\n"}, "go gofmt")
    choice = files.choose()
    assert [each.name for each in choice.proposals] == ["format", "lint", "test"]
    assert choice.tables()["lint"]["command"] == "go vet ./..."
    (left_out,) = choice.left_out
    assert (left_out.candidate.command, left_out.why_not) == ("just lint", "just is not found")


def test_a_shim_that_may_start_nothing_is_said_to_be_one(files: Files) -> None:
    files.bin = files.bin / "shims"
    files.bin.mkdir()
    files.write({"justfile": "lint:\n  x\n"}, "just")
    (left_out,) = files.choose().left_out
    assert left_out.why_not == f"just is only a shim ({files.bin}/just), which may start nothing"


@pytest.mark.parametrize("setup", [(), ("make venv",)])
def test_a_push_runs_in_the_working_tree_if_nothing_installs_its_programs_elsewhere(
    files: Files, setup: tuple[str, ...]
) -> None:
    files.write({"pytest.ini": "", ".venv/bin/pytest": "#!/bin/sh\n"})
    edit = propose(str(files.root), files.choose(), setup, agent=False)
    assert (b'unstaged = "hide"' in edit.after) is (not setup)


def test_packages_that_are_not_installed_are_named_with_the_command_for_it(files: Files) -> None:
    package = {"scripts": {"lint": "x"}, "devDependencies": {"x": "1"}}
    files.write({"package.json": json.dumps(package), "package-lock.json": "{}"}, PROGRAMS)
    (left_out,) = files.choose().left_out
    wanted = "its packages are not installed: node_modules is missing; first: npm ci"
    assert (left_out.candidate.command, left_out.why_not) == ("npm run lint", wanted)
    files.write({"node_modules/x/package.json": "{}"})
    assert files.choose().left_out == ()


def test_a_command_runs_in_the_folder_of_the_file_that_names_it(files: Files) -> None:
    package = json.dumps({"scripts": {"lint": "x"}})
    files.write({"go.mod": "module x\n", "web/package.json": package, "api/go.mod": ""}, PROGRAMS)
    files.write({"docs/package.json": package, "web/test/package.json": package}, "go")
    tables = files.choose().tables()
    assert tables["lint-javascript"]["working_dir"] == "web"
    assert tables["lint-javascript"]["files"] == ["web/"]
    assert tables["lint-go"]["command"] == "go vet ./..."
    assert "working_dir" not in tables["lint-go"]
    assert set(tables) == {"lint-javascript", "lint-go", "test"}  # the root has Go already


def test_what_is_left_out_of_two_languages_has_two_names(files: Files) -> None:
    files.write({"package.json": '{"scripts": {"test": "x"}}', "mix.exs": ""})
    left_out = files.choose().left_out
    assert {each.name: each.candidate.command for each in left_out} == {
        "test-javascript": "npm run test",
        "test-elixir": "mix test",
    }


def test_many_folders_of_one_kind_are_named(files: Files) -> None:
    files.write({f"packages/{name}/package.json": "{}" for name in "abcd"})
    (note,) = inspect_project(str(files.root), {}).notes
    what = "4 folders contain JavaScript or TypeScript, such as packages/a"
    assert note == f"{what}: add gates for the ones that you want"


def hooks_of(
    files: Files, texts: dict[str, str], seen: dict[str, TryResult]
) -> dict[str, list[str]]:
    files.write(texts, PROGRAMS)
    return {hook: [*names] for hook, names in files.choose(seen).hooks.items()}


TASKS = {"Makefile": "lint:\n\tx\ntest:\n\tx\n"}
FAILED = TryResult(seconds=0.1, has_failed=True)  # it may have ended at its start
QUICK, SLOW = TryResult(seconds=QUICK_S), TryResult(seconds=QUICK_S + 1)


@pytest.mark.parametrize(
    ("texts", "lint", "test", "committed", "pushed"),
    [
        ({}, QUICK, QUICK, ["lint", "test"], ["lint", "test"]),
        ({}, FAILED, FAILED, ["lint"], ["lint", "test"]),
        ({}, SLOW, QUICK, ["test"], ["lint", "test"]),
        ({}, SLOW._replace(has_failed=True), SLOW, [], ["lint", "test"]),
        ({"playwright.config.ts": ""}, QUICK, QUICK, ["lint"], ["lint", "test"]),
        ({"package.json": '{"workspaces": ["x"]}'}, QUICK, QUICK, [], ["lint", "test"]),
        ({".husky/pre-commit": "x", ".husky/_/pre-push": "x"}, QUICK, QUICK, [], ["lint", "test"]),
        ({"lefthook.yml": "pre-push: {}\n"}, QUICK, QUICK, ["lint", "test"], []),
        ({}, TryResult(seconds=1.0, changed=2), SLOW, ["lint"], ["test"]),
        ({}, TryResult(why_not="x"), SLOW, [], ["test"]),
    ],
)
def test_hooks_follow_from_what_was_seen(
    files: Files,
    texts: dict[str, str],
    lint: TryResult,
    test: TryResult,
    committed: list[str],
    pushed: list[str],
) -> None:
    hooks = hooks_of(files, {**TASKS, **texts}, {"make lint": lint, "make test": test})
    assert (hooks.get("pre-commit", []), hooks.get("pre-push", [])) == (committed, pushed)


@pytest.mark.parametrize(
    ("seen", "keys"),
    [
        (QUICK, {}),
        (SLOW, {"reuse": True}),
        (TryResult(seconds=1.0, changed=1), {"writes": True}),
        (TryResult(seconds=1.0, has_failed=True), {"on_fail": "CONTINUE"}),
    ],
)
def test_keys_follow_from_what_was_seen(
    files: Files, seen: TryResult, keys: dict[str, object]
) -> None:
    files.write(TASKS, PROGRAMS)
    always = {"description": "Linting", "command": "make lint", "timeout": "2m"}
    assert files.choose({"make lint": seen}).tables()["lint"] == always | keys


def test_a_fixer_slower_than_a_commit_may_be_is_left_out(files: Files) -> None:
    files.write(TASKS, PROGRAMS)
    choice = files.choose({"make lint": SLOW._replace(changed=1), "make test": SLOW})
    assert [each.why_not for each in choice.left_out] == [
        "it changes files, and takes too long before a commit"
    ]


def test_a_task_that_may_change_files_counts_only_if_it_is_tried(files: Files) -> None:
    files.write({"Makefile": "fmt:\n\tx\n"}, PROGRAMS)
    assert files.choose().proposals == ()
    assert [each.name for each in files.choose({}).proposals] == ["format"]


def test_the_next_candidate_takes_the_place_of_one_that_cannot_run(files: Files) -> None:
    scripts = {"test": "x", "test:unit": "y"}
    files.write(
        {"package.json": json.dumps({"scripts": scripts}), "vitest.config.ts": ""}, PROGRAMS
    )
    choice = files.choose({"npm run test": TryResult(why_not="it still ran")})
    assert choice.tables()["test"]["command"] == "npm run test:unit"
    assert [each.why_not for each in choice.left_out] == ["it still ran"]


PRE_COMMIT = "repos:\n- repo: https://example.org/x\n  hooks:\n  - {id: ruff}\n"


def test_all_hooks_of_pre_commit_are_one_gate(files: Files) -> None:
    files.write({".pre-commit-config.yaml": PRE_COMMIT, **TASKS, "ruff.toml": "[format]\n"}, "ruff")
    files.write({}, f"{PROGRAMS} pre-commit")
    choice = files.choose()
    assert choice.tables()["pre-commit"] == {
        "description": "The hooks of .pre-commit-config.yaml",
        "pre-commit": True,
        "timeout": "5m",
    }
    assert choice.hooks == {
        "pre-commit": ["pre-commit"],
        "pre-push": ["pre-commit", "lint", "test"],
        "manual": ["pre-commit", "lint", "test"],
    }


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (TryResult(why_not="no network"), "no network"),
        (TryResult(why_not="it still ran", runs_on=True), ""),
        (TryResult(has_failed=True, seconds=9.0, changed=3), ""),  # a commit has fewer files
    ],
)
def test_pre_commit_is_left_out_only_if_it_cannot_run(
    files: Files, seen: TryResult, why: str
) -> None:
    files.write({".pre-commit-config.yaml": PRE_COMMIT}, "pre-commit")
    choice = files.choose({"pre-commit run --all-files": seen})
    assert (choice.no_framework, "pre-commit" in choice.tables()) == (why, not why)


def test_stages_of_pre_commit_and_prek(files: Files) -> None:
    hooks = 'hooks = [{ id = "a" }, { id = "b", stages = ["commit-msg"] }]'
    text = f'default_stages = ["pre-commit"]\n[[repos]]\nrepo = "x"\n{hooks}\n'
    files.write({"prek.toml": text, "justfile": "lint:\n  prek run\n"}, "just prek")
    choice = files.choose()
    assert choice.tables()["pre-commit"]["runner"] == "prek"
    assert choice.hooks["pre-commit"] == ["pre-commit"]
    assert choice.hooks["commit-msg"] == ["pre-commit"]
    assert choice.hooks["pre-push"] == ["lint"]


def test_a_framework_that_runs_us_is_no_gate(files: Files) -> None:
    files.write({".pre-commit-config.yaml": PRE_COMMIT.replace("ruff", "gitgates")})
    assert files.choose().framework is None


WORKFLOW = """\
on: push
jobs:
  check:
    steps:
      - name: Run tests
        run: cargo test --all-features
      - run: |
          pip install pytest
          # cargo lint
          make lint
          cargo clippy -- -D warnings
      - uses: x/test@v1
"""


def test_what_ci_runs_is_a_hint_with_its_line(files: Files) -> None:
    files.write({".github/workflows/ci.yml": WORKFLOW, **TASKS}, PROGRAMS)
    files.write({".gitlab-ci.yml": "job:\n  script:\n  - npm ci\n  - npm run lint\n  tags: [x]\n"})
    assert inspect_project(str(files.root), {"PATH": str(files.bin)}).ci == (
        ".github/workflows/ci.yml:6: cargo test --all-features",
        ".github/workflows/ci.yml:11: cargo clippy -- -D warnings",
        ".gitlab-ci.yml:4: npm run lint",
    )


@pytest.mark.parametrize(
    ("texts", "agents"),
    [
        ({"AGENTS.md": ""}, []),
        ({".claude/settings.json": '{"permissions": {"allow": []}}'}, []),
        ({".claude/settings.json": '{"hooks": {}}'}, ["claude"]),
        ({".claude/commands/x.md": ""}, ["claude"]),
        ({"CLAUDE.md": ""}, ["claude"]),
        ({".github/workflows/x.yml": ""}, []),
        ({".github/hooks/x.sh": ""}, ["copilot"]),
    ],
)
def test_an_agent_is_used_if_it_has_more_than_permissions(
    files: Files, texts: dict[str, str], agents: list[str]
) -> None:
    files.write(texts)
    assert agents_used(str(files.root)) == agents


def test_rules_that_are_a_link_to_those_of_all_agents_are_no_sign(files: Files) -> None:
    files.write({"AGENTS.md": ""})
    os.symlink("AGENTS.md", files.root / "CLAUDE.md")
    assert agents_used(str(files.root)) == []


def test_each_row_of_the_table_is_of_a_kind() -> None:
    from gitgates.setup.discover.folder import KNOWN

    kinds = {tool["kind"] for tools in KNOWN["tools"].values() for tool in tools}
    assert kinds <= KINDS.keys()
    assert KNOWN["tools"].keys() <= KNOWN["ecosystems"].keys()
    assert all(("files" in row) != ("folders" in row) for row in KNOWN["runners"])
