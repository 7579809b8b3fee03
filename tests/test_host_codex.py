"""What is Codex's alone: its patches, through the shell as well, and its expressions."""

from __future__ import annotations

import json

import pytest

from gitgates.hosts import agent_host, agent_settings

HOST = agent_host("codex")
FILE = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch"


def paths(tool: str, command: str) -> tuple[str, ...]:
    payload = {"tool_name": tool, "tool_input": {"command": command}}
    return HOST.decode(json.dumps({"hook_event_name": "PreToolUse", **payload}).encode(), {}).paths


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (" *** Add File: a.txt", "a.txt"),
        ("\t*** Delete File: a.txt  ", "a.txt"),
        ("*** Add File:  a.txt", " a.txt"),
        ("*** Add File: a\u2028b.txt", "a\u2028b.txt"),
        ("*** Update File: a b.txt\r", "a b.txt"),
        ("*** Move to: /x/a.txt", "/x/a.txt"),
    ],
)
def test_a_patch_names_its_files_as_the_client_reads_them(line: str, path: str) -> None:
    assert paths("apply_patch", f"*** Begin Patch\n{line}\n+x\n*** End Patch\n") == (path,)


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (f"apply_patch <<'EOF'\n{FILE}\nEOF\n", ("a.txt",)),
        (f"applypatch <<EOF\n{FILE}\nEOF", ("a.txt",)),
        (f"cd 'my dir' && apply_patch <<-\"END\"\n {FILE} \nEND\n", ("my dir/a.txt",)),
        (f"cd sub && apply_patch <<EOF\n{FILE}\nEOF", ("sub/a.txt",)),
        (f"apply_patch <<'EOF' && rm b\n{FILE}\nEOF", ()),
        (f"apply_patch <<'EOF'\n{FILE}\nEOF\nrm b\nEOF", ()),
        (f"apply_patch <<'EOF'\n{FILE}\n", ()),
        (f"cat <<'EOF'\n{FILE}\nEOF", ()),
        ("apply_patch <<'EOF'\nb\nEOF", ()),
    ],
)
def test_a_command_that_only_applies_a_patch_is_one(command: str, found: tuple[str, ...]) -> None:
    assert paths("Bash", command) == found


def test_a_matcher_has_nothing_that_its_expressions_do_not_know() -> None:
    settings = agent_settings("codex")
    assert settings.matcher("before-tool", ("!Read", "!view_image"), None) is None
    assert settings.matcher("before-tool", ("Edit", "mcp__*"), None) == (
        "^(Edit|apply_patch|mcp__.*)$"
    )
