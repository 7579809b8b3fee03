"""What leaves the machine with a gate, and what others on it can read: with a real server."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from casd_support import needs_casd, serving_casd
from conftest import Repo
from test_remote_faults import HERE, configure, ran_here, run

pytestmark = needs_casd


def test_nothing_of_it_is_there(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITGATES_POOL", str(tmp_path / "pool"))
    monkeypatch.setenv("APP_TOKEN", "needle-1")
    monkeypatch.setenv("APP_MODE", "needle-2")
    monkeypatch.setenv("OTHER", "needle-3")
    repo.write(".git/gitgates/note", "needle-4").chmod(0o600)
    repo.write("ignored", "needle-5")
    repo.write(".gitignore", "ignored\n")
    with serving_casd(tmp_path / "casd") as casd:
        for name, goes_there in (("APP_*", False), ("APP_MODE", True)):
            configure(repo, casd.url, goes=HERE)
            text = (repo.path / "pyproject.toml").read_text()
            named = f'gates.goes]\nenv_inputs = ["{name}"]'
            repo.write("pyproject.toml", text.replace("gates.goes]", named))
            goes = run(repo)["goes"]
            assert goes.get("where") == casd.url if goes_there else ran_here(goes)
        stored = b"".join(path.read_bytes() for path in files_of(casd.folder / "cache"))
        assert [number for number in range(1, 6) if b"needle-%d" % number in stored] == [2]
    state = repo.path / ".git/gitgates"
    assert not [path for path in files_of(state) if stat.S_IMODE(path.stat().st_mode) & 0o077]


def files_of(folder: Path) -> list[Path]:
    return [Path(place) / name for place, _folders, names in os.walk(folder) for name in names]
