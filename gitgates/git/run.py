"""Every git command that gitgates itself runs.

Ours never run hooks, never take optional locks, never start a pager, an external diff or the
user's aliases, and speak English, because we read what they say.
"""

from __future__ import annotations

import os

from gitgates.errors import GitError
from gitgates.proc.call import Called, Talk, abandon, begin, call, finish
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
_PREFIX = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.quotePath=false",
    "--no-optional-locks",
    "--no-pager",
    "--literal-pathspecs",
)


class Git(Record):
    """Git, run in one folder with one environment."""

    cwd_abs: str
    env: Mapping[str, str]
    apart: bool = False  # in a group of its own, which ^C on the terminal does not reach

    def ask(self, *args: str, stdin: bytes = b"") -> Called:
        """Run git and return whatever it answered.

        Raises: GitError where git is not there or does not end.
        """
        return self._call((*_NO_HOOKS, *_PREFIX, *args), stdin)

    def ask_all(self, *asked: tuple[tuple[str, ...], bytes]) -> list[Called]:
        """Run several git commands at once, each with its input; return what they answered.

        They must not write what another one reads.

        Raises: GitError where git is not there or does not end.
        """
        env = {**self.env, "LC_ALL": "C"}
        begun: list[Talk] = []
        done: list[Called] = []
        try:
            for args, _stdin in asked:
                argv = ("git", "-C", self.cwd_abs, *_NO_HOOKS, *_PREFIX, *args)
                begun.append(begin(argv, env, apart=self.apart))
            for talk, (_args, stdin) in zip(begun, asked, strict=True):
                done.append(finish(talk, stdin))
        except BaseException as error:
            # The one that failed has been seen to; those after it have not.
            for talk in begun[len(done) + (len(begun) == len(asked)) :]:
                abandon(talk)
            if isinstance(error, OSError):
                raise _not_run(error) from error
            raise
        return done

    def configured(self, *args: str) -> Called:
        """Run a git command that runs no hooks, with core.hooksPath as it is configured.

        Only so can git say where it looks for hooks.

        Raises: GitError where git is not there or does not end.
        """
        return self._call((*_PREFIX, *args), b"")

    def _call(self, args: tuple[str, ...], stdin: bytes) -> Called:
        argv = ("git", "-C", self.cwd_abs, *args)
        try:
            return call(argv, {**self.env, "LC_ALL": "C"}, stdin, apart=self.apart)
        except OSError as error:
            raise _not_run(error) from error

    def with_settings(self, pairs: tuple[tuple[str, str], ...]) -> Git:
        """Return git with settings that hold over those in files. Source: git-config(1)."""
        count = int(self.env.get("GIT_CONFIG_COUNT") or "0")
        env = {**self.env, "GIT_CONFIG_COUNT": str(count + len(pairs))}
        for number, (key, value) in enumerate(pairs, count):
            env[f"GIT_CONFIG_KEY_{number}"] = key
            env[f"GIT_CONFIG_VALUE_{number}"] = value
        return self._replace(env=env)

    def out(self, *args: str, stdin: bytes = b"") -> bytes:
        """Run git and return its output.

        Raises: GitError where it fails.
        """
        done = self.ask(*args, stdin=stdin)
        if done.exit_status:
            said = os.fsdecode(done.stderr).strip() or f"exit status {done.exit_status}"
            raise GitError(f"git {args[0]} failed in {self.cwd_abs}: {said}")
        return done.stdout

    def lines(self, *args: str) -> list[str]:
        """Run git and return the lines of its output."""
        # Not splitlines: a folder or branch may have U+2028 in its name.
        return os.fsdecode(self.out(*args)).split("\n")[:-1]

    def names(self, *args: str, stdin: bytes = b"") -> list[str]:
        """Run git with `-z` among `args` and return the names that it prints."""
        return [os.fsdecode(name) for name in self.out(*args, stdin=stdin).split(b"\0") if name]


def _not_run(error: OSError) -> GitError:
    return GitError(f"git could not be run: {error.strerror or error}", "Is git in the PATH?")
