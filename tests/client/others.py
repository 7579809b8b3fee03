"""The real clients of other agents: where they are, what points them at a scripted model.

And how that model calls their tools: the same four calls, in each client's own words.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
INSTALLED = ROOT / ".venv/agents"
USUAL = ("codex", "copilot", "gemini", "qwen", "droid")  # of npm, and small enough
HOSTS = (*USUAL, "vibe", "kimi", "opencode", "kilo", "hermes", "openhands")
# Read once: the tests' own fixture takes every GITGATES name away.
GIVEN = {name: os.environ.get(f"GITGATES_E2E_{name.upper()}", "") for name in HOSTS}
# What lets them work without asking; a model's name, or Gemini CLI would ask a model for one.
ARGUMENTS = {
    "codex": ["--dangerously-bypass-approvals-and-sandbox"],
    "gemini": ["--yolo", "--skip-trust", "--model", "gemini-2.5-pro"],
    "copilot": ["--allow-all-tools", "--allow-all-paths", "--no-auto-update"],
    "qwen": ["--yolo"],
    "opencode": [],
    "kilo": ["--auto"],
    "kimi": [],
    "vibe": ["--trust", "--auto-approve"],
    "hermes": ["--accept-hooks", "--yolo"],
    "openhands": ["--always-approve", "--override-with-envs"],
}
COUNTING = ("codex", "gemini", "qwen", "opencode", "kilo")  # that say how many tokens they used
# Their command for one prompt, which comes last; with trust in the hooks of a repository.
_COMMANDS = {
    "codex": ["exec", *ARGUMENTS["codex"], "--dangerously-bypass-hook-trust", "--"],
    "copilot": [
        "--trust-folder",
        "--allow-all-tools",
        "--allow-all-paths",
        "--no-auto-update",
        "-p",
    ],
    "gemini": [*ARGUMENTS["gemini"], "-p"],
    "qwen": ["--yolo", "-p"],
    "droid": ["exec", "--skip-permissions-unsafe", "-m", "custom:scripted-0"],
    "vibe": ["--trust", "--auto-approve", "-p"],
    "kimi": ["-p"],
    "opencode": ["run"],
    "kilo": ["run", "--auto"],
    "hermes": ["--accept-hooks", "--yolo", "-z"],
    "openhands": ["--headless", "--json", "--always-approve", "--override-with-envs", "-t"],
}
_CODEX = """\
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
[projects."{cwd}"]
trust_level = "trusted"
"""
_QUIET = {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}}
_GEMINI = {
    **_QUIET,
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}
_QWEN = {
    **_QUIET,
    "security": {"auth": {"selectedType": "openai"}},
    "general": {"enableAutoUpdate": False},
    "model": {"name": "scripted"},
    "memory": {"enableManagedAutoMemory": False},  # or it asks the model for more, on its own
}
_DROID = {
    "model": "scripted",
    "id": "custom:scripted-0",
    "index": 0,
    "displayName": "scripted",
    "apiKey": "no-key",
    "provider": "generic-chat-completion-api",
    "maxOutputTokens": 4096,
}
_VIBE = """\
active_model = "scripted"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false
[[providers]]
name = "scripted"
api_base = "{url}/v1"
api_key_env_var = "SCRIPTED_KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "scripted"
provider = "scripted"
alias = "scripted"
"""
_KIMI = """\
default_model = "scripted"
telemetry = false
[providers.scripted]
type = "openai"
base_url = "{url}/v1"
api_key = "no-key"
[models.scripted]
provider = "scripted"
model = "scripted"
max_context_size = 200000
"""
_OPENCODE = {
    "autoupdate": False,
    "share": "disabled",
    "model": "scripted/scripted",
    "small_model": "scripted/scripted",
    "permission": "allow",
}
_HERMES = """\
model:
  default: scripted
  provider: custom
  base_url: {url}/v1
  api_key: no-key
  context_length: 200000
agent:
  verify_on_stop: false  # or it sends itself back, before it asks us
"""
_LOW = {"security_risk": "LOW"}  # what OpenHands asks of each call


class Call(NamedTuple):
    """A call of one of a client's tools."""

    name: str
    input: dict[str, Any]


