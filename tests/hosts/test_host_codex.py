"""What is Codex's alone: its patches, through the shell as well, and its expressions."""

from __future__ import annotations

import json

import pytest

from gitgates.hosts import agent_host, agent_settings

HOST = agent_host("codex")
FILE = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch"


def paths(tool: str, command: str) -> tuple[str, ...]:
    payload = {"tool_name": tool, "tool_input": {"command": command}}
    return HOST.decode(
        json.dumps({"hook_event_name": "PreToolUse", **payload}).encode(), {}
    ).tool.paths


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


# Settings that the client reads, and what `hooks/list` of its app-server says of their hooks
SETTINGS = {
    "PreToolUse": ("apply_patch|Bash|write_stdin", 5),
    "SessionStart": (None, 5),
    "Stop": (None, 315),
}
HASHES = {
    "pre_tool_use:0:0": "3528556d7efe3be0b89896aa8ab3ee98a4ab201481e0e2267f391bf5dffe6f7a",
    "session_start:0:0": "7c927cb6f971ac3824c6397ec860adebc3397cee9a3dd96e0f4a6e81fb4f4ad3",
    "stop:0:0": "9d8487cb0a748f927f27a79b58a3ebf65e87167a09a90213ed1deb8d8fc7a58b",
}
STATES = "".join(
    f'[hooks.state."/r/.codex/hooks.json:{key}"]\ntrusted_hash = "sha256:{value}"\n'
    for key, value in HASHES.items()
)


def written(timeout_s: int = 315, *before: object) -> str:
    hooks = {
        event: [
            *(before if event == "Stop" else ()),
            {
                **({"matcher": matcher} if matcher else {}),
                "hooks": [
                    {
                        "type": "command",
                        "command": "gitgates agent-hook codex",
                        "timeout": timeout_s if event == "Stop" else usual_s,
                    }
                ],
            },
        ]
        for event, (matcher, usual_s) in SETTINGS.items()
    }
    return json.dumps({"hooks": hooks})


@pytest.mark.parametrize(
    ("states", "text", "is_trusted"),
    [
        (STATES, written(), True),
        (STATES, written(300), False),  # changed since
        (STATES, written(315, {"hooks": []}), False),  # at another place since
        (STATES.replace('stop:0:0"]', 'stop:0:0"]\nenabled = false'), written(), False),
        (STATES.replace("stop:0:0", "stop:1:0"), written(), False),
        (STATES.replace("/r/", "/other/"), written(), False),
        ("", written(), False),
        ("no TOML", written(), None),
        ("hooks = 3", written(), None),
        ("[hooks]\nstate = [3]", written(), None),
        ('[hooks.state]\n"/r" = 3', written(), None),
    ],
)
def test_hooks_are_trusted_each_and_as_they_are(
    states: str, text: str, *, is_trusted: bool | None
) -> None:
    found = agent_settings("codex").is_trusted(states, "/r/.codex/hooks.json", text)
    assert found is is_trusted


@pytest.mark.parametrize(
    ("text", "troubles"),
    [
        (written(), []),
        ('{"description": "x", "hooks": {}}', []),
        ('{"$schema": "x", "hooks": {}}', ["has the key `$schema`"]),
        ('\ufeff{"hooks": {}}', ["begins with a byte order mark"]),
    ],
)
def test_what_makes_the_client_ignore_the_file_is_found(text: str, troubles: list[str]) -> None:
    found = agent_settings("codex").read(text, "hooks.json").troubles
    assert [*found] == [f"{why}: Codex ignores the file" for why in troubles]
