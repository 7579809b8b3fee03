"""What `gitgates init` proposes for projects of many kinds, each a few files."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from gitgates.cli.init import command

PRE_COMMIT = """\
repos:
  - repo: https://example.org/ruff
    hooks: [{id: ruff-check}, {id: ruff-format}, {id: mypy}]
"""
# name → files, the lines that are printed, gate → its keys but description and timeout, hooks
PROJECTS: dict[str, tuple[dict[str, str], str, dict[str, dict[str, object]], dict[str, str]]] = {
    "pre-commit takes the place of what it runs already": (
        {
            ".pre-commit-config.yaml": PRE_COMMIT,
            "tox.ini": "[testenv]\ncommands = pytest\n"
            "[testenv:style]\ncommands = pre-commit run -a\n"
            "[testenv:typing]\ncommands = pyright\n",
            "Makefile": "lint: docs\n\truff check .\ndocs:\n\tmypy docs\n",
        },
        """\
  pre-commit  The hooks of .pre-commit-config.yaml  (.pre-commit-config.yaml)
  typecheck   tox -e typing  (tox.ini: environment typing)
  test        tox -e py  (tox.ini: environment py)
  left out: make lint: the other gates cover it
  gate `pre-commit` replaces pre-commit's own hook, which no longer runs
""",
        {
            "pre-commit": {"pre-commit": True},
            "typecheck": {"command": "tox -e typing"},
            "test": {"command": "tox -e py", "reuse": True},
        },
        {
            "pre-commit": "pre-commit",
            "pre-push": "pre-commit typecheck test",
            "manual": "pre-commit typecheck test",
        },
    ),
    "stages of pre-commit, and prek": (
        {
            ".pre-commit-config.yaml": "default_stages: [pre-commit]\nrepos:\n- hooks:\n"
            "  - {id: black}\n  - {id: commitizen, stages: [commit-msg]}\n",
            "justfile": "lint:\n  prek run --all-files\n",
        },
        """\
  pre-commit  The hooks of .pre-commit-config.yaml  (.pre-commit-config.yaml)
  lint        just lint  (justfile: recipe lint)
  gate `pre-commit` replaces prek's own hook, which no longer runs
""",
        {"pre-commit": {"pre-commit": True, "runner": "prek"}, "lint": {"command": "just lint"}},
        {
            "pre-commit": "pre-commit",
            "commit-msg": "pre-commit",
            "pre-push": "lint",
            "manual": "lint",
        },
    ),
    "what never ends is left out, also where a need never does": (
        {
            "justfile": "watch +args='check':\n  cargo watch --exec '{{ args }}'\n"
            "test: (watch 'test')\nlint:\n  cargo clippy\n",
            "package.json": '{"scripts": {"test": "cypress open", "check": "vite dev"}}',
            "Cargo.toml": "[package]\n",
            "Makefile": "check: preview\npreview:\n\tmkdocs serve\n",
        },
        """\
languages: JavaScript or TypeScript, Rust
  lint  just lint  (justfile: recipe lint)
  test  cargo test --workspace  (Cargo.toml)
  left out: just test: it never exits, or needs a terminal (cargo watch --exec '{{ args }}')
  left out: make check: it never exits, or needs a terminal (mkdocs serve)
  left out: npm test: it never exits, or needs a terminal (cypress open)
  left out: npm run check: it never exits, or needs a terminal (vite dev)
""",
        {
            "lint": {"command": "just lint"},
            "test": {"command": "cargo test --workspace", "reuse": True},
        },
        {"pre-commit": "lint", "pre-push": "lint test", "manual": "lint test"},
    ),
    "husky with lint-staged, commitlint and a script of its own": (
        {
            "pnpm-lock.yaml": "",
            "package.json": """{
  "scripts": {"lint": "eslint .", "format": "prettier --write .", "types": "tsc", "test": "vitest"},
  "devDependencies": {"eslint": "9", "prettier": "3", "@commitlint/cli": "1"},
  "lint-staged": {
    "*.{js,ts?(x)}": ["eslint --fix", "prettier --write"],
    "*.md": "prettier --write",
    "!(*.min).css": "stylelint"
  }
}""",
            ".husky/pre-commit": '#!/bin/sh\n. "$(dirname -- "$0")/_/husky.sh"\n\n'
            "pnpm lint-staged && pnpm types\n",
            ".husky/commit-msg": "npx --no -- commitlint --edit $1\n",
            ".husky/pre-push": "if true; then\n  pnpm test\nfi\n",
        },
        """\