def program(name: str) -> Path:
    """Return a client's program, which need not be there."""
    # Of npm without the script that would put it in place, of a virtual environment, of npm.
    places = ("node_modules/opencode-*/bin", "bin", "node_modules/.bin")
    found = (one for place in places for one in sorted((INSTALLED / name).glob(f"{place}/{name}")))
    return Path(GIVEN[name] or next(found, INSTALLED / name))


def command(host: str, prompt: str) -> tuple[str, ...]:
    """Return the command that has a client work on one prompt, to its end."""
    node = program(host).with_name("node")  # where a client brings a newer one
    start = (str(node), str(program(host))) if node.exists() else (host,)
    return (*start, *_COMMANDS[host], prompt)


def configure(job: dict[str, Any], port: int) -> dict[str, str]:
    """Write all clients' settings for a model on this port; return the variables they need."""
    home = Path(job["home"])
    url = f"http://127.0.0.1:{port}"
    droid = {"customModels": [{**_DROID, "baseUrl": f"{url}/v1"}], "cloudSessionSync": False}
    model = {"name": "scripted", "limit": {"context": 200_000, "output": 8000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "no-key"},
        "models": {"scripted": model},
    }
    opencode = {**_OPENCODE, "provider": {"scripted": provider}}
    for file, text in (
        (".codex/config.toml", _CODEX.format(url=url, cwd=job["cwd"])),
        (".profile", f"PATH='{job['path']}'\n"),  # Codex runs commands in a login shell
        (".gemini/settings.json", json.dumps(_GEMINI)),
        (".qwen/settings.json", json.dumps(_QWEN)),
        (".factory/settings.json", json.dumps(droid)),
        (".vibe/config.toml", _VIBE.format(url=url)),
        (".kimi-code/config.toml", _KIMI.format(url=url)),
        (".hermes/config.yaml", _HERMES.format(url=url)),
        (".config/opencode/opencode.json", json.dumps(opencode)),
        (".config/kilo/kilo.json", json.dumps(opencode)),
    ):
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        there = (home / file).read_text() if (home / file).exists() else ""
        ours = "".join(there.partition("# gitgates:")[1:])  # some have our hooks in the same file
        (home / file).write_text(text + ours)
    for name in ("opencode", "kilo"):
        _link_packages(name, home / ".config" / name, Path(job["cwd"], f".{name}"))
    return {
        "CODEX_HOME": f"{home}/.codex",
        "SCRIPTED_KEY": "no-key",
        "COPILOT_OFFLINE": "true",
        "COPILOT_HOME": f"{home}/.copilot",
        "COPILOT_MODEL": "scripted",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_API_KEY": "no-key",
        "GEMINI_API_KEY": "no-key",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",  # or --skip-trust runs no hooks
        "GOOGLE_GEMINI_BASE_URL": url,
        "OPENAI_API_KEY": "no-key",
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_MODEL": "scripted",
        "FACTORY_DROID_AUTO_UPDATE_ENABLED": "false",
        "LLM_API_KEY": "no-key",
        "LLM_BASE_URL": f"{url}/v1",
        "LLM_MODEL": "openai/scripted",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENHANDS_SUPPRESS_BANNER": "1",
        **{
            f"{name}_DISABLE_{what}": "1"
            for name in ("OPENCODE", "KILO")
            for what in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
        },
    }


def _link_packages(name: str, *folders: Path) -> None:
    """Link what a client would install into its folders for plugins: it waits for a network."""
    for folder in filter(Path.is_dir, folders):
        for one in ("node_modules", "package.json", "package-lock.json"):
            if (there := INSTALLED / name / one).exists() and not (folder / one).exists():
                (folder / one).symlink_to(there)


def write(host: str, path: Path, content: str) -> Call:
    """Write a file that does not exist yet."""
    lines = "".join(f"+{line}\n" for line in content.splitlines())
    patch = f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"
    named = {"file_path": str(path), "content": content}
    return {
        "codex": Call("apply_patch", {"input": patch}),
        "copilot": Call("create", {"path": str(path), "file_text": content}),
        "gemini": Call("write_file", named),
        "qwen": Call("write_file", named),
        "droid": Call("Create", named),
        "vibe": Call("write_file", {"path": str(path), "content": content}),
        "kimi": Call("Write", {"path": str(path), "content": content}),
        "opencode": Call("write", {"filePath": str(path), "content": content}),
        "kilo": Call("write", {"filePath": str(path), "content": content}),
        "hermes": Call("write_file", {"path": str(path), "content": content}),
        "openhands": Call(
            "file_editor", {"command": "create", "path": str(path), "file_text": content, **_LOW}
        ),
    }[host]


