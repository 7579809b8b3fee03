"""What a run shares with whoever works in the repository, and must leave as it was.

Branches, tags, notes, replacements, the stash; settings and hooks of the repository. Their objects
are held by a ref for the time of the run, so that no `gc` of the agent's loses them.
"""

from __future__ import annotations

import os
import stat
from glob import glob

from gitgates.features.headless.run_state import begun
from gitgates.git.repo import Git
from gitgates.store.files import make_folder, replace_file
from gitgates.store.rescue import move_aside, read_file
from gitgates.worktree.locks import remove_abandoned, shared_locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.headless.run_state import RunState
    from gitgates.git.repo import Repo

HELD = "refs/gitgates/held"
# Not remote-tracking branches: whoever fetches moves them, and they can be fetched again.
_KINDS = ("refs/heads", "refs/tags", "refs/notes", "refs/replace")
_SETTINGS = ("config", "config.worktree", "info/exclude", "info/attributes")
_OURS = "gitgates <gitgates@localhost> 0 +0000"


def save(repo: Repo, state: RunState) -> RunState:
    """Return the state of a run with what it must leave as it was.

    What another run may have changed, which is alive, counts as it was before that one.
    Raises: GitError, OSError.
    """
    others = [other for other in begun(repo) if other.run != state.run]
    refs = _read_refs(repo)
    for other in others:
        refs.pop(other.ref, None)
    settings = others[0].settings if others else _read_settings(repo)
    heads = {folder_abs: len(commits) for folder_abs, commits in _read_heads(repo).items()}
    stash = tuple(_read_stash(repo))
    return state._replace(refs=refs, stash=stash, settings=settings, heads=heads)


def hold(repo: Repo, run: str) -> None:
    """Hold all that refs and reflogs name. Raises: GitError."""
    git = repo.git
    # Another git may be making a worktree, or was killed at that: its HEAD names nothing yet.
    tips = git.lines("rev-list", "--no-walk=unsorted", "--ignore-missing", "--all", "--reflog")
    tree = git.out("mktree").decode().strip()
    parents = [f"parent {commit}" for commit in dict.fromkeys(tips)]
    header = [f"tree {tree}", *parents, f"author {_OURS}", f"committer {_OURS}"]
    text = "\n".join([*header, "", f"What the headless run {run} must not lose\n"])
    commit = git.out("hash-object", "-w", "-t", "commit", "--stdin", stdin=text.encode())
    kinds = git.lines("for-each-ref", "--format=%(objecttype) %(objectname)", *_KINDS)
    others = {line.split(" ")[1] for line in kinds if not line.startswith("commit ")}
    names = [commit.decode().strip(), *sorted(others)]
    lines = (f"update {HELD}/{run}/{number} {name}\n" for number, name in enumerate(names))
    git.out("update-ref", "--stdin", stdin="".join(lines).encode())


def let_go(repo: Repo, run: str) -> None:
    """Hold nothing any more."""
    deletions = repo.git.out("for-each-ref", "--format=delete %(refname)", f"{HELD}/{run}/")
    repo.git.ask("update-ref", "--stdin", stdin=deletions)


def put_back(repo: Repo, state: RunState, git_dir_abs: str) -> list[str]:
    """Put back what the run has changed, and return a note on each change.

    What it has created stays. `git_dir_abs`: of its worktree.

    Raises: GitError, OSError.
    """
    locks = [*shared_locks(repo), f"{repo.common_dir_abs}/{state.ref or 'HEAD'}.lock"]
    notes = remove_abandoned(locks, int(state.began_s * 1e9))
    notes += _put_settings_back(repo, state)
    notes += _put_refs_back(repo, state, git_dir_abs)
    return notes + _put_stash_back(repo, state)


# Refs and the stash


def _read_refs(repo: Repo) -> dict[str, str]:
    """Return each branch, tag, note and replacement with its object."""
    ask = ("for-each-ref", "--format=%(refname) %(objectname) %(symref)", *_KINDS)
    fields = [line.split(" ") for line in repo.git.lines(*ask)]
    return {name: target for name, target, symbolic in fields if not symbolic}


