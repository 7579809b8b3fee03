"""A release is the same wherever it is built, and what it contains works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from release_support import built, copied, extracted, unpacked


@pytest.mark.nightly
def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    """In another folder, with other times and permissions, and after use; from the sdist, too."""
    first, second = copied(tmp_path / "first"), copied(tmp_path / "deep/er/second")
    for path in second.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700 if path.is_dir() or path.stat().st_mode & 0o100 else 0o600)
    for left in ("gitgates/core/__pycache__/x.pyc", ".venv/dev/x.py", ".mypy_cache/x"):
        (second / left).parent.mkdir(parents=True)
        (second / left).touch()
    files = built(first, tmp_path / "out1")
    assert built(second, tmp_path / "out2", 0o077, TZ="Asia/Tokyo", LC_ALL="C") == files
    assert set(files) == {".gz", ".whl"}
    root = extracted(next((tmp_path / "out1").glob("*.tar.gz")))
    assert built(root, tmp_path / "out3")[".whl"] == files[".whl"]


@pytest.mark.nightly
def test_the_demo_of_the_source_distribution(tmp_path: Path) -> None:
    """In an environment that already exists: what it installs, it takes from the index."""
    root = unpacked(tmp_path)
    (root / ".venv").mkdir()
    (root / ".venv/run").symlink_to(Path(sys.executable).parent.parent)
    demo = ["make", "--silent", "--old-file=.venv/run/ready", "demo"]
    env = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(demo, cwd=root, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert b"all as expected" in done.stdout
