"""A host is known by its name, and a second one costs one file in `hosts/`."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from subprocess import CompletedProcess, run
from typing import TYPE_CHECKING

import pytest
from abilities import ABILITIES

from gitgates.drivers.agent import respond
from gitgates.hosts import AGENTS, Agent, agent_host, agent_settings, turn_end_of

if TYPE_CHECKING:
    from conftest import Repo

ROOT = Path(__file__).resolve().parents[2]


def test_each_agent_is_known_by_its_name() -> None:
    for name, agent in AGENTS.items():
        host = agent_host(name)
        assert name == host.NAME
        assert agent_settings(name).host is host
        assert host.HAS_E2E_TESTS is (name in ABILITIES), name
        assert agent.settings == host.settings_files("", {}).get("project", "").lstrip("/")
        ends = [event for event, (kind, _can) in host.PROTOCOL.events.items() if kind == "turn-end"]
        assert [event for event in ends if turn_end_of(name) in f'"{event}"'.encode()] == ends


VERBS = (("init", "--dry-run"), ("explain", "Stop"), ("intent", "select", "INT-1"))
LOADED = """
import sys
from gitgates.__main__ import main
for verb in {verbs}:
    sys.argv = ["gitgates", *verb]
    try:
        main()
    except SystemExit:
        print("loaded", *sys.modules, file=sys.stderr)
"""


@pytest.mark.slow
def test_a_verb_loads_no_host_that_is_not_asked_for(repo: Repo) -> None:
    """A person runs it, in a project that no agent has settings in."""
    repo.config(f"{GATES}[intents]\n")
    argv = (sys.executable, "-c", LOADED.format(verbs=VERBS))
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = run(argv, cwd=repo.path, env=env, capture_output=True, text=True, check=False)
    loaded = [line for line in done.stderr.splitlines() if line.startswith("loaded ")]
    assert [re.findall(r"gitgates\.hosts(?:\.agents\.\w+)?(?= |$)", line) for line in loaded] == [
        ["gitgates.hosts"]
    ] * len(VERBS)


# A second host: its one file is tests/toy_host.py

START = (
    "import sys; sys.path[:0] = [{tests!r}, {root!r}]\n"
    "from gitgates import hosts\n"
    "hosts.AGENTS['toy'] = hosts.Agent(\n"
    "    module='toy_host', turn_end=b'done', settings='.toy/settings',\n"
    "    session='TOY_SESSION', rules='TOY.txt')\n"
    "from gitgates.__main__ import main\n"
    "main()"
)
GATES = """
[gates.check]
command = "echo no good; exit 1"
[gates.secret]
command = "test -z \\"$TOY_SECRET\\""
[hooks.Stop]
gates = ["check", "secret"]
strategy = "collect"
[hooks.PreToolUse]
enabled_tools = ["type"]
gates = ["check"]
"""
PAYLOADS = {
    "hello": "hello\ts1\t{root}\n",
    "asked": "asked\ts1\t{root}\n",
    "types": "about-to\ts1\t{root}\ttype\ta.txt\n",
    "looks": "about-to\ts1\t{root}\tlook\ta.txt\n",
    "done": "done\ts1\t{root}\n",
    "unheard of": "flies\ts1\t{root}\n",
    "torn": "done\ts1\n",
}


@pytest.fixture
def toy(repo: Repo) -> Repo:
    repo.config(GATES)
    return repo


def received(repo: Repo, name: str) -> tuple[str, dict[str, str]]:
    """Return what the toy's client sends, and the variables that it sets."""
    variables = {"TOY_ROOT": str(repo.path), "TOY_SECRET": "x"}
    return PAYLOADS[name].format(root=repo.path), variables


def answer(repo: Repo, name: str) -> tuple[str, str]:
    """Return what the toy's client receives for a payload, and what is said."""
    payload, variables = received(repo, name)
    said: list[str] = []
    answered = respond(payload.encode(), {**os.environ, **variables}, said.append, "toy")
    return answered.decode(), "\n".join(said)


