"""A repository to try hosts in: far from the person's own, with one gate that ends as we want."""

from __future__ import annotations

import os
import tempfile

from gitgates.doctor.attempt import Answered, Attempt, attempt
from gitgates.errors import GitError
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

GATE = "gitgates-doctor-proof"
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


class Trial(Record):
    """One try: for which hook, how its gate ends, and around whose settings."""

    hook: str
    passes: bool
    env: Mapping[str, str]


class Throwaway:
    """A repository that is gone after its `with`."""

    def __init__(self, trial: Trial) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gitgates-doctor-")
        self._trial = trial
        # Links on the way would make two names of one folder.
        self._scratch_abs = os.path.realpath(self._folder.name)
        self.root_abs = os.path.join(self._scratch_abs, "work")

    def __enter__(self) -> Self:
        os.mkdir(self.root_abs)
        command = "true" if self._trial.passes else "false"
        text = _SETTINGS.replace("@HOOK@", self._trial.hook).replace("@COMMAND@", command)
        self.write("gitgates.toml", text)
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

    def run(
        self, command: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> Answered:
        """Run a command here, with nothing in its environment that names another repository."""
        told = ("GIT_", "GITGATES_ACTIVE", "GITGATES_HOOK", "GITGATES_RUN", "PRE_COMMIT")
        clean = {
            name: value
            for name, value in self._trial.env.items()
            if not name.startswith(told) or name.startswith("GIT_CONFIG_")
        }
        clean |= {"CLAUDE_PROJECT_DIR": self.root_abs, **(env or {})}
        return attempt(Attempt(command, self.root_abs, clean, self._scratch_abs, stdin))
