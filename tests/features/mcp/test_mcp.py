"""`gitgates mcp`: registered and taken out, and its tools by a client of the real package.

That package is imported where it is used: each worker of pytest imports this file.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import anyio
import pytest
from conftest import Repo
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from session_support import begin

from gitgates.core.errors import ConfigError
from gitgates.features.intents.tools import scope_expansion_request
from gitgates.features.mcp.cli import command, make_server, run_gates
from gitgates.hosts.agents.claude import mcp

FILE = ".mcp.json"
MINE = '{"mcpServers": {"mine": {"command": "x"}}, "a": 1}\n'


@given(
    st.none()
    | st.sampled_from(["", "\n", "{}", "{ }\n", '{"mcpServers": {}}', MINE, '{\r\n\t"a": []\r\n}'])
)
def test_what_is_put_in_can_be_taken_out(text: str | None) -> None:
    after = mcp.add(text, "gitgates", FILE)
    assert mcp.add(after, "gitgates", FILE) == after
    assert mcp.remove(after, FILE) == text
    assert mcp.remove(mcp.add(text, "/opt/bin/gitgates", FILE), FILE) == text
    assert text is None or mcp.remove(text, FILE) == text


@each_case(
    ("text", "said"),
    [
        ("{", "is not valid JSON"),
        ("[]", "the file is an array, expected an object"),
        ('{"mcpServers": []}', "`mcpServers` is an array, expected an object"),
        ('{"mcpServers": {"gitgates": {"command": "x"}}}', "is not a gitgates server"),
    ],
)
def test_what_cannot_be_added_to_is_left_alone(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        mcp.add(text, "gitgates", FILE)


CONFIG = '[gates.check]\ncommand = "true"\n[hooks.Stop]\ngates = ["check"]\n'


def test_it_is_registered_and_taken_out(repo: Repo) -> None:
    repo.config(CONFIG)
    repo.write(FILE, MINE)
    done = repo.gitgates("install-hooks", "--agent", "claude", "--mcp")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b".mcp.json: the entries of the gitgates server were added\n" in done.stdout
    assert '"gitgates": {' in (repo.path / FILE).read_text()
    again = repo.gitgates("install-hooks", "--agent", "claude", "--mcp")
    assert b".mcp.json: the entries of the gitgates server are already up to date\n" in again.stdout
    done = repo.gitgates("uninstall-hooks", "--agent", "claude")
    assert b".mcp.json: the entries of the gitgates server were removed\n" in done.stdout
    assert (repo.path / FILE).read_text() == MINE


def test_it_goes_with_the_project_only(repo: Repo) -> None:
    repo.config(CONFIG)
    done = repo.gitgates("install-hooks", "--agent", "claude", "--mcp", "--scope", "local")
    assert done.returncode == 64
    assert done.stderr.decode() == (
        "gitgates: --mcp registers the server for the project, and cannot be used with --scope "
        "local\n  Instead, run: claude "
        "mcp add --scope local gitgates -- gitgates mcp\n"
    )
    assert not (repo.path / ".claude").exists()


def test_without_its_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    with pytest.raises(ConfigError) as raised:
        command([], standalone_mode=False)
    assert raised.value.hint == f"Install it: {sys.executable} -m pip install 'gitgates[mcp]'"


def test_the_tools() -> None:
    tools = anyio.run(make_server().list_tools)
    assert [tool.name for tool in tools] == [
        "select_active_intent",
        "scope_expansion_request",
        "review_status",
        "post_review",
        "undo_turn",
        "run_gates",
    ]
    assert all("caller" in tool.input_schema["properties"] for tool in tools[:5])
    assert not any(tool.output_schema for tool in tools)  # agents would get the text as JSON


def test_a_call_of_ours_gets_its_caller(repo: Repo) -> None:
    agent = begin(repo, CONFIG.replace('"check"]', '"check", "review"]'))
    given = {"decision": "ISSUES", "summary": "no"}
    own = agent.pre("mcp__gitgates__post_review", tool_input=given)["hookSpecificOutput"]
    nonce = own["updatedInput"]["caller"]
    assert own == {"hookEventName": "PreToolUse", "updatedInput": {**given, "caller": nonce}}
    assert [one["agent"] for one in agent.facts() if one.get("nonce") == nonce] == [""]


@pytest.mark.slow
def test_a_tool_does_what_its_verb_does(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import CallToolResult

    begin(repo, CONFIG.replace('"true"', '"exit 1"'))
    monkeypatch.chdir(repo.path)
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "s1")
    server = make_server()

    def tool(name: str, **arguments: Any) -> str:
        answer = anyio.run(server.call_tool, name, arguments)
        assert isinstance(answer, CallToolResult)
        return "".join(part.text for part in answer.content if part.type == "text")

    assert "check  failed" in tool("run_gates", hook="Stop", gates=["check"])
    assert "it does not count" in tool("post_review", decision="COMPLETE", summary="fine")
    with pytest.raises(ToolError, match=r"Did you mean `Stop`\?"):
        tool("run_gates", hook="Stopp")


@pytest.mark.thorough
def test_the_tools_do_what_the_verbs_do(repo: Repo) -> None:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    agent = begin(
        repo,
        '[gates.check]\ncommand = "exit $(cat code)"\n[hooks.Stop]\ngates = ["check", "review"]\n',
    )
    agent.write("code", "1\n")
    params = StdioServerParameters(
        command=sys.executable,
        args=["-m", "gitgates", "mcp"],
        cwd=str(repo.path),
        env={"CLAUDE_CODE_SESSION_ID": "s1", "CLAUDECODE": "1"},
    )

    async def use() -> list[tuple[bool, str]]:
        async with stdio_client(params) as streams, ClientSession(*streams) as session:
            await session.initialize()

            async def tool(name: str, **arguments: Any) -> tuple[bool, str]:
                answer = await session.call_tool(name, arguments)
                return bool(answer.is_error), "".join(
                    part.text for part in answer.content if part.type == "text"
                )

            found = [await tool("run_gates", hook="Stop", gates=["check"])]
            found.append(await tool("run_gates", hook="Stopp"))
            found.append(await tool("review_status"))
            found.append(await tool("post_review", decision="COMPLETE", summary="fine"))
            agent.write("code", "0\n")
            found.append(await tool("run_gates", hook="Stop", gates=["check"]))
            return found

    failed, unknown, status, posted, passed = anyio.run(use)
    assert (failed[0], "check  failed" in failed[1]) == (False, True)
    assert (unknown[0], "Did you mean `Stop`?" in unknown[1]) == (True, True)
    assert (status[0], "at a stop:  the agent may stop" in status[1]) == (False, True)
    assert (posted[0], "it does not count" in posted[1]) == (False, True)
    assert (passed[0], "check  passed" in passed[1]) == (False, True)


@pytest.mark.slow
def test_a_call_that_is_cancelled_ends_its_gates(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.config(
        '[gates.slow]\ncommand = "echo $$ > pid; exec sleep 60"\n[hooks.manual]\ngates = ["slow"]\n'
    )
    os.mkfifo(repo.path / "pid")
    monkeypatch.chdir(repo.path)

    async def use() -> int:
        async with anyio.create_task_group() as group:
            group.start_soon(run_gates)
            pid = int(await anyio.Path("pid").read_text())
            group.cancel_scope.cancel()
        return pid

    with pytest.raises(ProcessLookupError):
        os.kill(anyio.run(use), 0)


@each_case(
    ("reason", "why"), [("a\0b", "embedded null byte"), ("x" * 1_000_000, "Argument list too long")]
)
def test_arguments_that_no_program_can_get_are_refused(reason: str, why: str) -> None:
    from mcp.server.mcpserver.exceptions import ToolError

    with pytest.raises(ToolError) as raised:
        anyio.run(scope_expansion_request, "INT-001", "a", reason)
    assert str(raised.value) == f"`gitgates intent` cannot be run with these arguments: {why}"
