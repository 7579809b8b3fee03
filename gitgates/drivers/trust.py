"""Find the repositories of an event, and whether their gates are trusted to run.

Gates are commands of a repository, and run without anybody being asked. The person has trusted the
folder that the session was started in, and no other: a repository that the agent has cloned, or
wandered into, runs nothing of its own here. In a folder of repositories, only those that existed
at session start count; in that of a bare repository, only those of its worktrees in which the
session works.
"""

from __future__ import annotations

import os

from gitgates.core.errors import GitError
from gitgates.git.repo import Git, Repo, current_folder, find_repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.core.agent_types import Payload

# What these are about is the session, wherever the agent has gone since.
_OF_THE_SESSION = ("session-start", "prompt", "turn-end")
# The agent has done nothing before them, if there is no transcript yet.
_BEGINNINGS = ("session-start", "prompt")
_GOING = ("cd", "pushd", "-C")
_SIGNS = str.maketrans("'\"\\;&|()\n", " " * 9)
_JOINTS = str.maketrans("<>=:`", " " * 5)  # beside which a path may stand
_MOST_READ, _MOST_NAMED = 1 << 14, 8
_HEAD = 1 << 16  # bytes of a transcript, in which the first record with a time is


def find_repos(payload: Payload, env: Mapping[str, str]) -> list[Repo]:
    """Return the repository of an event, and that of the session's start if different.

    If the session was started in a folder of repositories, those that a command goes into, too.

    An event's place is that of its file, else that of the agent, else the folder in which the
    session was started: the host's idea of the project folder does not follow the agent into a
    worktree.

    Raises: GitError if that is in no repository that may be looked at.
    """
    project_abs = payload.project_abs
    project_abs = project_abs if os.path.isdir(project_abs) else ""
    home = _repo(project_abs, env) if project_abs else None
    is_folder = os.path.isabs(payload.cwd_abs) and os.path.isdir(payload.cwd_abs)
    cwd_abs = payload.cwd_abs if is_folder else current_folder()
    folders = [*(_folder_of(path, cwd_abs) for path in payload.tool.paths), cwd_abs]
    if not home:  # a folder of repositories, maybe: a command may be about another one
        folders += _folders_named(payload, cwd_abs, env)
    repos = [repo for folder in folders if (repo := _repo(folder, env))]
    # Git is asked only if the session was started in no working tree.
    is_outside = not home and (project_abs or not repos)
    worktrees = _worktrees(project_abs or cwd_abs, env) if is_outside else []
    siblings = {os.path.realpath(repo.common_dir_abs) for repo in worktrees}
    trusted = [
        repo
        for repo in repos
        if os.path.realpath(repo.common_dir_abs) in siblings
        or _is_trusted(repo, home, project_abs, payload)
    ]
    trusted += [repo for repo in worktrees if _is_worked_in(repo, payload, cwd_abs)]
    is_several = not home and (payload.kind == "before-tool" or bool(worktrees))
    several = list({repo.git_dir_abs: repo for repo in trusted}.values())
    chosen = (several if is_several else trusted[:1]) or ([home] if home else [])
    if home and payload.kind in _OF_THE_SESSION and home.git_dir_abs != chosen[0].git_dir_abs:
        chosen.append(home)
    if chosen:
        return chosen
    if not repos:
        return [find_repo(cwd_abs, env)]  # it says why there is none
    why = "is not the repository that the session was started in"
    if not home and _is_below(repos[0], project_abs):
        why = "did not exist when the session began"
    raise GitError(f"{repos[0].root_abs} {why}: its gates are not run")


def absolute(path: str, cwd_abs: str) -> str:
    """Return a path that an agent names, links followed."""
    whole = os.path.join(cwd_abs, path)
    if "\\" in path and not os.path.lexists(whole):
        whole = os.path.join(cwd_abs, path.replace("\\", "/"))
    return os.path.realpath(whole)


def _folder_of(path: str, cwd_abs: str) -> str:
    """Return the folder of a file that may not exist yet."""
    folder = os.path.dirname(absolute(path, cwd_abs))
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return folder


