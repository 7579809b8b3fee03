"""What a hook costs is above all what it imports. Here real hooks say what they have loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gitgates.setup.install.githooks import render

ROOT = Path(__file__).resolve().parent.parent

PACKAGES = {
    "click",
    "dulwich",
    "identify",
    "jinja2",
    "pre_commit",
    "tomlkit",
    "tree_sitter",
    "yaml",
}
# Whatever runs, none of these. A module stands for all that lies below it.
FORBIDDEN = {
    *PACKAGES,
    "rich",
    *("argparse", "asyncio", "concurrent", "contextlib", "dataclasses", "difflib", "email"),
    *("enum", "functools", "importlib.metadata", "inspect", "json", "logging", "pathlib", "pickle"),
    *("re", "selectors", "shutil", "signal", "socket", "subprocess", "tempfile", "threading"),
    *("tomllib", "traceback", "typing", "unittest", "urllib", "uuid", "zipfile"),
}
# But a configuration that has changed is parsed: with tomllib, all that tomllib loads, and these.
FOR_PARSING = "tomllib, json, hashlib"
# Of the standard library, a hook whose configuration is known loads these and no others.
LEAN = {
    *(
        "__future__",
        "_collections",
        "_collections_abc",
        "_signal",
        "_stat",
        "abc",
        "errno",
        "fcntl",  # the lock on the worktree
        "gc",
        "genericpath",
    ),
    "_sha1",  # by which an index says whether it has the settings files as they are
    *("marshal", "os", "posixpath", "select", "stat", "time"),
}

# A module of ours costs a hook a quarter of a million instructions: see docs/adr/0001.
MOST_OF_OURS = 51  # before `commit -a`, which isolates, with patterns; 41 without either

CONFIG = """\
[tool.gitgates.gates.first]
command = "true"
[tool.gitgates.gates.second]
command = ["true"]
files = ["*.py"]
pass_files = true
[tool.gitgates.gates.third]
command = "true"
on_fail = "first"
[tool.gitgates.hooks.pre-commit]
gates = ["first", "second", "third"]
[tool.gitgates.hooks.commit-msg]
gates = ["first", "third"]
[tool.gitgates.hooks.pre-push]
gates = ["first", "second", "third"]
"""

# os._exit is how a hook leaves; on the way out it writes down what is loaded.
TELL = """
import os
def tell(status, leave=os._exit):
    fd = os.open(os.environ["LOADED_ABS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, " ".join(sys.modules).encode() + b"\\n")
    leave(status)
os._exit = tell
"""
IMPORT = "from gitgates.__main__ import main"


class Repo:
    """A repository whose hooks say what they have loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.loaded_abs = path.parent / "loaded"
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("GIT", "PRE_COMMIT"))},
            "HOME": str(path.parent),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.org",
            "LOADED_ABS": str(self.loaded_abs),
        }
        self.env.pop("SKIP", None)

    def git(self, *args: str) -> str:
        return self.run("git", *args)

    def run(self, *argv: str) -> str:
        done = subprocess.run(
            argv, cwd=self.path, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def take_loaded(self) -> list[set[str]]:
        """Return what each hook since the last call has loaded."""
        lines = self.loaded_abs.read_text().splitlines()
        self.loaded_abs.unlink()
        return [set(line.split()) for line in lines]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """Return a repository with our hooks, made from the shim that install-hooks writes."""
    repo = Repo(tmp_path / "repo")
    subprocess.run(["git", "init", "-q", "-b", "main", repo.path], check=True, env=repo.env)
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "origin"], check=True, env=repo.env)
    repo.git("remote", "add", "origin", str(tmp_path / "origin"))
    for hook in ("pre-commit", "commit-msg", "pre-push"):
        shim = repo.path / ".git" / "hooks" / hook
        text = render(hook).decode()
        assert text.count(IMPORT) == 1
        shim.write_text(text.replace(IMPORT, TELL + IMPORT))
        shim.chmod(0o755)
    (repo.path / "pyproject.toml").write_text(CONFIG)
    (repo.path / "a.py").write_text("a = 1\n")
    repo.git("add", ".")
    return repo


def loaded_by(repo: Repo, *options: str, code: str = "") -> set[str]:
    """Return what the interpreter has loaded after `code`."""
    code = f"import sys\n{code}\nprint(*sys.modules)"
    return set(repo.run(sys.executable, *options, "-c", code).split())


def below(loaded: set[str], tops: set[str]) -> list[str]:
    """Return the modules that are one of `tops` or lie below one."""
    return sorted(
        module for module in loaded if any(f"{module}.".startswith(f"{top}.") for top in tops)
    )


def not_lean(loaded: set[str]) -> list[str]:
    return sorted(loaded - set(below(loaded, LEAN | {"gitgates"})))


