"""What ends all hooks in the real clients, and that an agent is kept from it."""

from __future__ import annotations

from pathlib import Path

import others
import pytest
from claude import Options
from claude import write as write_in_claude
from host_scene import HostScene, need
from others import shell, write
from scene import CHECK, STOP, Scene

BEFORE = """
[gates.check]
command = "echo check >> ../ran"
[hooks.PreToolUse]
enabled_tools = ["Edit", "Write"]
gates = ["check"]
"""
# agent, a file of the project and what stands there, options of the client, a variable
SWITCHES = [
    ("codex", ".codex/config.toml", "[features]\nhooks = false\n", (), ""),
    ("codex", ".codex/config.toml", "[features]\ncodex_hooks = false\n", (), ""),
    ("codex", "", "", ("--disable", "hooks"), ""),
    ("codex", "", "", ("-cfeatures.hooks=false",), ""),
    ("qwen", "", "", ("--safe-mode",), ""),
    ("qwen", "", "", (), "QWEN_CODE_SAFE_MODE"),
    ("droid", ".factory/settings.json", '{"hooks": {"hooksDisabled": true}}', (), ""),
    ("copilot", ".github/copilot/settings.json", '{"disableAllHooks": true}', (), ""),
    ("hermes", "", "", (), "HERMES_SAFE_MODE"),
    ("opencode", "", "", ("--pure",), ""),
    ("opencode", "", "", (), "OPENCODE_DISABLE_PROJECT_CONFIG"),
]


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("host", "file", "text", "options", "variable"),
    [pytest.param(*one, id=f"{one[0]}-{number}") for number, one in enumerate(SWITCHES)],
)
def test_it_ends_all_hooks(
    host: str, file: str, text: str, options: tuple[str, ...], variable: str, tmp_path: Path
) -> None:
    need(host)
    scene = HostScene(tmp_path, host, config=BEFORE)
    if file:
        scene.repo.write(file, text)
        scene.commit()
    start, first, *rest = others.command(host, "go")
    verb = (first,) if first in ("exec", "run") else ()
    how = (start, *verb, *options, *(() if verb else (first,)), *rest)
    env = {variable: "1"} if variable else {}
    work = (write(host, scene.at("a.txt"), "x\n"), "end")
    scene.run(*work, options=Options(command=how, limit_s=120, env=env))
    assert scene.at("a.txt").exists()
    assert scene.ran() == 0


@pytest.mark.samples(1)
@pytest.mark.parametrize("options", [("--safe-mode",), ("--setting-sources", "user")], ids=str)
def test_it_ends_all_hooks_of_claude(options: tuple[str, ...], tmp_path: Path) -> None:
    scene = Scene(tmp_path, BEFORE)
    scene.run(write_in_claude(scene.at("a.txt"), "x\n"), "end", options=Options(arguments=options))
    assert scene.at("a.txt").exists()
    assert scene.ran() == 0


def test_codex_is_kept_from_switching_its_hooks_off(tmp_path: Path) -> None:
    need("codex")
    scene = HostScene(tmp_path, "codex", config=CHECK + STOP)
    file = scene.at(".codex/config.toml")
    run = scene.session(
        write("codex", file, "[features]\nhooks = false\n"),
        shell("codex", f"printf '[features]\\nhooks = false\\n' > {file}"),
        shell("codex", "codex features disable hooks"),
        write("codex", scene.at("bad.txt"), "x\n"),
        "first",
        shell("codex", "mv bad.txt good.txt"),
        "second",
    )
    assert run.told_ever().count("rule `agent_settings`") >= 3
    assert not file.exists()
    assert "hooks" not in (scene.client.home / ".codex/config.toml").read_text()
    assert scene.ran() == 2
