"""Replay commits under the old manager and under gitgates, in copies, and compare.

Each commit is made anew on its parent, with the hooks installed, by git itself. In both, the files
of the managers and of gitgates are those of today.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping

from gitgates.config.edit import Edit
from gitgates.core.errors import GitError, Interrupted, UsageError
from gitgates.core.record import Record
from gitgates.core.types import Command
from gitgates.git.repo import Git, Repo
from gitgates.proc.call import find_runner
from gitgates.proc.processes import Capture, Group, SignalPipe
from gitgates.setup.convert.conversion import Conversion
from gitgates.setup.discover import lefthook, managers
from gitgates.setup.discover.project import BadFile, Project, texts
from gitgates.setup.install.managers import FRAMEWORK
from gitgates.worktree.lock_files import install_commands
from gitgates.worktree.missing import ignored_in

# Hooks that making a commit fires.
HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg")
_LONGEST_S = 1800.0
_MOST_BYTES = 64 << 10
_MOST_SHOWN = 1000
_RAN = ("passed", "failed", "timed-out", "killed")
# What names another repository, or turns hooks off.
_DROPPED = ("GIT_", "GITGATES_", "PRE_COMMIT", "HUSKY", "LEFTHOOK", "SKIP", "PREK_SKIP")
_KEPT = ("PRE_COMMIT_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_SSL_CAINFO")
_LEFTHOOK = 'exec {program} run {hook} --no-auto-install "$@"'
_HOOK_IMPL = 'exec {program} hook-impl --hook-type={hook} --hook-dir="$(dirname "$0")" -- "$@"'
_HUSKY = 'PATH="$PWD/node_modules/.bin:$PATH" exec sh -e {file} "$@"'


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
        return (
            "accepts it, gitgates too, with other content" if self.old.tree != self.new.tree else ""
        )

    @property
    def gates(self) -> list[str]:
        """Return the gates that have run, by the lines that a run prints of each."""
        lines = (line.split() for line in self.new.output.splitlines())
        return [words[0] for words in lines if len(words) > 1 and words[1] in _RAN]


class Prover:
    """Two copies of a repository, one with the hooks of the manager, one with ours."""

    def __init__(self, repo: Repo, conversion: Conversion, edit: Edit, scratch_abs: str) -> None:
        """Make the copies; `edit` has the settings file with the gates.

        Raises: GitError, UsageError.
        """
        self._repo = repo
        self._env = _environment(repo.env)
        scripts = _old_hooks(conversion, repo)
        self._old = self._copy(repo.root_abs, f"{scratch_abs}/old")
        self._new = self._copy(self._old.cwd_abs, f"{scratch_abs}/new")
        self._overlay = self._entries(conversion.project or Project(texts={}, names=frozenset()))
        blob = self._old.out("hash-object", "-w", "--stdin", stdin=edit.after).decode().strip()
        self._overlay += f"100644 {blob}\t{edit.file}\0".encode()
        for hook, script in scripts.items():
            _write_hook(f"{self._old.cwd_abs}/.git/hooks/{hook}", script)
        with open(f"{self._new.cwd_abs}/{edit.file}", "wb") as file:
            file.write(edit.after)
        self._install()
        self._set_up()

    def replay(self, commits: Iterable[tuple[str, ...]]) -> Iterator[Replay]:
        """Yield each commit (id, subject) under both; those that change no file are left out."""
        for commit, subject in commits:
            before, after = self._tree(f"{commit}^"), self._tree(commit)
            if before == after:
                continue
            base = (
                self._old.out("commit-tree", before, "-p", f"{commit}^", "-m", "before", stdin=b"")
                .decode()
                .strip()
            )
            message = self._old.out("log", "-1", "--format=%B", commit)
            old, new = (self._commit(git, base, after, message) for git in (self._old, self._new))
            yield Replay(commit, subject, old, new)

    def _copy(self, source_abs: str, folder_abs: str) -> Git:
        git = Git(os.path.dirname(folder_abs), self._env)
        git.out(
            "clone", "--quiet", "--shared", "--no-checkout", "--template=", source_abs, folder_abs
        )
        os.makedirs(f"{folder_abs}/.git/hooks", exist_ok=True)
        os.makedirs(f"{folder_abs}/.git/info", exist_ok=True)
        git = Git(folder_abs, self._env)
        for key, value in {
            "core.hooksPath": f"{folder_abs}/.git/hooks",
            "commit.gpgSign": "false",
            "user.name": "gitgates",
            "user.email": "gitgates@example.invalid",
            "gc.auto": "0",
        }.items():
            git.out("config", key, value)
        return git

    def _entries(self, project: Project) -> bytes:
        """Return the committed files of the managers, as update-index takes them."""
        folder = str(_settings_of_lefthook(project).get("source_dir") or ".lefthook").strip("/")
        husky = managers.husky_folder(project)
        names = {*project.texts} & {*managers.READS, *managers.included(project)}
        if not any(name.startswith(f"{husky}/") or "staged" in name for name in names) and not any(
            managers.scripts_of(project, HOOKS)
        ):
            names -= {"package.json"}  # in a commit of other projects it is only a file
        return self._old.out("ls-tree", "-r", "-z", "HEAD", "--", *sorted(names), folder, husky)

    def _tree(self, commit: str) -> str:
        """Return the tree of a commit with the files of today."""
        index = {"GIT_INDEX_FILE": f"{self._old.cwd_abs}/.git/overlay"}
        git = self._old._replace(env={**self._env, **index})
        git.out("read-tree", commit)
        git.out("update-index", "-z", "--index-info", stdin=self._overlay)
        return git.out("write-tree").decode().strip()

    def _install(self) -> None:
        argv = (sys.executable, "-m", "gitgates", "install-hooks")
        status, output = self._run(argv, self._new.cwd_abs)
        if status != 0:
            raise GitError(f"the hooks cannot be installed in a copy: {output.strip()}")

    def _set_up(self) -> None:
        """Install in both copies what the project needs, where the working tree has it.

        That is where git ignores anything there. Raises: UsageError where that fails.
        """
        if not ignored_in(self._repo):
            return
        for git in (self._old, self._new):
            git.out("checkout", "--quiet", "--force", "--detach", "HEAD")
            for text in install_commands(git.cwd_abs):
                status, output = self._run(("/bin/sh", "-c", text), git.cwd_abs)
                if status != 0:
                    why = f"`{text}` fails in a copy, so nothing can be compared there"
                    raise UsageError(why, output.strip()[-_MOST_SHOWN:])

    def _commit(self, git: Git, base: str, tree: str, message: bytes) -> CommitResult:
        git.out("checkout", "--quiet", "--force", "--detach", base)
        git.out("clean", "--quiet", "-fd")
        git.out("read-tree", "-u", "--reset", tree)
        message_abs = f"{git.cwd_abs}/.git/message"
        with open(message_abs, "wb") as file:
            file.write(message)
        status, output = self._run(("git", "commit", "--quiet", "-F", message_abs), git.cwd_abs)
        accepted = status == 0
        return CommitResult(accepted, git.resolve("HEAD^{tree}") if accepted else "", output)

    def _run(self, argv: tuple[str, ...], cwd_abs: str) -> tuple[int | None, str]:
        """Run a program to its end; return its exit status, or None, and what it printed."""
        command = Command(argv=argv, cwd_abs=cwd_abs, env=self._env)
        capture = Capture(_MOST_BYTES)
        with SignalPipe() as signals, Group(signals) as group:
            child = group.start(command, _LONGEST_S, capture)
            if isinstance(child, str):
                return None, child
            group.wait()
            if signals.received:
                raise Interrupted("the comparison was interrupted")
        output = os.fsdecode(capture.captured()[0])
        end = child.ending()
        return end.exit_status, output + (
            f"\nno end after {_LONGEST_S:.0f} s" if end.timed_out else ""
        )


def last_commits(repo: Repo, count: int) -> list[tuple[str, ...]]:
    """Return the id and subject of the last commits, oldest first, without merges and the root."""
    lines = repo.git.lines(
        "log", "--first-parent", "--no-merges", f"-{count}", "--min-parents=1", "--format=%H %s"
    )
    return [tuple(line.partition(" ")[::2]) for line in reversed(lines)]


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for the copies, a context manager that removes it."""
    return tempfile.TemporaryDirectory(prefix="gitgates-convert-", ignore_cleanup_errors=True)


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    clean = {n: v for n, v in env.items() if n in _KEPT or not n.startswith(_DROPPED)}
    return {**clean, "GITGATES_REUSE": "0", "NO_COLOR": "1"}