def edit(host: str, path: Path, old: str, new: str) -> Call:
    """Replace a line of a file that was written before."""
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n"
    named = {"file_path": str(path), "old_string": old, "new_string": new}
    return {
        "codex": Call("apply_patch", {"input": patch}),
        "copilot": Call("edit", {"path": str(path), "old_str": old, "new_str": new}),
        "gemini": Call("replace", {**named, "instruction": "i"}),
        "qwen": Call("edit", named),
        "droid": Call("Edit", {"file_path": str(path), "old_str": old, "new_str": new}),
        "vibe": Call("edit", named),
        "kimi": Call("Edit", {"path": str(path), "old_string": old, "new_string": new}),
        "opencode": Call("edit", {"filePath": str(path), "oldString": old, "newString": new}),
        "kilo": Call("edit", {"filePath": str(path), "oldString": old, "newString": new}),
        "hermes": Call("patch", {"path": str(path), "old_string": old, "new_string": new}),
        "openhands": Call(
            "file_editor",
            {"command": "str_replace", "path": str(path), "old_str": old, "new_str": new, **_LOW},
        ),
    }[host]


def shell(host: str, line: str) -> Call:
    """Run a line in the shell."""
    risk = {"summary": "s", "riskLevel": "low", "riskLevelReason": "r"}
    return {
        "codex": Call("exec_command", {"cmd": line}),
        "copilot": Call("bash", {"command": line, "description": "d"}),
        "gemini": Call("run_shell_command", {"command": line}),
        "qwen": Call("run_shell_command", {"command": line, "is_background": False}),
        "droid": Call("Execute", {"command": line, **risk}),
        "vibe": Call("bash", {"command": line}),
        "kimi": Call("Bash", {"command": line}),
        "opencode": Call("bash", {"command": line, "description": "d"}),
        "kilo": Call("bash", {"command": line, "description": "d"}),
        "hermes": Call("terminal", {"command": line}),
        "openhands": Call("terminal", {"command": line, **_LOW}),
    }[host]


def agent(host: str, word: str, kind: str = "") -> tuple[Call, ...]:
    """Start a sub-agent of a type whose turns are listed under `word`, and wait for it."""
    named = {"description": "d", "prompt": word}
    worker = "worker" if host == "droid" else "general-purpose"
    if host == "codex":
        typed = {"agent_type": kind} if kind else {}
        its_id = '{{"agent_id":"([^"]+)"}}'
        return (
            Call("multi_agent_v1.spawn_agent", {"message": word, **typed}),
            Call("multi_agent_v1.wait_agent", {"targets": [its_id], "timeout_ms": 60_000}),
        )
    if host == "vibe":
        spawn = f"return await tools.agents.spawn({json.dumps({'message': word, 'name': 'sub'})})"
        return Call("run_typescript", {"code": spawn}), Call("wait", {"timeout_ms": 60_000})
    call = {
        "copilot": Call(
            "task", {**named, "agent_type": kind or worker, "name": "sub", "mode": "sync"}
        ),
        "gemini": Call("invoke_agent", {"agent_name": kind or "generalist", "prompt": word}),
        "qwen": Call(
            "agent", {**named, "subagent_type": kind or worker, "run_in_background": False}
        ),
        "droid": Call("Task", {**named, "subagent_type": kind or worker}),
        "kimi": Call("Agent", {**named, "subagent_type": "coder"}),
        "opencode": Call("task", {**named, "subagent_type": kind or "general"}),
        "kilo": Call("task", {**named, "subagent_type": kind or "general"}),
        "hermes": Call("delegate_task", {"goal": word, "context": "c"}),
        "openhands": Call("task", {**named, "subagent_type": "default", **_LOW}),
    }
    return (call[host],)


def report(host: str, text: str) -> Call | str:
    """End a sub-agent."""
    return Call("complete_task", {"result": {"response": text}}) if host == "gemini" else text
