"""A throw-away repository with one manager's hooks, and what can be seen of it from outside."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from managers import ROOT, Manager, program

if TYPE_CHECKING:
    from collections.abc import Callable

LINES = [f"line {number}\n" for number in range(1, 31)]
HUNK = 25  # the line of a.txt that is changed and not staged
OURS = "not staged\n"
THEIRS = "written by another process\n"
AT_ONCE_S = 3.0
LONG_S = 90.0
SETTLED_S = 0.3
# The gate says that it runs, and goes on when it is told to, or when nobody tells it.
GATE = """\
echo $$ > {out}/pid.$$
cat state.txt > {out}/seen 2>/dev/null
: > {out}/gate.$$
left=600
while [ ! -e {out}/go ] && [ ! -e {out}/go.$$ ] && [ $left -gt 0 ]; do
    sleep 0.05
    left=$((left - 1))
done
"""


class Bed:
    """The repository, its home folder, and the folder where gates leave their words."""

    def __init__(self, folder: Path, manager: Manager) -> None:
        self.folder = folder
        self.manager = manager
        self.repo = folder / "repo"
        self.out = folder / "out"
        self.home = folder / "home"
        self.env = self._environment()
        for path in (self.repo, self.out, self.home):
            path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        (folder / "gate.sh").write_text(GATE.format(out=self.out))
        (self.repo / manager.file).write_text(manager.text.format(gate=folder / "gate.sh"))
        for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
            (self.repo / name).write_text("".join(LINES))
        (self.repo / "state.txt").write_text("main\n")
        self.git("add", ".")
        self.git("commit", "-qm", "base")
        self.run(*manager.install)
        self.change(self.repo)
        self.before = {name: (self.repo / name).read_bytes() for name in ("a.txt", "b.txt")}

    def _environment(self) -> dict[str, str]:
        drop = ("GIT", "PRE_COMMIT", "PREK", "LEFTHOOK", "SKIP", "VIRTUAL_ENV", "XDG")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(drop)}
        names = {f"GIT_{who}_NAME": "x" for who in ("AUTHOR", "COMMITTER")}
        mail = {f"GIT_{who}_EMAIL": "x@example.invalid" for who in ("AUTHOR", "COMMITTER")}
        return {
            **kept,
            **names,
            **mail,
            "HOME": str(self.home),
            "PATH": os.pathsep.join([str(Path(program(""))), os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "NO_COLOR": "1",
            "LC_ALL": "C.UTF-8",
        }

    def change(self, tree: Path) -> None:
        """Stage one change of a.txt, and leave another there and one in b.txt unstaged."""
        lines = [*LINES]
        lines[1] = "staged\n"
        (tree / "a.txt").write_text("".join(lines))
        self.git("-C", str(tree), "add", "a.txt")
        lines[HUNK - 1] = OURS
        (tree / "a.txt").write_text("".join(lines))
        (tree / "b.txt").write_text("".join([*LINES[:9], OURS, *LINES[10:]]))

    def run(self, *argv: str) -> str:
        """Run a program in the repository; return what it printed."""
        done = subprocess.run(
            argv, cwd=self.repo, env=self.env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{argv}: {done.stdout}{done.stderr}")
        return done.stdout

    def git(self, *args: str) -> str:
        """Run git in the repository."""
        return self.run("git", *args)

    def start(self, *argv: str, tree: Path | None = None) -> Started:
        """Start a program in a session of its own."""
        return Started(self.folder, argv, tree or self.repo, self.env)

    def gates(self) -> list[int]:
        """Return the process ids of all gates that were started."""
        return [int(path.suffix[1:]) for path in self.out.glob("gate.*")]

    def wait_gates(self, count: int) -> list[int]:
        """Wait until so many gates run."""
        if not wait(lambda: len(self.gates()) >= count, LONG_S):
            raise RuntimeError(f"{self.manager.name}: no gate came")
        time.sleep(SETTLED_S)  # the manager, too, is to be done with starting it
        return self.gates()

    def go(self, gate: int = 0) -> None:
        """Let one gate end, or every gate, now and later."""
        (self.out / (f"go.{gate}" if gate else "go")).touch()

    def manager_pid(self, gate: int) -> int:
        """Return the manager's process: the nearest one above a gate."""
        pid = gate
        while pid > 1:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            if self.manager.is_it(pid):
                return pid
        raise RuntimeError(f"{self.manager.name}: not found above its gate")

    def is_back(self) -> bool:
        """Return whether both files have the bytes that they had before the commit."""
        return all(
            (self.repo / name).is_file() and (self.repo / name).read_bytes() == content
            for name, content in self.before.items()
        )

    def has_ours(self, tree: Path | None = None) -> bool:
        """Return whether both unstaged changes are in their files, whatever else is there."""
        paths = [(tree or self.repo) / name for name in ("a.txt", "b.txt")]
        return all(path.is_file() and OURS in path.read_text() for path in paths)

    def find(self, text: str) -> list[Path]:
        """Return the files outside the working tree that have a text in them."""
        found = []
        for top in (self.repo / ".git", self.home):
            # Unlike Path.rglob, this bears that somebody tidies up meanwhile.
            paths = [Path(folder, name) for folder, _, names in os.walk(top) for name in names]
            for path in sorted(paths):
                try:
                    if path.is_file() and text.encode() in path.read_bytes():
                        found.append(path)
                except OSError:
                    continue
        return found

    def leftovers(self) -> list[str]:
        """Return what a killed run left behind, in words."""
        kinds = []
        if any(path.suffix == ".patch" or "patch" in path.name for path in self.find(OURS)):
            kinds.append("a patch file")
        if self.git("stash", "list"):
            kinds.append("a stash")
        kinds += [f"`{path.name}`" for path in sorted((self.repo / ".git").glob("*.lock"))]
        if (self.repo / ".git/gitgates/rescue").exists():
            kinds.append("the rescue folder")
        return kinds


class Started:
    """A program under way. What it says goes to a file, so its orphans hold up nobody."""

    def __init__(self, folder: Path, argv: tuple[str, ...], cwd: Path, env: dict[str, str]) -> None:
        self.said_path = folder / f"said.{time.monotonic_ns()}"
        with self.said_path.open("w") as said:
            self.process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self.process.pid

    def has_ended(self, limit_s: float) -> bool:
        """Wait a while; return whether it has ended."""
        return wait(lambda: self.process.poll() is not None, limit_s)

    def end(self) -> tuple[int, str]:
        """Wait until it has ended; return the exit status as a shell has it, and what it said."""
        status = self.process.wait(LONG_S)
        return status if status >= 0 else 128 - status, self.said_path.read_text()


def wait(check: Callable[[], bool], limit_s: float) -> bool:
    """Wait until something is so; return whether it came."""
    end = time.monotonic() + limit_s
    while not check():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def is_running(pid: int) -> bool:
    """Return whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