def _write_hook(path_abs: str, script: str) -> None:
    with open(path_abs, "w", encoding="utf-8") as file:
        file.write(script)
    os.chmod(path_abs, 0o700)


def _settings_of_lefthook(project: Project) -> dict[str, object]:
    file = next((name for name in lefthook.FILES if name in project.texts), "")
    return project.load(file) if file else {}


def _old_hooks(conversion: Conversion, repo: Repo) -> dict[str, str]:
    """Return hook → a script that runs what the managers run there. Raises: UsageError."""
    project = conversion.project
    if project is None:
        raise UsageError("there is no manager to compare with", "Run this without --prove.")
    try:
        parts = [
            (hook, part)
            for hook in HOOKS
            for part in (*_of_programs(hook, conversion, repo), *_of_scripts(hook, project))
        ]
    except BadFile as error:
        raise UsageError(str(error)) from error
    hooks = dict.fromkeys(hook for hook, _part in parts)
    if not hooks:
        raise UsageError("no manager runs anything at a commit", "Run this without --prove.")
    return {
        hook: "#!/bin/sh\n" + "".join(f"(\n{part}\n) || exit\n" for at, part in parts if at == hook)
        for hook in hooks
    }


def _of_programs(hook: str, conversion: Conversion, repo: Repo) -> Iterator[str]:
    """Yield the calls of the managers that are programs. Raises: BadFile, UsageError."""
    project = conversion.project or Project(texts={}, names=frozenset())
    if hook in _settings_of_lefthook(project) and "lefthook" in conversion.managers:
        yield _LEFTHOOK.format(program=_program("lefthook", repo), hook=hook)
    settings = project.load(managers.PRE_COMMIT)
    types = texts(settings.get("default_install_hook_types", [])) or ("pre-commit",)
    for runner in {*FRAMEWORK} & {*conversion.managers}:
        if hook in types or hook in conversion.hooks:
            yield _HOOK_IMPL.format(program=_program(runner, repo), hook=hook)


def _of_scripts(hook: str, project: Project) -> Iterator[str]:
    for script in managers.scripts_of(project, (hook,)):
        is_file = script.manager == "husky"
        yield _HUSKY.format(file=shlex.quote(script.source)) if is_file else script.body


def _program(name: str, repo: Repo) -> str:
    path = f"{repo.root_abs}/node_modules/.bin{os.pathsep}{repo.env.get('PATH', os.defpath)}"
    program = shutil.which(name, path=path) or ""
    if not program and name in FRAMEWORK:
        program = find_runner(name, repo.env)[0]  # which may be beside gitgates
    if not os.access(program, os.X_OK):
        hint = "It is looked for in the PATH and in node_modules/.bin."
        raise UsageError(f"{name} is not found, so there is nothing to compare with", hint)
    return shlex.quote(program)