languages: JavaScript or TypeScript
  eslint      pnpm exec eslint --fix "$@" && pnpm exec prettier…  (package.json: lint-staged)
  prettier    pnpm exec prettier --write  (package.json: lint-staged)
  typecheck   pnpm types  (.husky/pre-commit)
  commit-msg  npx --no -- commitlint --edit "$1"  (.husky/commit-msg)
  lint        pnpm run lint  (package.json: script lint)
  test        pnpm run test --run  (package.json: script test)
  left out: package.json: lint-staged: !(*.min).css: is not read; create gates for it by hand
  left out: .husky/pre-push: is a script; create gates for it by hand
  left out: pnpm run format: it rewrites files; other gates run before a commit
  uninstall husky; otherwise, the commands taken over from it run twice
""",
        {
            "eslint": {
                "command": 'pnpm exec eslint --fix "$@" && pnpm exec prettier --write "$@"',
                "files": ["*.js", "*.ts", "*.tsx"],
                "pass_files": True,
                "writes": True,
                "restage": True,
            },
            "prettier": {
                "command": "pnpm exec prettier --write",
                "files": ["*.md"],
                "pass_files": True,
                "writes": True,
                "restage": True,
            },
            "typecheck": {"command": "pnpm types"},
            "commit-msg": {
                "command": 'npx --no -- commitlint --edit "$1"',
                "pass_hook_input": True,
            },
            "lint": {"command": "pnpm run lint"},
            "test": {"command": "pnpm run test --run", "reuse": True},
        },
        {
            "pre-commit": "eslint prettier typecheck",
            "commit-msg": "commit-msg",
            "pre-push": "typecheck lint test",
            "manual": "typecheck lint test",
        },
    ),
    "simple-git-hooks": (
        {
            "package.json": '{"simple-git-hooks": {"pre-commit": "npm run check && npm test"}, '
            '"scripts": {"check": "tsc", "test": "node --test", "lint": "eslint ."}}',
        },
        """\
languages: JavaScript or TypeScript
  check  npm run check  (package.json: simple-git-hooks.pre-commit)
  test   npm test  (package.json: simple-git-hooks.pre-commit)
  lint   npm run lint  (package.json: script lint)
  uninstall simple-git-hooks; otherwise, the commands taken over from it run twice
""",
        {
            "check": {"command": "npm run check"},
            "test": {"command": "npm test", "reuse": True},
            "lint": {"command": "npm run lint"},
        },
        {"pre-commit": "check test", "pre-push": "check test lint", "manual": "check test lint"},
    ),
    "lefthook": (
        {
            "lefthook.yml": """\
pre-commit:
  jobs:
    - name: code
      glob: "*.go"
      group:
        jobs:
          - run: golangci-lint fmt {staged_files}
            stage_fixed: true
          - run: make test
    - name: odd
      run: ./odd.sh
      skip: [merge]
      timeout: 1m30s
    - {run: ./never.sh, skip: true}
    - {name: on main, run: ./x.sh, only: [{ref: main}]}
    - {script: x.sh, runner: bash}
    - name: web
      root: web/
      glob: ["*.{js,ts}", "**/*.css", "web/x/*.md"]
      tags: [frontend]
      args: --quiet
      run: npm run lint {staged_files}
    - {run: "./b.sh {files}", name: files}
commit-msg:
  commands:
    review:
      run: ./message.sh {1}
""",
            "Makefile": "-include mk/more.mk\nlint:\n\tgolangci-lint run\n",
            "mk/more.mk": "test:\n\tgo test ./...\n",
        },
        """\
  golangci-lint  golangci-lint fmt  (lefthook.yml: pre-commit: golangci-lint fmt {staged_files})
  test           make test  (lefthook.yml: pre-commit: make test)
  odd            ./odd.sh  (lefthook.yml: pre-commit: odd)
  x              bash .lefthook/pre-commit/x.sh  (lefthook.yml: pre-commit: x.sh)
  web            npm run lint "$@" --quiet  (lefthook.yml: pre-commit: web)
  review-gate    ./message.sh "$1"  (lefthook.yml: commit-msg: review)
  lint           make lint  (Makefile: target lint)
  left out: lefthook.yml: pre-commit: odd: skip: gates have no conditions, so it runs there, too
  left out: lefthook.yml: pre-commit: ./never.sh: skip: it never runs
  left out: lefthook.yml: pre-commit: on main: only: gates have no conditions; create a \
