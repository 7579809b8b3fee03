"""The client itself looks at the plugin, and at the marketplace that leads to it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from claude import binary

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("path", [ROOT, ROOT / "gitgates/plugin/claude"])
def test_the_client_finds_nothing_wrong(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [binary(), "plugin", "validate", "--strict", path],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "CLAUDE_CONFIG_DIR": str(tmp_path / "client"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Validation passed" in done.stdout
