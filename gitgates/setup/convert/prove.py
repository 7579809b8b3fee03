"""Replay commits under the old manager and under gitgates, in two clones, and compare.

Git itself makes each commit again on its parent, with the hooks installed. In both clones, the
files of the managers and of gitgates are those of today.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator

from gitgates.config.edit import Edit
from gitgates.core.errors import GitError, UsageError
from gitgates.core.record import Record
from gitgates.git.repo import Git, Repo
from gitgates.proc.call import call_detached
from gitgates.setup.convert import node
from gitgates.setup.convert.conversion import Conversion
from gitgates.store.files import replace_file
from gitgates.worktree.lock_files import install_commands
from gitgates.worktree.setup import ignored_in

# Hooks that making a commit fires.
HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg")
_LONGEST_S = 1800.0
_MOST_SHOWN = 1000
_RAN = ("passed", "failed", "timed-out", "killed")
# What names another repository, or turns hooks off.
_DROPPED = ("GIT_", "GITGATES_", "PRE_COMMIT", "HUSKY", "LEFTHOOK", "SKIP", "PREK_SKIP")
_KEPT = ("PRE_COMMIT_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_SSL_CAINFO")
_SETTINGS = (
    *("commit.gpgSign=false", "user.name=gitgates", "user.email=gitgates@example.invalid"),
    "gc.auto=0",
)
_CALLS = {
    "lefthook": 'lefthook run {} --no-auto-install "$@"',
    "pre-commit": 'pre-commit hook-impl --hook-type={} --hook-dir="$(dirname "$0")" -- "$@"',
    "prek": 'prek hook-impl --hook-type={} --hook-dir="$(dirname "$0")" -- "$@"',
}


class CommitResult(Record):
    """How git ended a commit."""

    accepted: bool
    tree: str = ""  # of the commit; empty: there is none
    output: str = ""


class Replay(Record):
    """One commit under both."""

    commit: str
    subject: str
    old: CommitResult
    new: CommitResult

    @property
    def difference(self) -> str:
        """Return what is different; empty if nothing is."""
        if self.old.accepted != self.new.accepted:
            words = ("refuses", "accepts")
            return f"{words[self.old.accepted]} it, gitgates {words[self.new.accepted]} it"
        is_same = self.old.tree == self.new.tree
        return "" if is_same else "accepts it, gitgates too, with other content"

    @property
    def gates(self) -> list[str]:
        """Return the gates that have run, by the lines that a run prints of each."""
        lines = (line.split() for line in self.new.output.splitlines())
        return [words[0] for words in lines if len(words) > 1 and words[1] in _RAN]


class Prover:
    """Two clones of a repository, one with the hooks of the manager, one with ours."""

    def __init__(self, repo: Repo, conversion: Conversion, edit: Edit, scratch_abs: str) -> None:
        """Make the clones; `edit` has the settings file with the gates.

        Raises: GitError, UsageError.
        """
        scripts = old_hooks(conversion)
        clean = {n: v for n, v in repo.env.items() if n in _KEPT or not n.startswith(_DROPPED)}
        # pre-commit is installed beside gitgates.
        folders = (f"{repo.root_abs}/node_modules/.bin", clean.get("PATH", os.defpath))
        path = os.pathsep.join((*folders, os.path.dirname(sys.executable)))
        self._env = {**clean, "PATH": path, "GITGATES_REUSE": "0", "NO_COLOR": "1"}
        for manager in _CALLS.keys() & {*conversion.managers}:
            if not shutil.which(manager, path=path):
                what = f"{manager} is not found, so there is nothing to compare with"
                raise UsageError(what, "It is looked for in the PATH and in node_modules/.bin.")
        self._old = self._clone(repo.root_abs, f"{scratch_abs}/old")
        self._new = self._clone(self._old.cwd_abs, f"{scratch_abs}/new")
        files = (*conversion.project.files, ".husky", ".lefthook")
        self._overlay = self._old.out("ls-tree", "-r", "-z", "HEAD", "--", *files)
        blob = self._old.out("hash-object", "-w", "--stdin", stdin=edit.after).decode().strip()
        self._overlay += f"100644 {blob}\t{edit.file}\0".encode()
        for hook, script in scripts.items():
            replace_file(f"{self._old.cwd_abs}/.git/hooks/{hook}", script.encode(), mode=0o700)
        replace_file(f"{self._new.cwd_abs}/{edit.file}", edit.after)
        self._require(self._new, sys.executable, "-m", "gitgates", "install-hooks")
        for git in (self._old, self._new) if ignored_in(repo) else ():
            # What the working tree has installed, its lock files install here.
            git.out("checkout", "--quiet", "--force", "--detach", "HEAD")
            for text in install_commands(git.cwd_abs):
                self._require(git, "/bin/sh", "-c", text)

    def replay(self, commits: Iterable[tuple[str, ...]]) -> Iterator[Replay]:
        """Yield each commit (id, subject) under both; those that change no file are left out."""
        for commit, subject in commits:
            before, after = self._tree(f"{commit}^"), self._tree(commit)
            if before != after:
                words = ("commit-tree", before, "-p", f"{commit}^", "-m", "before")
                base = self._old.out(*words, stdin=b"").decode().strip()
                message = self._old.out("log", "-1", "--format=%B", commit)
                old, new = (self._commit(g, base, after, message) for g in (self._old, self._new))
                yield Replay(commit, subject, old, new)

    def _clone(self, source_abs: str, folder_abs: str) -> Git:
        settings = [option for setting in _SETTINGS for option in ("-c", setting)]
        settings += ["-c", f"core.hooksPath={folder_abs}/.git/hooks"]
        options = ("--quiet", "--shared", "--no-checkout", "--template=", *settings)
        Git(os.path.dirname(folder_abs), self._env).out("clone", *options, source_abs, folder_abs)
        os.makedirs(f"{folder_abs}/.git/hooks", exist_ok=True)
        os.makedirs(f"{folder_abs}/.git/info", exist_ok=True)
        return Git(folder_abs, self._env)

    def _tree(self, commit: str) -> str:
        """Return the tree of a commit with the managers' files of today."""
        index = {"GIT_INDEX_FILE": f"{self._old.cwd_abs}/.git/overlay"}
        git = self._old._replace(env={**self._env, **index})
        git.out("read-tree", commit)
        git.out("update-index", "-z", "--index-info", stdin=self._overlay)
        return git.out("write-tree").decode().strip()

    def _commit(self, git: Git, base: str, tree: str, message: bytes) -> CommitResult:
        git.out("checkout", "--quiet", "--force", "--detach", base)
        git.out("clean", "--quiet", "-fd")
        git.out("read-tree", "-u", "--reset", tree)
        status, output = self._run(git, "git", "commit", "--quiet", "-F", "-", stdin=message)
        return CommitResult(not status, "" if status else git.resolve("HEAD^{tree}"), output)

    def _require(self, git: Git, *argv: str) -> None:
        status, output = self._run(git, *argv)
        if status != 0:
            why = f"`{argv[-1]}` fails in a clone, so nothing can be compared there"
            raise GitError(why, output.strip()[-_MOST_SHOWN:])

    def _run(self, git: Git, *argv: str, stdin: bytes = b"") -> tuple[int, str]:
        """Run a program to its end; return its exit status and what it printed."""
        argv_in_clone = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', git.cwd_abs, *argv)
        try:
            process = call_detached(argv_in_clone, self._env, stdin, _LONGEST_S)
        except OSError as error:
            return 1, str(error)
        return process.exit_status, os.fsdecode(process.stdout + process.stderr)


