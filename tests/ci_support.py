"""CI hosts as far as our steps need them: GitHub's runner and GitLab's, in a clean environment.

What they start runs as they would start it: in a new clone, a new home, an environment that has
nothing of ours, and without a network. gitgates and what it depends on are installed by pip, from
wheels that are made of what is installed beside the tests.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from conftest import SRC
from packaging.requirements import Requirement
from packaging.tags import sys_tags


class Ended(NamedTuple):
    """How a job has ended: its status, and all that it has printed."""

    status: int
    output: str


def make_wheels(folder: Path) -> None:
    """Build our wheel, and pack what it needs into wheels again."""
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    subprocess.run(build, cwd=SRC, capture_output=True, check=True)
    waiting, seen = ["gitgates"], set()
    while waiting:
        name = waiting.pop()
        distribution = importlib.metadata.distribution(name)
        if name != "gitgates":
            _pack(distribution, folder)
        for text in distribution.requires or ():
            needed = Requirement(text)
            if needed.name not in seen and (not needed.marker or needed.marker.evaluate()):
                seen.add(needed.name)
                waiting.append(needed.name)


def _pack(distribution: importlib.metadata.Distribution, folder: Path) -> None:
    """Pack an installed distribution. Source: PEP 427."""
    name = re.sub(r"[-.]+", "_", distribution.name)
    own_tags = re.findall(r"(?m)^Tag: (\S+)", distribution.read_text("WHEEL") or "")
    tag = next(tag for tag in map(str, sys_tags()) if tag in own_tags)
    made = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
    files = [
        file
        for file in distribution.files or ()
        if ".." not in file.parts and file.name not in made and file.suffix != ".pyc"
    ]
    info = next(file.parts[0] for file in files if file.parts[0].endswith(".dist-info"))
    with zipfile.ZipFile(folder / f"{name}-{distribution.version}-{tag}.whl", "w") as wheel:
        for file in files:
            wheel.write(str(file.locate()), str(file))
        wheel.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in files))


@functools.cache
def _within() -> tuple[str, ...]:
    """Return what starts a program without a network, where that is permitted."""
    for within in (("unshare", "-n"), ("unshare", "-rn")):
        if subprocess.run([*within, "true"], capture_output=True, check=False).returncode == 0:
            return within
    return ()  # pip is told to use no index in any case


class Machine:
    """A machine of a host. What outlives a job is the cache, and what was installed for the first.

    A host's would be installed anew, which takes most of the time of a test.
    """

    def __init__(self, folder: Path, wheels: Path, origin: Path) -> None:
        self.folder, self.origin, self.cache = folder, origin, folder / "cache"
        self._wheels, self._jobs = wheels, 0
        tools = folder / "tools"
        tools.mkdir(parents=True)
        (tools / "python3").symlink_to(os.path.realpath(sys.executable))

    def new_job(self, **env: str) -> None:
        """Prepare an empty machine for a job, with these variables of the host."""
        self._jobs += 1
        self.job = self.folder / f"job{self._jobs}"
        self.work, self.temp = self.job / "work", self.folder / "temp"
        for folder in (self.work, self.temp, self.job / "home"):
            folder.mkdir(parents=True, exist_ok=True)
        self.env = {
            "PATH": f"{self.folder / 'tools'}:/usr/bin:/bin",
            "HOME": str(self.job / "home"),
            "CI": "true",
            "PIP_NO_INDEX": "1",
            "PIP_NO_COMPILE": "1",
            "PIP_FIND_LINKS": str(self._wheels),
            "TMPDIR": str(self.temp),
            **env,
        }

    def run(self, argv: tuple[str, ...], **env: str) -> Ended:
        """Run a program in the clone."""
        done = subprocess.run(
            [*_within(), *argv],
            cwd=self.work,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Ended(done.returncode, done.stdout)

    def check_out(self, commit: str) -> None:
        """Clone as the hosts do: all branches, and no branch of its own."""
        for argv in (
            ("git", "init", "-q"),
            ("git", "remote", "add", "origin", str(self.origin)),
            ("git", "fetch", "-q", "origin", "+refs/heads/*:refs/remotes/origin/*", commit),
            ("git", "checkout", "-q", "--detach", commit),
        ):
            ended = self.run(argv)
            assert ended.status == 0, ended.output

    def save(self, key: str, path: str) -> None:
        """Save a folder of the clone in the cache."""
        if (self.work / path).is_dir():
            shutil.copytree(self.work / path, self.cache / key, dirs_exist_ok=True)

    def restore(self, keys: list[str], path: str) -> None:
        """Restore the newest folder whose key begins as the first of these that any does."""
        saved = sorted(self.cache.glob("*"), key=lambda each: each.stat().st_mtime, reverse=True)
        for key in keys:
            for each in saved:
                if each.name.startswith(key):
                    shutil.copytree(each, self.work / path, dirs_exist_ok=True)
                    return


class GitHub(Machine):
    """Runs the steps of a job of a workflow, or those of a composite action."""

    def run_steps(self, steps: list[dict[str, Any]], contexts: dict[str, Any], sha: str) -> Ended:
        """Run steps as the runner does. `contexts`: what expressions may ask for."""
        number = str(self._jobs + 1)
        self.new_job(
            GITHUB_ACTIONS="true",
            GITHUB_SHA=sha,
            GITHUB_PATH="",
            RUNNER_OS="Linux",
        )
        path_file = self.job / "path"
        path_file.touch()
        self.env |= {"GITHUB_WORKSPACE": str(self.work), "RUNNER_TEMP": str(self.temp)}
        self.env["GITHUB_PATH"] = str(path_file)
        contexts = {**contexts, "runner.os": "Linux", "steps.run.outcome": "skipped"}
        contexts |= {"github.run_id": number, "github.run_attempt": "1"}
        failed, output = 0, ""
        for step in steps:
            if not evaluate(
                step.get("if", "${{ success() }}"), {**contexts, "success()": not failed}
            ):
                continue
            if "uses" in step:
                self._use(step, contexts, sha)
                continue
            env = {
                name: evaluate(text, contexts) or "" for name, text in step.get("env", {}).items()
            }
            more = path_file.read_text().splitlines()
            env["PATH"] = ":".join([*reversed(more), self.env["PATH"]])
            options = ["--noprofile", "--norc", "-eo", "pipefail"] if "shell" in step else ["-e"]
            ended = self.run(("bash", *options, "-c", step["run"]), **env)
            output += f"## {step['name']}\n{ended.output}"
            failed = failed or ended.status
            if "id" in step:
                outcome = "failure" if ended.status else "success"
                contexts[f"steps.{step['id']}.outcome"] = outcome
        return Ended(failed, output)

    def _use(self, step: dict[str, Any], contexts: dict[str, Any], sha: str) -> None:
        action = step["uses"].partition("@")[0]
        given = {name: evaluate(value, contexts) for name, value in step["with"].items()}
        if action == "actions/checkout":
            assert given["fetch-depth"] == 0
            self.check_out(sha)
        elif action == "actions/cache/restore":
            keys = [given["key"], *given["restore-keys"].splitlines()]
            self.restore([key.replace("/", "_") for key in keys], given["path"])
        else:
            assert action == "actions/cache/save"
            self.save(given["key"].replace("/", "_"), given["path"])


def evaluate(text: Any, contexts: dict[str, Any]) -> Any:
    """Return a value of a workflow with its expressions filled in; of one alone, its value."""
    if not isinstance(text, str):
        return text
    if match := re.fullmatch(r"\$\{\{ ((?:(?!\}\}).)*) \}\}", text):
        return _expression(match[1], contexts)
    return re.sub(
        r"\$\{\{ (.*?) \}\}", lambda found: str(_expression(found[1], contexts) or ""), text
    )


def _expression(text: str, contexts: dict[str, Any]) -> Any:
    if " || " in text:
        return next(filter(None, (_expression(part, contexts) for part in text.split(" || "))), "")
    if " && " in text:
        return all(_expression(part, contexts) for part in text.split(" && "))
    for sign in (" == ", " != "):
        if sign in text:
            left, right = (_expression(part, contexts) for part in text.split(sign))
            return (left == right) == (sign == " == ")
    if text.startswith("'"):
        return text.strip("'")
    return contexts.get(text, True if text == "!cancelled()" else "")


class GitLab(Machine):
    """Runs the job of a component."""

    def run_job(self, file: str, **variables: str) -> Ended:
        """Run the job of a file with `spec`, for a commit: CI_COMMIT_SHA."""
        spec, _ = yaml.safe_load_all(file)
        given = {name: each["default"] for name, each in spec["spec"]["inputs"].items()}
        text = file.partition("\n---\n")[2]
        for name, value in given.items():
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            text = text.replace(f"$[[ inputs.{name} ]]", shown)
        assert "$[[" not in text
        job = yaml.safe_load(text)["gitgates"]
        self.new_job(GITLAB_CI="true", **job["variables"], **variables)
        before = os.umask(0)  # in which runners clone
        try:
            self.check_out(variables["CI_COMMIT_SHA"])
            cache = job["cache"]
            [path] = cache["paths"]
            keys = [_filled(key, self.env) for key in (cache["key"], *cache["fallback_keys"])]
            self.restore(keys, path)
            script = "set -eo pipefail\n" + "\n".join(job["script"])
            ended = self.run(("bash", "-c", script))
            self.save(keys[0], path)
        finally:
            os.umask(before)
        return ended


def _filled(text: str, env: dict[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda found: env.get(found[1], ""), text)