def _put_refs_back(repo: Repo, state: RunState, git_dir_abs: str) -> list[str]:
    now, others = _read_refs(repo), {state.ref, *(other.ref for other in begun(repo))}
    created = sorted(now.keys() - state.refs.keys() - others)
    notes = [f"{name} was created during the run" for name in created]
    changed = {
        name: before
        for name, before in state.refs.items()
        if name != state.ref and now.get(name) != before
    }
    heads_elsewhere = _heads_of_others(repo, state, git_dir_abs) if changed else set()
    why = ("-m", f"gitgates: as before the headless run {state.run}")
    for name, before in changed.items():
        if now.get(name) in heads_elsewhere:
            continue  # somebody has committed, say, in another worktree
        what = f"moved to {now[name]}" if name in now else "deleted"
        end = f"it is at {before} again"
        if (outcome := repo.git.ask("update-ref", *why, name, before)).exit_status:
            end = f"it was at {before}: {outcome.stderr.decode('utf-8', 'replace').strip()}"
        notes.append(f"{name} was {what} during the run; {end}")
    return notes


def _heads_of_others(repo: Repo, state: RunState, git_dir_abs: str) -> set[str]:
    """Return the commits that the HEAD of any other worktree was at since the run began."""
    heads = set[str]()
    for folder_abs, commits in _read_heads(repo).items():
        if os.path.realpath(folder_abs) != os.path.realpath(git_dir_abs):
            heads.update(commits[: max(len(commits) - state.heads.get(folder_abs, 0), 0)])
    return heads


def _read_heads(repo: Repo) -> dict[str, list[str]]:
    """Return the commits that HEAD was at, the newest first, by the git folder of the worktree."""
    heads, git = {}, Git(repo.common_dir_abs, repo.env)
    for folder_abs in map(os.path.dirname, repo.states_abs):
        log = git.ask(f"--git-dir={folder_abs}", "reflog", "show", "--format=%H", "HEAD")
        heads[folder_abs] = log.stdout.decode().split()
    return heads


def _read_stash(repo: Repo) -> list[tuple[str, str]]:
    lines = repo.git.names("stash", "list", "-z", "--format=%H %gs")
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def _put_stash_back(repo: Repo, state: RunState) -> list[str]:
    """Put entries back that are gone, below those that are new."""
    now = _read_stash(repo)
    missing = [message for commit, message in state.stash if (commit, message) not in now]
    new = [entry for entry in now if entry not in state.stash]
    if missing and now:
        repo.git.out("update-ref", "-d", "refs/stash", now[0][0])
    for commit, message in reversed([*new, *state.stash] if missing else []):
        repo.git.out("stash", "store", "-q", "-m", message, commit)
    removed = "was removed from the stash during the run; it is there again"
    created = [
        f"the entry `{message}` of the stash was created during the run" for _, message in new
    ]
    return [*(f"`{message}` {removed}" for message in missing), *created]


# Settings and hooks


def _read_settings(repo: Repo) -> dict[str, tuple[int, str]]:
    """Return name → mode and content of settings and hooks in the git folder."""
    settings, folder_abs = {}, repo.common_dir_abs
    for name in (*_SETTINGS, *glob("hooks/**", root_dir=folder_abs, recursive=True)):
        path_abs, content = f"{folder_abs}/{name}", None
        if os.path.islink(path_abs):
            content = os.fsencode(os.readlink(path_abs))
        elif os.path.isfile(path_abs) and not name.endswith(".sample"):
            content = read_file(path_abs)
        if content is not None:
            settings[name] = os.lstat(path_abs).st_mode, content.decode("latin-1")
    return settings


def _put_settings_back(repo: Repo, state: RunState) -> list[str]:
    """Put settings and hooks back; what was there instead is kept, and named."""
    now, before, notes = _read_settings(repo), state.settings, list[str]()
    folder_abs = f"{repo.shared_state_abs}/kept/{state.run}/settings"
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) == now.get(name):
            continue
        path_abs = f"{repo.common_dir_abs}/{name}"
        note = f"{path_abs} was changed during the run, and is as before"
        parent_abs = os.path.dirname(path_abs)
        there_abs = path_abs if os.path.isdir(parent_abs) else parent_abs
        if os.path.lexists(there_abs):
            make_folder(folder_abs)
            kept_abs = f"{folder_abs}/{len(os.listdir(folder_abs))}-{os.path.basename(there_abs)}"
            move_aside(there_abs, kept_abs)
            note += f"; what it was changed to is in {kept_abs}"
        if name in before:
            _write(path_abs, *before[name])
        notes.append(note)
    return notes


def _write(path_abs: str, mode: int, text: str) -> None:
    content = text.encode("latin-1")
    os.makedirs(os.path.dirname(path_abs), exist_ok=True)
    if stat.S_ISLNK(mode):
        os.symlink(os.fsdecode(content), path_abs)
    elif stat.S_ISREG(mode):
        replace_file(path_abs, content, mode=stat.S_IMODE(mode))