def _folders_named(payload: Payload, cwd_abs: str, env: Mapping[str, str]) -> list[str]:
    """Return the folders that a shell command is about to go into, by `cd`, `pushd` and `-C`.

    They are looked for in its text: this is asked of each command. The guard parses it, if need be.
    """
    if payload.kind != "before-tool" or payload.tool.kind != "shell":
        return []
    words = payload.tool.command[:_MOST_READ].translate(_SIGNS).split()
    targets = [words[at] for at in range(1, len(words)) if words[at - 1] in _GOING]
    home = env.get("HOME", "")
    paths = [home + word[1:] if word.startswith("~/") else word for word in targets[:_MOST_NAMED]]
    folders = [os.path.join(cwd_abs, path) for path in paths]
    return [folder for folder in folders if os.path.isdir(folder)]


def _repo(folder: str, env: Mapping[str, str]) -> Repo | None:
    try:
        return find_repo(folder, env)
    except GitError:
        return None


def _worktrees(folder: str, env: Mapping[str, str]) -> list[Repo]:
    """Return the worktrees of the bare repository that a folder is in, such as `proj/.bare`."""
    process = Git(folder, env).ask("worktree", "list", "--porcelain")
    lines = [] if process.exit_status else os.fsdecode(process.stdout).split("\n")
    if "bare" not in lines:
        return []
    paths = (line.removeprefix("worktree ") for line in lines if line.startswith("worktree "))
    return [repo for path in paths if os.path.isdir(path) and (repo := _repo(path, env))]


def _is_worked_in(repo: Repo, payload: Payload, cwd_abs: str) -> bool:
    """Return whether the session has been in a worktree, or a command names it."""
    from gitgates.store.log import session_journal  # cold, as `_existed_at_start`

    if os.path.exists(session_journal(repo.state_abs, payload.session).path_abs):
        return True
    words = payload.tool.command[:_MOST_READ].translate(_SIGNS).translate(_JOINTS).split()
    roots = repo.root_abs, os.path.relpath(repo.root_abs, cwd_abs)
    return any(f"{word}/".startswith(f"{root}/") for word in words for root in roots)


def _is_trusted(repo: Repo, home: Repo | None, project_abs: str, payload: Payload) -> bool:
    """Return whether the person has trusted a repository by starting the session where it was."""
    if home:
        return os.path.realpath(repo.common_dir_abs) == os.path.realpath(home.common_dir_abs)
    if project_abs:  # a folder of repositories
        return _is_below(repo, project_abs) and _existed_at_start(repo, payload)
    return True  # started by hand, or by a host that does not say where


def _is_below(repo: Repo, folder_abs: str) -> bool:
    below = os.path.relpath(os.path.realpath(repo.root_abs), os.path.realpath(folder_abs))
    return below != ".." and not below.startswith("../")


def _existed_at_start(repo: Repo, payload: Payload) -> bool:
    """Return whether a repository existed when the session began; if in doubt, it did not.

    What a clone, a copy or an unpacked archive brings is younger than the conversation, whatever
    times it claims: nobody but the kernel sets when a file's status has changed.
    """
    # Cold: only if the session was started in no repository.
    from gitgates.hosts import agent_host
    from gitgates.store.files import read_tail
    from gitgates.store.log import session_journal

    head = read_tail(payload.transcript_abs, 0, _HEAD)
    began = agent_host(payload.host).conversation_start_in(head or b"")
    if not began:
        # A journal: it was found to be so before. A copy of the repository has that, too.
        journals = (session_journal(state_abs, payload.session) for state_abs in repo.states_abs)
        has_journal = any(os.path.exists(journal.path_abs) for journal in journals)
        return has_journal or (head is None and payload.kind in _BEGINNINGS)
    try:
        with os.scandir(repo.common_dir_abs) as entries:
            created = min(entry.stat(follow_symlinks=False).st_ctime for entry in entries)
    except (OSError, ValueError):
        return False
    return created < began
