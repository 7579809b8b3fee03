"""Run git in a repository; find its roots, environment and state folders.

Our own git commands never run hooks, take optional locks, or start a pager, an external diff or the
user's aliases; they speak English, because we parse their output.

Usually, a repository is found by reading its files (gitrepository-layout(5)). Git is asked only if
that is not enough, because it takes longer than all of the reading.
"""

from __future__ import annotations

import os

from gitgates.core.errors import GitError, OwnershipError
from gitgates.core.record import Record
from gitgates.proc.call import CompletedProcess, call, call_all, call_detached
from gitgates.store.files import follow_sharing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
_PREFIX = (
    *("-c", "core.fsmonitor=false", "-c", "core.quotePath=false"),
    *("--no-optional-locks", "--no-pager", "--literal-pathspecs"),
)
_NO_REPLACE = "GIT_NO_REPLACE_OBJECTS"
_ID_LENGTHS = (40, 64)  # SHA-1, SHA-256
_SHARED = {
    **dict.fromkeys((b"1", b"group", b"true", b"yes", b"on"), 0o660),
    **dict.fromkeys((b"2", b"all", b"world", b"everybody"), 0o664),
}
# If it is set, git treats every repository as another user's.
_DIFFERENT_OWNER = "GIT_TEST_ASSUME_DIFFERENT_OWNER"