def start(repo: Repo, *args: str, stdin: str = "", **env: str) -> CompletedProcess[str]:
    """Run a verb of a gitgates that knows the toy."""
    started = START.format(tests=str(ROOT / "tests"), root=str(ROOT))
    return run(
        [sys.executable, "-c", started, *args],
        cwd=repo.path,
        env={**os.environ, **env},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_second_host_is_served_by_one_file(toy: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(module="toy_host", turn_end=b"done", settings=".toy/settings")
    monkeypatch.setitem(AGENTS, "toy", agent)
    said, _log = answer(toy, "hello")
    assert said.startswith("know: gitgates checks the work in this repository.")
    assert answer(toy, "asked") == ("", "")
    assert answer(toy, "looks") == ("", "")
    said, _log = answer(toy, "types")
    assert said.startswith("no: 1 of 1 gates failed")
    assert "no good" in said
    toy.write("a.txt", "changed\n")
    said, _log = answer(toy, "done")
    assert said.startswith("no: ")
    assert "no good" in said
    assert "1 of 2 gates failed (`check`)" in said  # it does not see the host's secret
    assert answer(toy, "unheard of") == ("", "")
    said, log = answer(toy, "torn")
    assert (said, log) == ("", "the payload cannot be read: 2 fields")


def test_a_second_host_is_started_and_may_be_switched_off(toy: Repo) -> None:
    payload, variables = received(toy, "types")
    done = start(toy, "agent-hook", "toy", stdin=payload, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no: 1 of 1 gates failed")
    done = start(toy, "agent-hook", "toy", stdin=payload, **variables, GITGATES="0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_agent_that_is_not_known(toy: Repo) -> None:
    assert "toy" not in AGENTS
    done = toy.gitgates("agent-hook", "toy")
    said = f"gitgates: `agent-hook` requires the name of an agent: {', '.join(AGENTS)}\n"
    assert done.stderr.decode() == said


@pytest.mark.nightly
@pytest.mark.slow
def test_a_second_host_is_installed_and_taken_out_by_one_file(
    toy: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = START.format(tests=str(ROOT / "tests"), root=str(ROOT))
    program = toy.write("../bin/gitgates", f"#!{sys.executable} -S\n{started}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/local/bin:/usr/bin:/bin")
    settings = toy.path / ".toy/settings"
    toy.config(GATES + '[hooks.SubagentStop]\ngates = ["check"]\n')

    def ask(*args: str) -> str:
        done = start(toy, *args)
        assert done.returncode == 0, done
        return done.stdout

    ours = (
        "hello: gitgates agent-hook toy (5 s)\n"
        "asked: gitgates agent-hook toy (5 s)\n"
        "about-to type|sh|!look: gitgates agent-hook toy (35 s)\n"
        "done: gitgates agent-hook toy (615 s)\n"
    )
    for theirs in ("# mine\nasked: ring (1 s)\r\nnothing", "", None):
        if theirs is not None:
            toy.write(".toy/settings", theirs.encode())
        said = ask("install-hooks", "--agent", "toy")
        assert ".toy/settings: gitgates hooks were added: SessionStart, UserPromptSubmit, P" in said
        assert "The Toy has no event SubagentStop: its gates do not run there\n" in said
        assert settings.read_bytes().decode().startswith(ours)
        if theirs:  # what is there already makes no difference to these
            assert "are already up to date" in ask("install-hooks", "--agent", "toy")
            said = ask("doctor", "--prove")
            assert "ok       .toy/settings: hooks are installed, for " in said
            assert "ok       .toy/settings: proved: Stop is blocked if a gate fails\n" in said
            assert "Claude" not in said
            changed = settings.read_bytes().replace(b"to type", b"to look") + b"\nsilent\n"
            settings.write_bytes(changed)
            said = start(toy, "doctor").stdout
            assert "`silent` is true: The Toy runs no hooks" in said
            assert (
                "its matcher at PreToolUse is `look|sh|!look`, where install-hooks writes "
                "`type|sh|!look`" in said
            )
            settings.write_bytes(changed.removesuffix(b"\nsilent\n"))
            assert "were updated" in ask("install-hooks", "--agent", "toy")
            assert "--agent toy --scope project" in ask("uninstall-hooks")
        ask("uninstall-hooks", "--agent", "toy")
        assert theirs == (settings.read_bytes().decode() if settings.exists() else None)
        settings.unlink(missing_ok=True)
    assert "done: gitgates agent-hook toy (615 s)" in ask(
        "install-hooks", "--agent", "toy", "--print"
    )
