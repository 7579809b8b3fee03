"""The peers: how a project sets each of them up, and how its output tells what has run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from clock import NODE_MODULES, Clock, Wrong

GITGATES = "gitgates"
NO_HOOK = "no hook"
HUSKY = "husky + lint-staged"
NAMES = (NO_HOOK, GITGATES, "prek", "pre-commit", "lefthook", HUSKY)


class Gate(NamedTuple):
    """One check of a project."""

    name: str
    command: str
    gets_files: bool = False
    reuse: str = ""  # lines of gitgates' settings
    proves: str = ""  # what it prints if it passes: under husky, nothing else tells


class Peer(NamedTuple):
    """One way to run the gates at a commit."""

    name: str
    version: str

    def set_up(self, clock: Clock, folder: Path, gates: list[Gate], *, parallel: bool) -> None:
        """Write the settings into a repository, and install the hook."""
        if self.name == NO_HOOK:
            return
        for path, text in settings(self.name, gates, parallel=parallel).items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text)
        self.install(clock, folder)

    def install(self, clock: Clock, folder: Path) -> None:
        """Install the hook in a repository or a worktree that has the settings."""
        if self.name == HUSKY:
            if not (folder / "node_modules").exists():
                (folder / "node_modules").symlink_to(NODE_MODULES)
            clock.run("husky", cwd=folder)
        elif self.name == GITGATES:
            clock.run(GITGATES, "install-hooks", "-t", "pre-commit", cwd=folder)
        elif self.name != NO_HOOK:
            clock.run(self.name, "install", cwd=folder)

    @property
    def slug(self) -> str:
        """Its name as that of a folder."""
        return re.sub(r"\W+", "-", self.name)

    def hook(self) -> str:
        """Return the command that git runs before a commit, from the root."""
        if self.name == NO_HOOK:
            return "true"
        hooks = ".husky/_" if self.name == HUSKY else ".git/hooks"
        return f"env GIT_INDEX_FILE=.git/index {hooks}/pre-commit"

    def all_files(self) -> str:
        """Return the command that runs the gates on all files; without a hook, nothing."""
        empty_tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
        return {
            NO_HOOK: "true",
            GITGATES: "gitgates run --all-files",
            "lefthook": "lefthook run pre-commit --all-files --force",
            HUSKY: f"npx lint-staged --diff={empty_tree}",
        }.get(self.name, f"{self.name} run --all-files")

    def must_pass(self, gates: list[Gate], said: str, reused: tuple[str, ...] = ()) -> None:
        """Raise Wrong where the output does not have each gate, passed or as named, reused."""
        for gate in gates:
            how = "reused" if gate.name in reused else "passed"
            if not self._shows(gate, said, how):
                raise Wrong(f"{self.name}: {gate.name} is not shown as {how}:\n{said}")

    def must_fail(self, gates: list[Gate], said: str) -> None:
        """Raise Wrong where the output does not have each gate as failed."""
        for gate in gates:
            if self.name != HUSKY and not self._shows(gate, said, "failed"):
                raise Wrong(f"{self.name}: {gate.name} is not shown as failed:\n{said}")

    def _shows(self, gate: Gate, said: str, how: str) -> bool:
        name, command = re.escape(gate.name), re.escape(gate.command)
        pattern = {
            NO_HOOK: "",
            GITGATES: rf"^{name} +{how}\b",
            "lefthook": rf"{'(🥊|✗)' if how == 'failed' else '(✔️|✓)'} +{name}\b",
            HUSKY: gate.proves or rf"\[COMPLETED\] {command}$",
        }.get(self.name, rf"^{name}\.+.*{'Failed' if how == 'failed' else 'Passed'}")
        return re.search(pattern, said, re.MULTILINE) is not None


def available(clock: Clock) -> list[Peer]:
    """Return the peers that are installed here, and say which are not."""
    found = []
    for name in NAMES:
        programs = {NO_HOOK: ["git"], HUSKY: ["npx", "husky", "lint-staged"]}.get(name, [name])
        missing = [one for one in programs if not shutil.which(one, path=clock.env["PATH"])]
        if missing:
            print(f"!!! {name} is left out: {', '.join(missing)} not found", flush=True)
        else:
            found.append(Peer(name, _version(clock, name)))
    return found


def _version(clock: Clock, name: str) -> str:
    if name == HUSKY:
        packages = [NODE_MODULES / one / "package.json" for one in ("husky", "lint-staged")]
        return " + ".join(json.loads(file.read_text())["version"] for file in packages)
    argv = {NO_HOOK: ("git", "--version"), "lefthook": ("lefthook", "version")}
    done = subprocess.run(
        argv.get(name, (name, "--version")), env=clock.env, capture_output=True, check=True
    )
    words = done.stdout.decode().replace(",", " ").split()
    number = next(word for word in words if word[0].isdigit())
    return f"git {number}" if name == NO_HOOK else number


def settings(name: str, gates: list[Gate], *, parallel: bool) -> dict[str, str]:
    """Return path → text of the files in which a peer is configured."""
    if name == GITGATES:
        return {"gitgates.toml": _gitgates(gates, parallel=parallel)}
    if name == "lefthook":
        return {"lefthook.yml": _lefthook(gates, parallel=parallel)}
    if name == HUSKY:
        staged = [gate.command for gate in gates if gate.gets_files]
        rest = [gate.command for gate in gates if not gate.gets_files]
        package = {"private": True, "lint-staged": {"*.py": staged}}
        lines = ["npx lint-staged"] * bool(staged) + rest
        return {
            "package.json": json.dumps(package, indent=2) + "\n",
            ".husky/pre-commit": "".join(f"{line}\n" for line in lines),
        }
    return {".pre-commit-config.yaml": "repos:\n- repo: local\n  hooks:\n" + _local_hooks(gates)}


def _gitgates(gates: list[Gate], *, parallel: bool) -> str:
    tables = ""
    for gate in gates:
        tables += f'[gates.{gate.name}]\ncommand = "{gate.command}"\n'
        tables += 'files = ["*.py"]\npass_files = true\n' if gate.gets_files else ""
        tables += gate.reuse
    names = json.dumps([gate.name for gate in gates])
    strategy = 'strategy = "collect"\n' if parallel else ""
    for hook in ("pre-commit", "Stop"):
        tables += f"[hooks.{hook}]\ngates = {names}\n{strategy}"
    return tables


def _local_hooks(gates: list[Gate]) -> str:
    lines = ""
    for gate in gates:
        lines += f"  - id: {gate.name}\n    name: {gate.name}\n    entry: {gate.command!r}\n"
        lines += "    language: system\n"
        lines += "    types: [python]\n" if gate.gets_files else "    pass_filenames: false\n"
    return lines


def _lefthook(gates: list[Gate], *, parallel: bool) -> str:
    lines = f"pre-commit:\n  parallel: {str(parallel).lower()}\n  jobs:\n"
    for gate in gates:
        files = " {staged_files}" if gate.gets_files else ""
        lines += f"  - name: {gate.name}\n    run: '{gate.command}{files}'\n"
        lines += "    glob: '*.py'\n" if gate.gets_files else ""
    return lines