gate for it by hand
  left out: lefthook.yml: tags: gates have no tags; `GITGATES_SKIP` names gates
  left out: lefthook.yml: pre-commit: files: a gate gets the paths of its event, not those of a \
command; create a gate for it by hand
  uninstall lefthook; otherwise, the commands taken over from it run twice
""",
        {
            "golangci-lint": {
                "command": "golangci-lint fmt",
                "files": ["*.go"],
                "pass_files": True,
                "writes": True,
                "restage": True,
            },
            "test": {"command": "make test", "files": ["*.go"], "reuse": True},
            "odd": {"command": "./odd.sh"},
            "x": {"command": "bash .lefthook/pre-commit/x.sh"},
            "web": {
                "command": 'npm run lint "$@" --quiet',
                "files": ["web/**/*.js", "web/**/*.ts", "web/**/*.css", "web/x/**/*.md"],
                "working_dir": "web",
                "pass_files": True,
            },
            "review-gate": {"command": './message.sh "$1"', "pass_hook_input": True},
            "lint": {"command": "make lint"},
        },
        {
            "pre-commit": "golangci-lint test odd x web",
            "commit-msg": "review-gate",
            "pre-push": "test lint",
            "manual": "test lint",
        },
    ),
    "scripts, of which one runs the other and one only mends": (
        {
            "scripts/check": "#!/bin/sh -e\nruff format --check src\nmypy src\nruff check src\n",
            "scripts/lint": "#!/bin/sh -e\nruff check --fix src\nruff format src\n",
            "scripts/test": '#!/bin/sh\nset -ex\nscripts/check\ncoverage run -m pytest "$@"\n',
            "scripts/build": "#!/bin/sh\n: ${1:?version}\n",
            "scripts/serve": "#!/bin/sh\nmkdocs serve\n",
        },
        """\
  check  scripts/check  (scripts/check)
  test   scripts/test  (scripts/test)
  left out: scripts/lint: it rewrites files; other gates run before a commit
""",
        {"check": {"command": "scripts/check"}, "test": {"command": "scripts/test", "reuse": True}},
        {"pre-commit": "check", "pre-push": "test", "manual": "test"},
    ),
    "a tool's default wants its paths named and its program in the environment": (
        {
            "ruff.toml": "[format]\n",
            "mypy.ini": "[mypy]\nstrict = true\n",
            "pytest.ini": "[pytest]\ntestpaths = tests\n",
            ".flake8": "[flake8]\nexclude = build\n",
            "uv.lock": '[[package]]\nname = "ruff"\n[[package]]\nname = "mypy"\n',
            ".venv/bin/pytest": "#!/bin/sh\n",
            ".prettierrc": "{}",
            "package.json": "{}",
        },
        """\
languages: JavaScript or TypeScript
  format  uv run ruff format --check --force-exclude  (ruff.toml: [format])
  lint    uv run ruff check --no-fix --force-exclude  (ruff.toml)
  test    .venv/bin/pytest  (pytest.ini)
  left out: prettier --check --ignore-unknown (.prettierrc): node_modules/.bin/prettier not found
""",
        {
            "format": {
                "command": "uv run ruff format --check --force-exclude",
                "files": ["*.py", "*.pyi"],
                "pass_files": True,
            },
            "lint": {
                "command": "uv run ruff check --no-fix --force-exclude",
                "files": ["*.py", "*.pyi"],
                "pass_files": True,
            },
            "test": {"command": ".venv/bin/pytest", "reuse": True},
        },
        {"pre-commit": "format lint", "pre-push": "format lint test", "manual": "format lint test"},
    ),
    "CI says how tools are called": (
        {
            "Cargo.toml": "[workspace]\n",
            "justfile": "fmt:\n  cargo fmt --all\n",
            ".github/workflows/a.yml": """\
on: [push, pull_request]
jobs:
  test:
    steps:
      - run: rustup update
      - run: cargo fmt --all -- --check
      - run: |
          cargo clippy --all-targets -- -D warnings
          cargo test --locked --target ${{ matrix.target }}
      - run: cargo test -p one
      - run: cargo test --workspace --locked
      - run: pytest -q
      - {run: cargo test --doc, working-directory: fuzz}
""",
        },
        """\
languages: Rust
  format  cargo fmt --all -- --check  (.github/workflows/a.yml)
  lint    cargo clippy --all-targets -- -D warnings  (.github/workflows/a.yml)
  test    cargo test --workspace --locked  (.github/workflows/a.yml)
  left out: pytest -q (.github/workflows/a.yml): neither locked, nor in .venv/bin, venv/bin or PATH
