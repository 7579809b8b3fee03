"""Ask the doctor, and speak of its findings briefly."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

from conftest import Repo

CONFIG = """
[gates.g]
command = "true"
[hooks.pre-commit]
gates = ["g"]
[hooks.pre-push]
gates = ["g"]
"""
HOOKS = ("pre-commit", "pre-merge-commit", "pre-push")


class Said(NamedTuple):
    severity: str
    check: str
    where: str
    what: str
    mend: str


def examine(repo: Repo, **env: str) -> list[Said]:
    """Return what the doctor finds, but not what is ok; its exit status has to fit."""
    done = repo.gitgates("doctor", "--format", "json", env=env)
    assert done.stderr == b""
    document = json.loads(done.stdout)
    found = [Said(**finding) for finding in document["findings"]]
    wrong = any(one.severity == "problem" for one in found)
    assert (document["version"], document["ok"], done.returncode) == (1, not wrong, int(wrong))
    return [one for one in found if one.severity != "ok"]


_SHIMS: dict[str, bytes] = {}  # as install-hooks has written them, once for all tests


def healthy(repo: Repo) -> Repo:
    """Configure and install; nothing is wrong then."""
    repo.config(CONFIG)
    folder = repo.path / repo.git("rev-parse", "--git-path", "hooks")
    is_plain = folder == repo.path / ".git/hooks" and not any(folder.iterdir())
    if _SHIMS and is_plain:
        for hook, shim in _SHIMS.items():
            (folder / hook).write_bytes(shim)
            (folder / hook).chmod(0o755)
        return repo
    done = repo.gitgates("install-hooks")
    assert done.returncode == 0, done.stderr
    if is_plain:
        _SHIMS.update({hook: (folder / hook).read_bytes() for hook in HOOKS})
    return repo


def follow(repo: Repo, mend: str) -> None:
    """Do what a finding says; gitgates is not started anew for that."""
    ours = re.fullmatch(r"(?:\(cd (.+) && )?gitgates ([^)]+)\)?", mend)
    if ours:
        done = Repo(Path(ours[1] or repo.path)).gitgates(*ours[2].split())
    else:
        done = repo.ask("sh", "-c", mend)
    assert done.returncode == 0, (mend, done)


def committed(repo: Repo) -> Repo:
    repo.commit_all("start", no_verify=True)
    return repo
