"""What is published: metadata that an index can show, and a source distribution that works."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import SRC
from release_support import HATCHLING, built, names_of_clone

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
    assert "may stop (`docs/pictures/kept-at-work.svg` in the source distribution)" in text


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return built(SRC, tmp_path_factory.mktemp("release"))


def test_the_source_distribution_is_all_that_a_clone_is(release: dict[str, bytes]) -> None:
    with tarfile.open(fileobj=io.BytesIO(release[".gz"])) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert set(names_of_clone()) - names == set()


def test_a_wheel_has_the_protos_compiled(release: dict[str, bytes]) -> None:
    with zipfile.ZipFile(io.BytesIO(release[".whl"])) as wheel:
        names = {name.rpartition("/")[2] for name in wheel.namelist() if "/remote/" in name}
    assert {"protos.binpb", "protos.py"} <= names
    assert not [name for name in names if name.endswith(".proto")]
