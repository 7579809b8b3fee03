"""The real Codex and Gemini CLI: where they are, and what points them at a scripted model."""

from __future__ import annotations

import json
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
INSTALLED = ROOT / ".venv/agents/node_modules/.bin"
# Read once: the tests' own fixture takes every GITGATES name away.
GIVEN = {name: os.environ.get(f"GITGATES_E2E_{name.upper()}", "") for name in ("codex", "gemini")}
# What lets them work without asking; a model's name, or Gemini CLI would ask a model for one.
ARGUMENTS = {
    "codex": ["--dangerously-bypass-approvals-and-sandbox"],
    "gemini": ["--yolo", "--skip-trust", "--model", "gemini-2.5-pro"],
}
_CODEX = """\
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
"""
_GEMINI = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "telemetry": {"enabled": False},
}


def program(name: str) -> Path:
    """Return a client's program, which need not be there."""
    return Path(GIVEN[name] or INSTALLED / name)


def configure(home: Path, port: int) -> dict[str, str]:
    """Write both clients' settings for a model on this port; return the variables they need."""
    codex, gemini = home / ".codex", home / ".gemini"
    for folder in (codex, gemini):
        folder.mkdir(exist_ok=True)
    (codex / "config.toml").write_text(_CODEX.format(port=port))
    (gemini / "settings.json").write_text(json.dumps(_GEMINI))
    return {
        "CODEX_HOME": str(codex),
        "SCRIPTED_KEY": "no-key",
        "GEMINI_API_KEY": "no-key",
        "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{port}",
    }
