"""A repository to try hosts in: far from the person's own, with one gate that ends as we want."""

from __future__ import annotations

import os
import tempfile

from gitgates.errors import GitError
from gitgates.proc.processes import Capture, Group, SignalPipe
from gitgates.record import Record
from gitgates.types import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

GATE = "gitgates-doctor-proof"
LONGEST_S = 20.0
_MOST_BYTES = 1 << 20
_SETTINGS = f"""\
[gates.{GATE}]
command = "@COMMAND@"
[hooks.@HOOK@]
gates = ["{GATE}"]
"""
# Whatever the person's own git is told to do, nothing here is signed, and the only hooks are ours.
_SETUP = """\
git init -q --template= . && git init -q --bare --template= ../remote && mkdir -p .git/hooks &&
git config core.hooksPath "$PWD/.git/hooks" && git remote add origin ../remote &&
git config commit.gpgSign false && git config push.gpgSign false &&
git config user.name doctor && git config user.email doctor@example.invalid &&
git commit -q --allow-empty -m start && git add -A && git commit -q -m settings
"""
# What names another repository, or another run of ours.
_ELSEWHERE = ("GIT_", "GITGATES_ACTIVE", "GITGATES_HOOK", "GITGATES_RUN", "PRE_COMMIT")


class Answered(Record):
    """What came of a command."""

    exit_status: int | None  # None: it was ended, or could not be started
    stdout: bytes
    stderr: str
    trouble: str = ""  # why there is no exit status

    @property
    def last_line(self) -> str:
        """Return the last thing that it said to a person."""
        return self.stderr.strip().rpartition("\n")[2]


class Throwaway:
    """A repository that is gone after its `with`; its gate is one of `hook`, and passes or not."""

    def __init__(self, hook: str, env: Mapping[str, str], *, passes: bool) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gitgates-doctor-")
        # Links on the way would make two names of one folder.
        self._scratch_abs = os.path.realpath(self._folder.name)
        self.root_abs = os.path.join(self._scratch_abs, "work")
        self._settings = _SETTINGS.replace("@HOOK@", hook).replace(
            "@COMMAND@", "true" if passes else "false"
        )
        clean = {
            name: value
            for name, value in env.items()
            if not name.startswith(_ELSEWHERE) or name.startswith("GIT_CONFIG_")
        }
        self._env = clean | {"CLAUDE_PROJECT_DIR": self.root_abs}

    def __enter__(self) -> Self:
        os.mkdir(self.root_abs)
        self.write("gitgates.toml", self._settings)
        done = self.run(_SETUP)
        if done.exit_status != 0:
            self._folder.cleanup()
            why = done.trouble or done.last_line or f"exit status {done.exit_status}"
            raise GitError(f"no repository to try hosts in: {why}")
        return self

    def __exit__(self, *exc: object) -> None:
        self._folder.cleanup()

    def write(self, name: str, content: str | bytes, mode: int = 0o644) -> None:
        """Write a file of the repository."""
        path_abs = os.path.join(self.root_abs, name)
        os.makedirs(os.path.dirname(path_abs), exist_ok=True)
        with open(path_abs, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.chmod(path_abs, mode)

    def run(self, script: str, stdin: bytes = b"") -> Answered:
        """Run a script here, as a host would, with a deadline; all that it started is gone then."""
        said_abs = os.path.join(self._scratch_abs, "stderr")
        given_abs = os.path.join(self._scratch_abs, "stdin")
        with open(given_abs, "wb") as file:
            file.write(stdin)
        command = Command(
            argv=("sh", "-c", 'exec sh -c "$1" 2>"$2"', "sh", script, said_abs),
            cwd_abs=self.root_abs,
            env=tuple(self._env.items()),
            stdin_abs=given_abs,
        )
        capture = Capture(_MOST_BYTES)
        with SignalPipe() as signals, Group(signals) as group:
            child = group.start(command, LONGEST_S, capture)
            if isinstance(child, str):
                return Answered(None, b"", "", child)
            group.wait()
            ending = child.ending()
        trouble = f"no answer after {LONGEST_S:.0f} s" if ending.timed_out else ""
        if ending.signal and not trouble:
            trouble = f"ended by signal {ending.signal}"
        with open(said_abs, "rb") as file:
            stderr = file.read(_MOST_BYTES).decode("utf-8", "replace")
        return Answered(None if trouble else ending.exit_status, capture.kept()[0], stderr, trouble)