@pytest.mark.slow
def test_git_hooks_load_nothing_heavy(repo: Repo) -> None:
    own = loaded_by(repo, "-I", "-S")
    parsing = loaded_by(repo, "-I", "-S", code=f"import {FOR_PARSING}")
    repo.git("commit", "-qm", "first")
    repo.git("push", "-q", "origin", "main")
    (repo.path / "a.py").write_text("a = 2\n")
    repo.git("commit", "-qam", "second")
    first, *others = repo.take_loaded()
    assert "tomllib" in first
    assert below(first - parsing, FORBIDDEN) == []
    assert [not_lean(loaded - own) for loaded in others] == [[]] * 4
    _message, _push, before_commit, _message = others
    assert len(below(before_commit, {"gitgates"})) <= MOST_OF_OURS


@pytest.mark.slow
def test_a_push_that_is_verified_loads_no_package(repo: Repo) -> None:
    with (repo.path / "pyproject.toml").open("a") as file:
        file.write("verify = true\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "first")
    (repo.path / "a.py").write_text("a = 2\n")
    repo.git("commit", "-qam", "second", "--no-verify")
    for target in ("HEAD^:refs/heads/main", "HEAD:refs/heads/main"):
        repo.git("push", "-q", "origin", target)
    *_, passed, bypassed = repo.take_loaded()
    assert "gitgates.features.evidence.commit_evidence" in passed & bypassed
    assert below(passed | bypassed, PACKAGES) == []


def test_hooks_without_gates_load_nothing_heavy(repo: Repo) -> None:
    (repo.path / "pyproject.toml").write_text("[tool.other]\n")
    own = loaded_by(repo, "-I", "-S")
    repo.git("commit", "-qam", "first")
    assert [not_lean(loaded - own) for loaded in repo.take_loaded()] == [[], []]


@pytest.mark.samples(1)
@pytest.mark.parametrize("stage", ["pre-commit", "commit-msg", "pre-push"])
def test_hooks_of_the_framework_load_nothing_heavy(repo: Repo, stage: str) -> None:
    repo.env["PYTHONPATH"] = str(ROOT)
    own = loaded_by(repo)
    parsing = loaded_by(repo, code=f"import {FOR_PARSING}")
    code = f"import sys{TELL}{IMPORT}\nmain()"
    for _ in ("cold", "warm"):
        repo.run(sys.executable, "-c", code, "pre-commit-hook", stage, "a.py")
    first, second = repo.take_loaded()
    assert "tomllib" in first
    assert below(first - parsing, FORBIDDEN) == []
    assert not_lean(second - own) == []


AGENT_CONFIG = """\
[tool.gitgates.gates.check]
command = "false"
files = ["*.py"]
[tool.gitgates.hooks.PostToolUse]
enabled_tools = ["Edit"]
gates = ["check"]
[tool.gitgates.hooks.Stop]
gates = ["check"]
"""
# An agent speaks JSON: by the C code of `json`, without what `import json` loads.
FOR_JSON = "_json, zlib"
# Beside the way from bytes to bytes, only what says whether there is anything to run.
AGENT_PARTS = {
    *(
        "__main__",
        "entry",
        "config",
        "engine",
        "core",
        *("features", "features.gates", "features.guard", "features.trace"),
        *("hosts", "hosts.agents"),
        "proc",
        *("engine.plan", "drivers", "journal"),
        "store",
        "git",
    ),
    *("entry.agent", "core.policy"),
    *(f"drivers.{name}" for name in ("agent", "call", "trust", "start", "rules", "needs")),
    *("journal.entries", "journal.journal"),
    "features.gates.policy",
    "features.trace.policy",  # which tells that it is off
    *(
        "config.load",
        "engine.plan.hooks",
        "hosts.agent",
        "hosts.payload",
        "hosts.agents.claude",
        "hosts.capabilities",
    ),
    *(f"core.{name}" for name in ("environ", "errors", "lifecycle", "record", "types")),
    *(f"core.{name}" for name in ("agent_types", "lean_json", "pyc_import")),
    "store.files",
    *("proc.call", "proc.alarm", "store.log", "git.repo"),
    "features.guard.policy",
}
TO_GUARD = {"features.guard.places"}
TO_SAVE = {
    *("core.guarded", "core.parts", "engine.plan.walk", "git.index", "git.object_store"),
    *("proc.parents", "drivers.recorder", "worktree", "worktree.locks", "features.undo", "files"),
    *(f"features.undo.{name}" for name in ("policy", "after_gates", "settings", "tool_call")),
    *("features.undo.table",),
    *(
        f"files.{name}"
        for name in (
            *("facts", "forced", "git_state", "held", "ignored", "index", "look", "looked"),
            *("memory", "others", "permissions", "points", "prune", "rules", "scan", "seed"),
            "stashed",
        )
    ),
}
TO_LOOK = {
    *(f"drivers.{name}" for name in ("breaker", "tampering")),
    "files.stored",
}


def loaded_by_agent_hook(
    repo: Repo, config: str, event: dict[str, Any], *, session: str = "s", changes: str = ""
) -> set[str]:
    """Return what an event has loaded, of a session that has changed a file or none."""
    repo.env["PYTHONPATH"] = str(ROOT)
    (repo.path / "pyproject.toml").write_text(config)
    first = {"hook_event_name": "PreToolUse", "tool_name": "Write"}  # the first save point
    after = {**first, "hook_event_name": "PostToolUse"}
    for one in ({"hook_event_name": "SessionStart"}, first, after, event):
        subprocess.run(
            [sys.executable, "-c", f"import sys{TELL}{IMPORT}\nmain()", "agent-hook", "claude"],
            cwd=repo.path,
            env=repo.env,
            input=json.dumps({"session_id": session, "cwd": str(repo.path), **one}).encode(),
            check=True,
            capture_output=True,
        )
        if changes:
            (repo.path / changes).write_text(session)
    return repo.take_loaded()[-1]


def own_modules(loaded: set[str]) -> set[str]:
    """Return our modules, without the name of the package."""
    return {name.removeprefix("gitgates.") for name in loaded if name.startswith("gitgates.")}


@pytest.mark.thorough
@pytest.mark.slow
def test_a_command_that_only_reads_loads_no_save_points(repo: Repo) -> None:
    event = {"hook_event_name": "PreToolUse", "tool_name": "Bash"}
    loaded = loaded_by_agent_hook(
        repo, AGENT_CONFIG, {**event, "tool_input": {"command": "ls -la"}}
    )
    undo = {name for name in own_modules(loaded) if name.startswith("features.undo.")}
    assert undo == {"features.undo.policy", "features.undo.settings"}


@pytest.mark.samples(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "parts"),
    [
        ({"hook_event_name": "PreToolUse", "tool_name": "Edit"}, AGENT_PARTS | TO_GUARD | TO_SAVE),
        (
            {
                "hook_event_name": "PreToolUse",
                "tool_name": "Bash",
                "tool_input": {"command": "make test > /dev/null"},
            },
            AGENT_PARTS | TO_GUARD | TO_SAVE | {"drivers.shell_commands", "drivers.reading"},
        ),
        (
            {"hook_event_name": "PostToolUse", "tool_name": "Bash"},
            AGENT_PARTS | TO_SAVE | {"drivers.reading"},
        ),
        ({"hook_event_name": "Stop"}, AGENT_PARTS | TO_SAVE | TO_LOOK),
    ],
    ids=["no gates", "no guarded word", "another tool", "nothing changed"],
)
def test_an_agents_hook_with_nothing_to_run_loads_no_runner(
    repo: Repo, event: dict[str, object], parts: set[str]
) -> None:
    own = loaded_by(repo, code=f"import {FOR_JSON}")
    second = loaded_by_agent_hook(repo, AGENT_CONFIG, event)
    ours = own_modules(second)
    assert ours <= parts, ours - parts
    assert below(second - own, FORBIDDEN) == []
    assert not_lean(second - own) == []