""",
        {
            "format": {"command": "cargo fmt --all -- --check"},
            "lint": {"command": "cargo clippy --all-targets -- -D warnings"},
            "test": {"command": "cargo test --workspace --locked", "reuse": True},
        },
        {"pre-commit": "format lint", "pre-push": "format lint test", "manual": "format lint test"},
    ),
    "make, with a fixer, its check, and what does nothing else": (
        {
            "Makefile": "fmt:\n\tblack .\nfmt-check:\n\tblack --check .\n"
            "lint:\n\truff check --fix\n"
            "tests:\n\tpytest\nbuild:\n\tpython -m build\nci: lint tests\ncheck: lint tests\n",
        },
        """\
  format  make fmt-check  (Makefile: target fmt-check)
  lint    make lint  (Makefile: target lint)
  check   make check  (Makefile: target check)
  test    make tests  (Makefile: target tests)
""",
        {
            "format": {"command": "make fmt-check"},
            "lint": {"command": "make lint", "writes": True},
            "check": {"command": "make check", "writes": True},
            "test": {"command": "make tests", "reuse": True},
        },
        {"pre-commit": "format lint", "pre-push": "format check", "manual": "format lint test"},
    ),
    "mise, with files and folders that it includes": (
        {
            "mise.toml": '[task_config]\nincludes = ["tasks.toml", "tasks"]\n',
            "tasks.toml": '[lint]\ndepends = ["lint:*"]\n[test]\nrun = "cargo test"\n',
            "tasks/lint/shell": "#!/bin/sh\nshellcheck x\n",
        },
        """\
  lint  mise run lint  (tasks.toml: task lint)
  test  mise run test  (tasks.toml: task test)
""",
        {"lint": {"command": "mise run lint"}, "test": {"command": "mise run test", "reuse": True}},
        {"pre-commit": "lint", "pre-push": "lint test", "manual": "lint test"},
    ),
    "nox makes environments, so types wait for the push": (
        {
            "noxfile.py": "import nox\n\n@nox.session\ndef lint(session):\n"
            '    session.run("pre-commit", "run", "--all-files")\n\n@nox.session\n'
            'def mypy(session):\n    session.run("mypy", "src")\n\n@nox.session\n'
            'def tests(session):\n    session.run("pytest")\n',
        },
        """\
  lint       nox -s lint  (noxfile.py: session lint)
  typecheck  nox -s mypy  (noxfile.py: session mypy)
  test       nox -s tests  (noxfile.py: session tests)
""",
        {
            "lint": {"command": "nox -s lint"},
            "typecheck": {"command": "nox -s mypy"},
            "test": {"command": "nox -s tests", "reuse": True},
        },
        {"pre-commit": "lint", "pre-push": "lint typecheck test", "manual": "lint typecheck test"},
    ),
    "some of the tests beside all of them": (
        {
            "tox.ini": "[tox]\nenv_list = {tests,mypy}, typing-pyright\n"
            "[testenv]\ncommands =\n tests: pytest {posargs}\n mypy: mypy src\n"
            "[testenv:typing-pyright]\ncommands =\n pyright\n pytest tests/test_pyright.py\n",
        },
        """\
  typecheck  tox -e typing-pyright  (tox.ini: environment typing-pyright)
  test       tox -e tests  (tox.ini: environment tests)
""",
        {
            "typecheck": {"command": "tox -e typing-pyright"},
            "test": {"command": "tox -e tests", "reuse": True},
        },
        {"pre-push": "typecheck test", "manual": "typecheck test"},
    ),
    "Python beside JavaScript": (
        {
            "hatch.toml": "[envs.hatch-test]\n[envs.hatch-static-analysis]\n",
            "package.json": '{"scripts": {"test": "jest", "lint": "eslint ."}}',
            "yarn.lock": "",
        },
        """\
languages: JavaScript or TypeScript
  lint-javascript  yarn run lint  (package.json: script lint)
  lint-python      hatch fmt --check  (hatch.toml envs.hatch-static-analysis)
  test-javascript  yarn run test  (package.json: script test)
  test-python      hatch test  (hatch.toml envs.hatch-test)