def last_commits(repo: Repo, count: int) -> list[tuple[str, ...]]:
    """Return the id and subject of the last commits, oldest first, without merges and the root."""
    lines = repo.git.lines(
        "log", "--first-parent", "--no-merges", f"-{count}", "--min-parents=1", "--format=%H %s"
    )
    return [tuple(line.partition(" ")[::2]) for line in reversed(lines)]


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for the clones, a context manager that removes it."""
    return tempfile.TemporaryDirectory(prefix="gitgates-convert-", ignore_cleanup_errors=True)


def old_hooks(conversion: Conversion) -> dict[str, str]:
    """Return hook → a script that runs what the managers run there. Raises: UsageError."""
    started = [_CALLS[name] for name in conversion.managers if name in _CALLS]
    calls = {hook: [call.format(hook) for call in started] for hook in HOOKS}
    for script in node.scripts(conversion.project):
        if script.hook in HOOKS:
            call = script.call + (' "$@"' if script.manager == "husky" else "")
            calls[script.hook].append(call)
    if not any(calls.values()):
        raise UsageError("no manager runs anything at a commit", "Run this without --prove.")
    return {
        hook: "#!/bin/sh\n" + "".join(f"(\n{call}\n) || exit\n" for call in calls_of_hook)
        for hook, calls_of_hook in calls.items()
        if calls_of_hook
    }