ADVICE = """\
[[tool.gitgates.advice]]
title = "A"
hook_command = "true"
hook_trigger = "before-commit"
"""


@pytest.mark.thorough
@pytest.mark.slow
def test_advice_loads_no_runner_for_other_commands_of_an_agent(repo: Repo) -> None:
    event: dict[str, Any] = {"hook_event_name": "PreToolUse", "tool_name": "Bash"}
    event["tool_input"] = {"command": "make"}
    without, loaded = (
        own_modules(loaded_by_agent_hook(repo, config, event, session=str(len(config))))
        for config in (AGENT_CONFIG, AGENT_CONFIG + ADVICE)
    )
    assert loaded - without == {
        "features.advice",
        "features.advice.policy",
        "features.advice.items",
    }


@pytest.mark.slow
def test_advice_of_a_git_hook_loads_what_gates_do_and_a_digest(repo: Repo) -> None:
    (repo.path / "pyproject.toml").write_text(CONFIG + ADVICE)
    own = loaded_by(repo, "-I", "-S", code="import hashlib, _json, zlib")
    repo.git("commit", "-qam", "first")
    repo.git("commit", "-q", "--allow-empty", "-m", "second")
    before_commit = repo.take_loaded()[2]
    assert not_lean(before_commit - own) == []
    assert "gitgates.features.advice.run" not in before_commit


@pytest.mark.thorough
@pytest.mark.slow
def test_what_reads_failures_is_loaded_where_a_gate_has_failed(repo: Repo) -> None:
    # And the presets, for a gate that names one.
    reading = {"engine.findings", *(f"engine.findings.{n}" for n in ("failures", "normalise"))}
    event = {"hook_event_name": "Stop"}
    failing = AGENT_CONFIG.replace('files = ["*.py"]\n', "")
    passing = failing.replace('"false"', '"true"')
    for config, expected in ((passing, set()), (failing, reading)):
        loaded = loaded_by_agent_hook(repo, config, event, session=str(expected), changes="new.py")
        assert "features.gates.attempt" in own_modules(loaded)
        assert own_modules(loaded) & reading == expected
