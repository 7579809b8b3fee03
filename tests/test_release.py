"""What is published: metadata that an index can show, and a source distribution that works."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import SRC

HATCHLING = (sys.executable, "-m", "hatchling")
PICTURES = re.compile(r"!\[[^\]]*\]\(([^)]*)\)")
TARGETS = re.compile(r"\[[^\]]*\]\(([^)]*)\)")


def metadata(folder: Path) -> Any:
    done = subprocess.run([*HATCHLING, "metadata"], cwd=folder, capture_output=True, check=True)
    return json.loads(done.stdout)


def published_at(repository: str, tmp_path: Path) -> Path:
    """Return a copy of what the metadata is made from, as if it were published there."""
    for name in ("README.md", "LICENSE", "hatch_build.py"):
        shutil.copy(SRC / name, tmp_path)
    (tmp_path / "gitgates").mkdir()
    shutil.copy(SRC / "gitgates/__init__.py", tmp_path / "gitgates")
    text = (SRC / "pyproject.toml").read_text()
    changed = re.sub(r'(?m)^repository = ".*?"', f'repository = "{repository}"', text)
    (tmp_path / "pyproject.toml").write_text(changed)
    return tmp_path


def test_links_of_the_readme_work_on_an_index(tmp_path: Path) -> None:
    said = metadata(published_at("https://forge.example/us/gitgates/", tmp_path))
    at = re.compile(
        rf"https://forge.example/us/gitgates/(blob|raw)/v{re.escape(said['version'])}/([^#]*)"
    )
    targets = TARGETS.findall(said["readme"]["text"])
    ours = [found.groups() for target in targets if (found := at.match(target))]
    assert len(ours) > 5
    assert [path for _how, path in ours if not (SRC / path).exists()] == []
    pictures = [path for how, path in ours if how == "raw"]
    assert pictures == PICTURES.findall((SRC / "README.md").read_text())
    assert pictures
    assert [target for target in targets if not target.startswith("https://")] == []
    assert said["urls"]["Source"] == "https://forge.example/us/gitgates"
    assert all(url.startswith(said["urls"]["Source"]) for url in said["urls"].values())


def test_nothing_is_linked_whose_address_nobody_knows(tmp_path: Path) -> None:
    said = metadata(published_at("", tmp_path))
    assert "urls" not in said
    targets = TARGETS.findall(said["readme"]["text"])
    assert [target for target in targets if not target.startswith("https://")] == []
    text = said["readme"]["text"]
    assert "Your first gates (`docs/tutorial/first-gates.md` in the source distribution)" in text
    assert "the fix (`docs/pictures/refused-commit.svg` in the source distribution)" in text


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


@pytest.mark.slow
def test_the_source_distribution_is_all_that_a_clone_is(tmp_path: Path) -> None:
    root = unpacked(tmp_path)
    # What a clone holds: all that is not made there.
    made = (".git", ".venv", "dist", "site", "__pycache__", "PKG-INFO", "protos.binpb")
    caches = (".hypothesis", ".import_linter_cache", ".mypy_cache", ".pytest_cache", ".ruff_cache")

    def names(folder: Path) -> set[str]:
        return {
            str(path.relative_to(folder))
            for path in folder.rglob("*")
            if path.is_file() and not {*made, *caches} & set(path.relative_to(folder).parts)
        }

    assert names(SRC) - names(root) == set()


def built(folder: Path, out: Path, umask: int = 0o022, **env: str) -> dict[str, bytes]:
    """Return the files that are built from a folder, by their endings."""
    build = [*HATCHLING, "build", "-d", str(out)]
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", **env}
    subprocess.run(build, cwd=folder, env=env, umask=umask, capture_output=True, check=True)
    return {path.suffix: path.read_bytes() for path in out.iterdir()}


@pytest.mark.slow
def test_a_wheel_has_the_protos_compiled(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(built(SRC, tmp_path)[".whl"])) as wheel:
        names = {name.rpartition("/")[2] for name in wheel.namelist() if "/remote/" in name}
    assert {"protos.binpb", "protos.py"} <= names
    assert not [name for name in names if name.endswith(".proto")]


@pytest.mark.thorough
def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    """In another folder, with other times and permissions, and after use; from the sdist, too."""
    first, second = tmp_path / "first", tmp_path / "deep/er/second"
    made = shutil.ignore_patterns(".git", ".venv", "dist", "site", "__pycache__", ".*_cache")
    shutil.copytree(SRC, first, ignore=made)
    shutil.copytree(SRC, second, ignore=made)
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


@pytest.mark.thorough
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