""",
        {
            "lint-javascript": {"command": "yarn run lint"},
            "lint-python": {"command": "hatch fmt --check"},
            "test-javascript": {"command": "yarn run test", "reuse": True},
            "test-python": {"command": "hatch test", "reuse": True},
        },
        {
            "pre-commit": "lint-javascript lint-python",
            "pre-push": "lint-javascript lint-python test-javascript test-python",
            "manual": "lint-javascript lint-python test-javascript test-python",
        },
    ),
    "Python with ruff and pytest in a folder, and no lock file": (
        {
            "pyproject.toml": "[tool.ruff]\nline-length = 100\n",
            "tests/test_x.py": "def test_x() -> None: ...\n",
            "venv/bin/ruff": "#!/bin/sh\n",
            "venv/bin/pytest": "#!/bin/sh\n",
        },
        """\
languages: Python
  lint  venv/bin/ruff check --no-fix --force-exclude  (pyproject.toml: [tool.ruff])
  test  venv/bin/pytest  (tests/test_x.py)
""",
        {
            "lint": {
                "command": "venv/bin/ruff check --no-fix --force-exclude",
                "files": ["*.py", "*.pyi"],
                "pass_files": True,
            },
            "test": {"command": "venv/bin/pytest", "reuse": True},
        },
        {"pre-commit": "lint", "pre-push": "lint test", "manual": "lint test"},
    ),
    "CI in a workflow that another one calls": (
        {
            "Cargo.toml": "[workspace.lints.clippy]\n",
            ".github/workflows/ci.yml": "on: push\njobs:\n"
            "  a: {uses: ./.github/workflows/checks.yml}\n",
            ".github/workflows/checks.yml": "on: {workflow_call: }\njobs: {a: {steps: "
            "[{run: cargo clippy -- -D warnings}, {run: cargo test --locked}]}}\n",
            ".github/workflows/other.yml": "on: {workflow_call: }\njobs: {a: {steps: "
            "[{run: cargo fmt --check}]}}\n",
        },
        """\
languages: Rust
  lint  cargo clippy -- -D warnings  (.github/workflows/checks.yml)
  test  cargo test --locked  (.github/workflows/checks.yml)
""",
        {
            "lint": {"command": "cargo clippy -- -D warnings"},
            "test": {"command": "cargo test --locked", "reuse": True},
        },
        {"pre-commit": "lint", "pre-push": "lint test", "manual": "lint test"},
    ),
    "an aggregate, whose parts run before a commit": (
        {
            "package.json": """{"scripts": {
  "lint": "eslint .", "typecheck": "tsc --noEmit",
  "check": "npm run lint && npm run typecheck && node build.js"
}}""",
        },
        """\
languages: JavaScript or TypeScript
  lint       npm run lint  (package.json: script lint)
  typecheck  npm run typecheck  (package.json: script typecheck)
  check      npm run check  (package.json: script check)
""",
        {
            "lint": {"command": "npm run lint"},
            "typecheck": {"command": "npm run typecheck"},
            "check": {"command": "npm run check"},
        },
        {"pre-commit": "lint typecheck", "pre-push": "check", "manual": "check"},
    ),
    "husky in a folder that only `prepare` names, and a task that fixes": (
        {
            "package.json": """{"scripts": {
  "prepare": "husky install config/husky || true", "style": "eslint --fix .", "test": "jest"
}}""",
            "config/husky/pre-commit": "npm run style\n",
        },
        """\
languages: JavaScript or TypeScript
  lint  npm run style  (config/husky/pre-commit)
  test  npm test  (package.json: script test)
  uninstall husky; otherwise, the commands taken over from it run twice
""",
        {
            "lint": {"command": "npm run style", "writes": True},
            "test": {"command": "npm test", "reuse": True},
        },
        {"pre-commit": "lint", "pre-push": "test", "manual": "test"},
    ),
    "C, with nothing but CI": (
        {
            "configure.ac": "",
            ".github/workflows/ci.yaml": "on: push\njobs: {a: {steps: [{run: ./configure}, "
            "{run: make check VERBOSE=yes}]}}\n",
        },
        """\
  test  make check VERBOSE=yes  (.github/workflows/ci.yaml)