# Source: `git rev-parse --local-env-vars`, git 2.39 to 2.54, and what `git commit` exports.
GIT_LOCAL = (
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS"),
    *("GIT_CONFIG_COUNT", "GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE"),
    *("GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE", "GIT_INDEX_FILE"),
    *("GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_SHALLOW_FILE"),
    *("GIT_COMMON_DIR", "GIT_INTERNAL_SUPER_PREFIX", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"),
    *("GIT_REFLOG_ACTION", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"),
)


class Git(Record):
    """Git, run in one folder with one environment."""

    cwd_abs: str
    env: Mapping[str, str]
    apart: bool = False  # in its own process group, which ^C on the terminal does not reach

    def ask(self, *args: str, stdin: bytes = b"", most_bytes: int = 0) -> CompletedProcess:
        """Run git and return its exit status and output.

        Raises: GitError if git does not exist, does not end, or prints more than `most_bytes`,
        if there is such a limit.
        """
        return self._call((*_NO_HOOKS, *_PREFIX, *args), stdin, most_bytes)

    def ask_all(self, *commands: tuple[str, ...]) -> list[CompletedProcess]:
        """Run several git commands in parallel; return their statuses and outputs.

        They must not write what another one reads.

        Raises: GitError if git does not exist or does not end.
        """
        start = ("git", "-C", self.cwd_abs, *_NO_HOOKS, *_PREFIX)
        env = {**self.env, "LC_ALL": "C"}
        try:
            return call_all([((*start, *args), b"") for args in commands], env, apart=self.apart)
        except OSError as error:
            raise _not_run(error) from error

    def configured(self, *args: str) -> CompletedProcess:
        """Run a git command that starts no hooks, with core.hooksPath as configured.

        Otherwise, git could not say where it looks for hooks.

        Raises: GitError if git does not exist or does not end.
        """
        return self._call((*_PREFIX, *args), b"")

    def _call(self, args: tuple[str, ...], stdin: bytes, most_bytes: int = 0) -> CompletedProcess:
        argv, env = ("git", "-C", self.cwd_abs, *args), {**self.env, "LC_ALL": "C"}
        try:
            return call(argv, env, stdin, apart=self.apart, most_bytes=most_bytes)
        except OSError as error:
            raise _not_run(error) from error

    def ask_unattended(self, *args: str, limit_s: float) -> CompletedProcess:
        """Run git as `ask` does, for a limited time, without a terminal that it could ask on.

        Raises: GitError if git does not exist; TimeoutError if it does not end.
        """
        alone = {"GIT_TERMINAL_PROMPT": "0", "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
        env = {"GIT_ASKPASS": "", **self.env, **alone}  # empty: not by ssh's program, either
        argv = ("git", "-C", self.cwd_abs, *_NO_HOOKS, *_PREFIX, *args)
        try:
            return call_detached(argv, env, b"", limit_s)
        except TimeoutError:
            raise
        except OSError as error:
            raise _not_run(error) from error

    def with_settings(self, pairs: tuple[tuple[str, str], ...]) -> Git:
        """Return git with settings that override those of files. Source: git-config(1)."""
        count = int(self.env.get("GIT_CONFIG_COUNT") or "0")
        env = {**self.env, "GIT_CONFIG_COUNT": str(count + len(pairs))}
        for number, (key, value) in enumerate(pairs, count):
            env[f"GIT_CONFIG_KEY_{number}"] = key
            env[f"GIT_CONFIG_VALUE_{number}"] = value
        return self._replace(env=env)

    def out(self, *args: str, stdin: bytes = b"") -> bytes:
        """Run git and return its output.

        Raises: GitError if it fails.
        """
        return self._checked(args, self.ask(*args, stdin=stdin))

    def out_of_files(self, *args: str) -> bytes:
        """Return the output of a command that looks at the working tree.

        If git fails because it cannot look into a submodule, submodules are ignored.

        Raises: GitError if it fails.
        """
        completed = self.ask(*args)
        if completed.exit_status:
            others = (arg for arg in args[1:] if not arg.startswith("--ignore-submodules"))
            without = self.ask(args[0], "--ignore-submodules=all", *others)
            completed = completed if without.exit_status else without
        return self._checked(args, completed)

    def out_all(self, *commands: tuple[str, ...]) -> list[bytes]:
        """Run several git commands in parallel, as `ask_all` does, and return their outputs.

        Raises: GitError if one fails.
        """
        completed = self.ask_all(*commands)
        return [self._checked(*pair) for pair in zip(commands, completed, strict=True)]

    def _checked(self, args: tuple[str, ...], completed: CompletedProcess) -> bytes:
        if completed.exit_status:
            message = (
                os.fsdecode(completed.stderr).strip() or f"exit status {completed.exit_status}"
            )
            raise GitError(f"git {args[0]} failed in {self.cwd_abs}: {message}")
        return completed.stdout

    def resolve(self, name: str) -> str:
        """Return the id of a commit or another object; empty if none has that name."""
        completed = self.ask("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        return "" if completed.exit_status else completed.stdout.decode().split()[-1]

    def lines(self, *args: str) -> list[str]:
        """Run git and return the lines of its output."""
        # Not splitlines: a folder or branch may have U+2028 in its name.
        return os.fsdecode(self.out(*args)).split("\n")[:-1]

    def names(self, *args: str, stdin: bytes = b"") -> list[str]:
        """Run git with `-z` among `args` and return the names that it prints."""
        return nul_split(self.out(*args, stdin=stdin))

    def ignored(self, names: Iterable[str], *args: str) -> list[str]:
        """Return which of the names git ignores; with `--no-index`, also what it tracks."""
        # `check-ignore` refuses --literal-pathspecs, which our other git commands get.
        ask = ("--no-literal-pathspecs", "check-ignore", "-z", "--stdin", *args)
        stdin = nul_ended(names)
        return nul_split(self.ask(*ask, stdin=stdin).stdout) if stdin else []


def nul_ended(names: Iterable[str]) -> bytes:
    """Return names as git reads them with `-z --stdin`."""
    return b"".join([os.fsencode(name) + b"\0" for name in names])


def nul_split(names: bytes) -> list[str]:
    """Return names as git prints them with `-z`."""
    return [name for name in os.fsdecode(names).split("\0") if name]


def _not_run(error: OSError) -> GitError:
    return GitError(f"git could not be run: {error.strerror or error}", "Is git in PATH?")


class Repo(Record):
    """One worktree of one repository: its roots, its environment, git in it, the state folders."""

    root_abs: str  # the top of the working tree
    git_dir_abs: str  # of this worktree
    common_dir_abs: str  # of all its worktrees
    env: Mapping[str, str]  # for git here, as the host gave it to us
    found_by_folder: bool = True  # False: only GIT_DIR leads from the root to the repository

    @property
    def git(self) -> Git:
        """Git in the root."""
        return Git(cwd_abs=self.root_abs, env=self.env)

    @property
    def as_stored(self) -> Repo:
        """The same repository without refs/replace/*, so that an object is what its id says."""
        return self._replace(env={**self.env, _NO_REPLACE: "1"})

    @property
    def state_abs(self) -> str:
        """Our state folder for this worktree."""
        return f"{self.git_dir_abs}/gitgates"

    @property
    def config_cache_abs(self) -> str:
        """The file that keeps the parsed configuration of this worktree."""
        return f"{self.state_abs}/config.marshal"

    @property
    def states_abs(self) -> tuple[str, ...]:
        """Our state folders for all worktrees, this one's first."""
        linked_abs = f"{self.common_dir_abs}/worktrees"
        names = sorted(os.listdir(linked_abs)) if os.path.isdir(linked_abs) else []
        folders = (self.git_dir_abs, self.common_dir_abs, *[f"{linked_abs}/{n}" for n in names])
        return tuple([f"{folder}/gitgates" for folder in dict.fromkeys(folders)])

    @property
    def shared_state_abs(self) -> str:
        """Our state folder for all worktrees."""
        return f"{self.common_dir_abs}/gitgates"

    @property
    def ignores_case(self) -> bool:
        """Whether file names that differ only in case are the same: core.ignorecase.

        Git sets it if the file system ignores case.
        """
        config = _read_config(self.common_dir_abs) or b""
        return b"ignorecase=true" in [b"".join(line.split()) for line in config.splitlines()]

    @property
    def object_format(self) -> str:
        """The algorithm of object ids: `sha1`, or `sha256` if that config says so.

        Git reads it from no other file. Source: git's setup.c, check_repository_format_gently.
        """
        config = _read_config(self.common_dir_abs)
        if config is not None and b"objectformat" not in config:
            return "sha1"
        return self.git.out("rev-parse", "--show-object-format").decode().strip()

    @property
    def head(self) -> str:
        """The commit that is checked out; empty before the first commit."""
        return read_head(self) or self.git.resolve("HEAD")

    def relative(self, path: str) -> str:
        """Return a path relative to the root, with links followed; outside, it begins with `..`.

        It need not exist. A relative path starts at the current folder.
        """
        return os.path.relpath(os.path.realpath(path), os.path.realpath(self.root_abs))


def current_folder() -> str:
    """Return the current folder.

    Raises: GitError if it no longer exists.
    """
    try:
        return os.getcwd()
    except OSError as error:
        raise GitError(
            "the current folder no longer exists", "Change to an existing folder."
        ) from error


def find_repo(cwd_abs: str, env: Mapping[str, str]) -> Repo:
    """Return the repository that a git command in `cwd_abs` would use.

    Raises: GitError if there is none, or it is bare and has no working tree; OwnershipError if git
    does not trust it.
    """
    if "GIT_DIR" not in env and "GIT_WORK_TREE" not in env:
        repo = _search_parents(cwd_abs, env)
        if repo and (_is_own(repo) or _is_safe(cwd_abs, env)):
            return repo
    elif "GIT_WORK_TREE" not in env and (repo := _read_linked(cwd_abs, env)):
        return repo
    return _ask_git(cwd_abs, env)


def read_head(repo: Repo) -> str:
    """Return the commit that is checked out; empty if files do not tell, and git must be asked.

    That happens if a branch is packed, has no commit, or is in a reftable. Source:
    gitrepository-layout(5).
    """
    head = _read_line(f"{repo.git_dir_abs}/HEAD", "")
    if head.startswith("ref: refs/heads/"):
        head = _read_line(f"{repo.common_dir_abs}/{head.removeprefix('ref: ')}", "")
    return head if len(head) in _ID_LENGTHS and not head.strip("0123456789abcdef") else ""


def _search_parents(cwd_abs: str, env: Mapping[str, str]) -> Repo | None:
    folder = cwd_abs
    while True:
        dot_git = os.path.join(folder, ".git")
        if os.path.isfile(os.path.join(dot_git, "HEAD")):
            return _repo(folder, dot_git, env)
        if os.path.isfile(dot_git) and (git_dir := _read_line(dot_git, "gitdir: ")):
            return _repo(folder, os.path.join(folder, git_dir), env)
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _is_own(repo: Repo) -> bool:
    """Return whether we own the worktree, its `.git` and its git folder, as git requires.

    Source: git's setup.c, ensure_valid_ownership. Under sudo, the person's files count, too.
    """
    if _DIFFERENT_OWNER in repo.env:
        return False
    user, sudo = os.geteuid(), repo.env.get("SUDO_UID", "")
    owners = {user, int(sudo)} if user == 0 and sudo.isdecimal() else {user}
    try:
        for path_abs in (repo.root_abs, f"{repo.root_abs}/.git", repo.git_dir_abs):
            if os.lstat(path_abs).st_uid not in owners:
                return False
    except OSError:
        return False
    return True


def _is_safe(cwd_abs: str, env: Mapping[str, str]) -> bool:
    """Ask git whether `safe.directory` allows a repository of another user.

    Raises: OwnershipError if it does not.
    """
    completed = Git(cwd_abs=cwd_abs, env=env).ask("rev-parse", "--git-dir")
    why, _, fix = os.fsdecode(completed.stderr).strip().partition("\n")
    if "safe.directory" in fix:
        what = f"{cwd_abs}: git does not trust this repository: {why.removeprefix('fatal: ')}"
        raise OwnershipError(what, "\n  ".join(line.strip() for line in fix.splitlines() if line))
    return not completed.exit_status


def _read_linked(cwd_abs: str, env: Mapping[str, str]) -> Repo | None:
    """Read the repository from GIT_DIR and cwd, as hooks of a linked worktree get them.

    A hook may have changed its folder since; git alone would take that for the root.
    """
    git_dir_abs = os.path.join(cwd_abs, env["GIT_DIR"])
    if not os.path.isfile(os.path.join(git_dir_abs, "commondir")):
        return None
    repo = _search_parents(cwd_abs, env)
    if repo and os.path.realpath(repo.git_dir_abs) == os.path.realpath(git_dir_abs):
        return repo
    return None


def _repo(root_abs: str, git_dir: str, env: Mapping[str, str]) -> Repo | None:
    git_dir_abs = os.path.normpath(git_dir)
    common = _read_line(os.path.join(git_dir_abs, "commondir"), "")
    common_abs = os.path.normpath(os.path.join(git_dir_abs, common)) if common else git_dir_abs
    config = _read_config(common_abs)
    if _may_move_worktree(config):
        return None
    follow_sharing(_shared_bits(config))
    return Repo(root_abs, git_dir_abs, common_abs, env)


def _read_config(common_dir_abs: str) -> bytes | None:
    """Return a repository's config in lower case; None if it cannot be read."""
    try:
        with open(f"{common_dir_abs}/config", "rb", buffering=0) as file:
            return file.read().lower()
    except OSError:
        return None


def _shared_bits(config: bytes | None) -> int:
    """Return the permissions that core.sharedRepository gives to files. Source: git-config(1)."""
    value = b""
    for line in (config or b"").splitlines() if b"sharedrepository" in (config or b"") else ():
        name, equals, text = line.partition(b"=")
        if name.strip() == b"sharedrepository":
            value = text.split(b"#")[0].split(b";")[0].strip(b' \t"') if equals else b"true"
    if value.startswith(b"0") and value.isdigit() and len(value) > 1:
        return int(value, 8) & 0o666
    return _SHARED.get(value, 0)


def _may_move_worktree(config: bytes | None) -> bool:
    """Return whether the config may move the working tree, so that git must be asked."""
    if config is None:
        return True
    # `bare = false` is in every config; git must interpret anything else.
    lines = [b"".join(line.split()) for line in config.splitlines()]
    bare = [line for line in lines if line.startswith(b"bare") and line != b"bare=false"]
    return bool(bare) or b"worktree=" in b"\n".join(lines)


def without_git(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what git sets for its own hooks."""
    kept = {name: value for name, value in env.items() if name not in GIT_LOCAL}
    # Git puts the folder of its own programs first.
    exec_abs, path = env.get("GIT_EXEC_PATH", ""), env.get("PATH", "")
    while exec_abs and path.startswith(f"{exec_abs}:"):
        path = kept["PATH"] = path.removeprefix(f"{exec_abs}:")
    return kept


def _read_line(path_abs: str, prefix: str) -> str:
    try:
        with open(path_abs, "rb", buffering=0) as file:
            line = os.fsdecode(file.read()).rstrip("\r\n")
    except OSError:
        return ""
    return line[len(prefix) :] if line.startswith(prefix) else ""


def _ask_git(cwd_abs: str, env: Mapping[str, str]) -> Repo:
    git = Git(cwd_abs=cwd_abs, env=env)
    bare = git.ask("rev-parse", "--is-bare-repository")
    if bare.exit_status:
        why = os.fsdecode(bare.stderr).strip().removeprefix("fatal: ")
        if why.startswith("not a git repository (or any"):
            raise GitError(
                f"{cwd_abs}: not a git repository",
                "Change to a repository, or create one with: git init",
            )
        raise GitError(f"{cwd_abs}: git cannot read this repository: {why}")
    top = git.ask("rev-parse", "--show-toplevel")
    if top.exit_status or not top.stdout.strip():
        raise GitError(
            f"{cwd_abs}: this repository has no working tree, so nothing can be checked",
            "Change to a working tree, or set GIT_DIR and GIT_WORK_TREE as for your git commands.",
        )
    git_dir = git.lines("rev-parse", "--absolute-git-dir")[0]
    common = git.lines("rev-parse", "--git-common-dir")[0]
    root_abs = os.fsdecode(top.stdout).rstrip("\n")
    by_folder = _search_parents(root_abs, env)
    common_abs = os.path.normpath(os.path.join(cwd_abs, common))
    follow_sharing(_shared_bits(_read_config(common_abs)))
    return Repo(
        root_abs=root_abs,
        git_dir_abs=git_dir,
        common_dir_abs=common_abs,
        env=env,
        found_by_folder=by_folder is not None and by_folder.git_dir_abs == git_dir,
    )
