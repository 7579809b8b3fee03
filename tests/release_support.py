"""The distributions of a release, built from this checkout or another folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from conftest import SRC

HATCHLING = (sys.executable, "-m", "hatchling")


def names_of_clone() -> list[str]:
    """Return the names of all files that are not made here."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=SRC, capture_output=True, check=True)
    return [name for name in os.fsdecode(listed.stdout).split("\0") if (SRC / name).is_file()]


def copied(folder: Path, *made: str) -> Path:
    """Copy this checkout, and files that its installation has made."""
    for name in (*names_of_clone(), *made):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(SRC / name, folder / name)
    return folder


def unpacked(tmp_path: Path) -> Path:
    """Return the folder of a source distribution."""
    build = [*HATCHLING, "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(build, cwd=SRC, capture_output=True, check=True)
    return extracted(next(tmp_path.glob("*.tar.gz")))


def extracted(sdist: Path) -> Path:
    """Unpack a source distribution where it is, and return the folder in it."""
    with tarfile.open(sdist) as tar:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.4 and newer
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(sdist.parent)
    return next(sdist.parent.glob("gitgates-*/"))


def built(folder: Path, out: Path, umask: int = 0o022, **env: str) -> dict[str, bytes]:
    """Return the files that are built from a folder, by their endings."""
    build = [*HATCHLING, "build", "-d", str(out)]
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", **env}
    subprocess.run(build, cwd=folder, env=env, umask=umask, capture_output=True, check=True)
    return {path.suffix: path.read_bytes() for path in out.iterdir()}