""",
        {"test": {"command": "make check VERBOSE=yes", "reuse": True}},
        {"pre-push": "test", "manual": "test"},
    ),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_gets_what_its_people_would_write(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, said, gates, hooks = PROJECTS[name]
    (tmp_path / ".git").mkdir()
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
        (tmp_path / path).chmod(0o755 if text.startswith("#!") else 0o644)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.defpath)
    done = CliRunner().invoke(command, ["--take-over"])
    lines = done.stdout.splitlines(keepends=True)
    own = tmp_path / "gitgates.toml"
    shared = tmp_path / "pyproject.toml"
    written = tomllib.loads((own if own.exists() else shared).read_text())
    written = written.get("tool", {}).get("gitgates", written)
    unusual = {
        gate: {key: value for key, value in keys.items() if key not in ("description", "timeout")}
        for gate, keys in written["gates"].items()
    }
    assert "".join(lines[: next(i for i, line in enumerate(lines) if "added" in line)]) == said
    assert unusual == gates
    assert {hook: " ".join(keys["gates"]) for hook, keys in written["hooks"].items()} == hooks


@pytest.mark.parametrize(
    ("name", "text", "reuses"),
    [
        ("Makefile", "test:\n\tpytest\n", True),
        ("Makefile", "test:\n\tdocker compose run --rm app pytest\n", True),
        ("Makefile", "test:\n\tuvx pytest\n", True),
        ("Makefile", "check:\n\truff check\n\tpytest\n", True),
        ("Makefile", "check:\n\truff check\n", False),
        ("package.json", '{"scripts": {"test": "jest"}, "packageManager": "yarn@4"}', True),
        ("package.json", '{"scripts": {"test": "jest"}, "packageManager": "bun@1"}', True),
    ],
)
def test_passes_of_tests_are_reused(
    name: str, text: str, *, reuses: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(command, []).stdout
    (gate,) = tomllib.loads((tmp_path / "gitgates.toml").read_text())["gates"].values()
    assert gate.get("reuse", False) is reuses
    assert ("are reused while everything it reads" in said) is reuses


MANAGED = {
    "lefthook": (
        {
            "lefthook.yml": "pre-commit: {jobs: [{run: 'ruff check {staged_files}', glob: '*.py'}, "
            "{run: ruff format, stage_fixed: true}, {run: ./docs && git add docs}]}\n",
        },
        {"ruff": "ruff check"},
        {"manual": ["ruff"]},
    ),
    "husky": (
        {
            "package.json": '{"scripts": {"lint": "eslint .", "test": "jest", "prepare": "husky"}}',
            ".husky/pre-commit": "npm run lint\n",
            ".husky/pre-push": "npm test\n",
        },
        {"lint": "npm run lint", "test": "npm test"},
        {"pre-push": ["lint"], "manual": ["lint", "test"]},
    ),
    "simple-git-hooks": (
        {
            "package.json": '{"simple-git-hooks": {"pre-commit": "npx x-check", '
            '"commit-msg": "node look.js"}, '
            '"scripts": {"test": "jest"}}',
        },
        {"x-check": "npx x-check", "test": "npm test"},
        {"manual": ["x-check", "test"], "pre-push": ["test"]},
    ),
}


@pytest.mark.parametrize("manager", MANAGED)
def test_what_a_manager_goes_on_running_is_no_gate_of_that_hook(
    manager: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, gates, hooks = MANAGED[manager]
    (tmp_path / ".git").mkdir()
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(command, []).stdout
    assert (
        f"\n  {manager} keeps running its own commands; none of them is a gate of the same hook\n"
        in said
    )
    written = tomllib.loads((tmp_path / "gitgates.toml").read_text())
    assert {name: keys["command"] for name, keys in written["gates"].items()} == gates
    assert {name: keys["gates"] for name, keys in written["hooks"].items()} == hooks


ODD = "{run: 1, jobs: [3, {group: {jobs: [x]}}], hooks: [1, {id: [2]}], pre-commit: [&&], 1: {}}"


@pytest.mark.parametrize("odd", [ODD, "[]", "1", "{repos: 1, jobs: x, commands: {a: {run: x}}}"])
def test_odd_files_are_no_trouble(
    odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".husky").mkdir()
    (tmp_path / ".husky/pre-commit").write_text("&&\nnpx lint-staged &&\n\n")
    (tmp_path / ".github/workflows").mkdir(parents=True)
    for name in ("lefthook.yml", ".pre-commit-config.yaml", ".lintstagedrc", "Taskfile.yml"):
        (tmp_path / name).write_text(odd.replace("jobs", "pre-commit") if "hook" in name else odd)
    (tmp_path / ".github/workflows/a.yml").write_text(f"on: [push, {{a: 1}}]\njobs: {odd}\n")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["--dry-run"])
    assert (done.exit_code, done.exception) == (0, None)
