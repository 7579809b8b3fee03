"""A queue of tasks, each in a worktree of its own; what was finished survives any kill.

    <shared state>/queues/<name>/lock          held by the process that works on the queue
    <shared state>/queues/<name>/<id>.task     the task, as the queue has handed it on
    <shared state>/queues/<name>/<id>.lock     held while any process of an attempt lives
    <shared state>/queues/<name>/<id>.progress how far it has come: see `Progress`
    <shared state>/queues/<name>/<id>.log      what its run has printed

Each task is done by a process of its own, which alone writes its progress. An attempt writes down
its run, branch and worktree before it makes them. It is finished when its result is written, or
when its branch has the commit of the run: so a killed attempt can be recognised as finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time

from gitgates.core.errors import GitError, LockError, StateError
from gitgates.core.limits import parse_json
from gitgates.core.record import Record
from gitgates.features.headless import commit
from gitgates.features.headless.limits import cost_usd
from gitgates.features.headless.tasks import QueueTask
from gitgates.features.headless.turn import RUN_NAME
from gitgates.features.headless.worktree import worktrees_lock
from gitgates.git.repo import find_repo, nul_split
from gitgates.proc.descendants import Descendants
from gitgates.report.artifacts import read_result
from gitgates.report.result import attempts_made
from gitgates.store.files import lock_file, make_folder, read_state, remove_file, replace_file
from gitgates.store.runs import process_lives
from gitgates.worktree import checkpoint
from gitgates.worktree.locks import changed_ns, remove_abandoned, shared_locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.git.repo import Git, Repo

_SLUG = re.compile(r"[^A-Za-z0-9_-]+")
_ORPHANS_S = 30.0  # what a killed attempt has started is ended by its watchdogs before that
_UNWATCHED_S = 20.0  # of these, when its remaining processes are ended
_VERSION = 1


class Progress(Record):
    """How far a task has come. `state`: started, finished, or error (it could not begin)."""

    task: str  # its digest
    state: str
    run_abs: str = ""  # the folder of its run
    branch: str = ""
    base: str = ""  # the commit that the branch begins at
    folder_abs: str = ""  # the worktree
    pid: int = 0
    status: str = ""  # passed or failed, of a finished one
    outcome: str = ""  # in words
    commit: str = ""
    failed_ref: str = ""
    attempts: int = 0
    seconds: float = 0.0
    tokens: int | None = None
    cost_usd: float | None = None


class TaskFiles(Record):
    """Where a task's files are."""

    folder_abs: str  # of the queue
    id: str

    @property
    def log_abs(self) -> str:
        """What its run has printed."""
        return f"{self.folder_abs}/{self.id}.log"

    def task(self) -> QueueTask:
        """Return the task, as the queue has handed it on.

        Raises: StateError.
        """
        path_abs = f"{self.folder_abs}/{self.id}.task"
        try:
            fields = parse_json(read_state(path_abs) or b"")
            arguments = fields.pop("agent_args")
            return QueueTask(**fields, agent_args=None if arguments is None else tuple(arguments))
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise StateError(f"{path_abs}: is not a task: {error}") from error

    def hand_on(self, task: QueueTask) -> None:
        """Write a task down for the process that does it."""
        content = json.dumps(task._asdict()).encode()
        _write(f"{self.folder_abs}/{self.id}.task", content)

    def progress(self) -> Progress | None:
        """Return how far the task has come; None if it was never begun.

        Raises: StateError where that cannot be read: it is not begun again then.
        """
        path_abs = f"{self.folder_abs}/{self.id}.progress"
        hint = f"To start this task again: rm {path_abs}"
        try:
            content = read_state(path_abs)
            if content is None:
                return None
            fields = parse_json(content)
            version, progress = fields.pop("v"), Progress(**fields)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise StateError(f"{path_abs}: cannot be read: {error}", hint) from error
        if version != _VERSION:
            raise StateError(f"{path_abs}: was written by another version of gitgates", hint)
        return progress

    def begun_ns(self) -> int:
        """Return when the progress was written last: of a started task, when it began."""
        return changed_ns(f"{self.folder_abs}/{self.id}.progress")

    def save(self, progress: Progress) -> Progress:
        """Write down how far the task has come, and return that."""
        content = json.dumps({"v": _VERSION, **progress._asdict()}).encode()
        _write(f"{self.folder_abs}/{self.id}.progress", content)
        return progress

    def lock(self, on_tick: Callable[[], None]) -> int:
        """Lock the task for an attempt, and all processes that this starts.

        Another attempt is waited for: the process that makes it, and what that has left.
        Raises: LockError.
        """
        path_abs = f"{self.folder_abs}/{self.id}.lock"
        until = time.monotonic() + _ORPHANS_S
        while (fd := lock_file(path_abs, wait_s=0.2)) < 0:
            on_tick()
            now = self.progress()
            if now and now.state == "started" and process_lives(now.pid):
                until = time.monotonic() + _ORPHANS_S
            elif now and now.state == "started" and time.monotonic() > until - _UNWATCHED_S:
                end_left(now)  # its watchdogs were killed as well
            if time.monotonic() > until:
                hint = f"Stop them, and try again. They hold {path_abs}"
                raise LockError("processes of an earlier attempt are still running", hint)
        os.set_inheritable(fd, True)
        return fd


def queue_folder(repo: Repo, file: str) -> str:
    """Return the folder of a queue, made if need be: one for each file of tasks.

    Raises: StateError.
    """
    path_abs = os.path.realpath(file)
    stem = _SLUG.sub("-", os.path.basename(path_abs).partition(".")[0])[:40]
    name = f"{stem}-{hashlib.sha256(os.fsencode(path_abs)).hexdigest()[:12]}"
    folder_abs = f"{repo.shared_state_abs}/queues/{name}"
    try:
        make_folder(folder_abs)
    except OSError as error:
        raise StateError(f"{folder_abs}: cannot be created: {error.strerror}") from error
    return folder_abs


def _write(path_abs: str, content: bytes) -> None:
    try:
        replace_file(path_abs, content)
    except OSError as error:
        raise StateError(f"{path_abs}: cannot be written: {error.strerror}") from error


def is_finished(progress: Progress | None, task: QueueTask) -> bool:
    """Return whether a task, as it is defined now, was done, well or not."""
    return progress is not None and (progress.state, progress.task) == ("finished", task.digest)


def begin(place: TaskFiles, task: QueueTask, repo: Repo, run_abs: str) -> Progress:
    """Write down what an attempt is going to make.

    Raises: GitError.
    """
    if not (base := repo.git.resolve("HEAD")):
        raise GitError("there is no commit yet to create a worktree from", "Create a commit first.")
    return place.save(
        Progress(
            task=task.digest,
            state="started",
            run_abs=run_abs,
            branch=task.branch,
            base=base,
            folder_abs=f"{repo.root_abs}.headless-{task.id}-{os.path.basename(run_abs)}",
            pid=os.getpid(),
        )
    )


def end_left(progress: Progress) -> None:
    """End what the agent of a killed attempt has started, and what does not hold its lock, too."""
    Descendants(f"{RUN_NAME}={os.path.basename(progress.run_abs)}").end()


def remove_locks(
    place: TaskFiles, progress: Progress, repo: Repo, say: Callable[[str], None]
) -> None:
    """Remove the locks that a git has left which was killed with an attempt."""
    run = os.path.basename(progress.run_abs)
    refs = (f"refs/heads/{progress.branch}.lock", f"{checkpoint.REFS}/{run}.lock")
    paths = [*(f"{repo.common_dir_abs}/{name}" for name in refs), *shared_locks(repo)]
    for message in remove_abandoned(paths, place.begun_ns()):
        say(message)
    if worktree := _worktree(progress, repo):
        remove_file(f"{worktree.git_dir_abs}/index.lock")


def settle(
    place: TaskFiles, progress: Progress, repo: Repo, say: Callable[[str], None]
) -> Progress:
    """Return the progress of an attempt that has ended somehow; if unfinished, clear up after it.

    What its agent has done is kept under a ref.
    Raises: GitError, StateError.
    """
    if ended := _result(progress):
        _remove_worktree(progress, repo, say)
        return place.save(ended)
    tip = repo.git.resolve(f"refs/heads/{progress.branch}")
    if tip and tip != progress.base and _is_of(repo.git, tip, os.path.basename(progress.run_abs)):
        _remove_worktree(progress, repo, say)
        ended = progress._replace(state="finished", status="passed", commit=tip)
        return place.save(ended._replace(outcome="all gates passed; then it was killed"))
    failed_ref = _keep_work(progress, repo)
    _remove_worktree(progress, repo, say, force=True)
    if tip and not _is_own(repo.git, tip, progress, failed_ref):
        say(f"the branch {progress.branch} is left unchanged")
    elif tip:
        with worktrees_lock(repo):
            repo.git.out("branch", "-q", "-D", progress.branch)
    if failed_ref:
        say(f"the changes of a killed attempt are kept as {failed_ref}")
    return place.save(progress._replace(state="error", outcome="killed", failed_ref=failed_ref))


def _result(progress: Progress) -> Progress | None:
    """Return the progress with the result of its run, which is written last; None without one."""
    document = read_result(progress.run_abs)
    facts = (document or {}).get("headless") or {}
    if document is None or not facts.get("status"):
        return None
    turns = facts.get("turns", [])
    tokens = [turn["tokens"] for turn in turns if "tokens" in turn]
    return progress._replace(
        state="finished",
        status=facts["status"],
        outcome=facts.get("outcome", ""),
        commit=facts.get("commit", ""),
        failed_ref=facts.get("failed_ref", ""),
        attempts=len(attempts_made(document)),
        seconds=round(sum(turn["seconds"] for turn in turns), 1),
        tokens=sum(tokens) if tokens else None,
        cost_usd=cost_usd(turns),
    )


def _is_of(git: Git, tip: str, run: str) -> bool:
    """Return whether a commit is the one of a run."""
    message = git.out("log", "-1", "--format=%B", tip).decode("utf-8", "replace")
    return f"Gitgates-Run: {run}" in message.splitlines()


def _is_own(git: Git, tip: str, progress: Progress, failed_ref: str) -> bool:
    """Return whether nothing is lost with a branch: it has what it began with, or what is kept."""
    if tip == progress.base:
        return True
    return (
        bool(failed_ref) and not git.ask("merge-base", "--is-ancestor", tip, failed_ref).exit_status
    )


def _worktree(progress: Progress, repo: Repo) -> Repo | None:
    """Return the worktree of an attempt; None if git has not finished making it, or it is gone."""
    if not os.path.isfile(f"{progress.folder_abs}/.git"):
        return None
    env = {name: value for name, value in repo.env.items() if not name.startswith("GIT_DIR")}
    try:
        worktree = find_repo(progress.folder_abs, env)
    except GitError:
        return None
    return worktree if worktree.root_abs == os.path.realpath(progress.folder_abs) else None


def _keep_work(progress: Progress, repo: Repo) -> str:
    """Keep what is in the worktree of a killed attempt; return the ref, empty for nothing."""
    worktree = _worktree(progress, repo)
    for point in checkpoint.left_behind(worktree.state_abs) if worktree else ():
        if worktree:
            commit.keep_failed(point, worktree)
    # Also of a call before that was killed when it had removed the worktree.
    ref = f"{commit.FAILED_REFS}/{os.path.basename(progress.run_abs)}"
    return ref if repo.git.resolve(ref) else ""


def _remove_worktree(
    progress: Progress, repo: Repo, say: Callable[[str], None], *, force: bool = False
) -> None:
    folder_abs = progress.folder_abs
    if worktree := _worktree(progress, repo):
        for point in list(checkpoint.left_behind(worktree.state_abs)):
            checkpoint.drop(point, worktree)
        worktree.git.ask("reset", "-q")  # its index need not have followed the commit
        _unlink_links(worktree, repo)
    ref = f"{checkpoint.REFS}/{os.path.basename(progress.run_abs)}"
    if repo.git.resolve(ref):  # its checkpoint was being dropped
        repo.git.ask("update-ref", "-d", ref)
    how = ("--force", "--force") if force else ()
    with worktrees_lock(repo):
        removed = repo.git.ask("worktree", "remove", *how, folder_abs)
        if removed.exit_status and worktree and not (force or _is_half_removed(worktree)):
            say(f"{folder_abs} was kept; to remove it: git worktree remove --force {folder_abs}")
            return
        shutil.rmtree(folder_abs, ignore_errors=True)  # git had not finished making it
        _unlock_half_made(folder_abs, repo)
        repo.git.ask("worktree", "prune")


def _is_half_removed(worktree: Repo) -> bool:
    """Return whether a git was killed that was removing a worktree: only files are gone."""
    entries = nul_split(worktree.git.out("status", "--porcelain", "-z"))
    is_locked = os.path.exists(f"{worktree.git_dir_abs}/locked")
    return bool(entries) and not is_locked and all(entry.startswith(" D ") for entry in entries)


def _unlock_half_made(folder_abs: str, repo: Repo) -> None:
    """Remove the lock of a worktree that git was making, which `prune` respects."""
    lock_abs = f"{repo.common_dir_abs}/worktrees/{os.path.basename(folder_abs)}/locked"
    if os.path.isfile(lock_abs):
        remove_file(lock_abs)


def _unlink_links(worktree: Repo, repo: Repo) -> None:
    """Remove links to the same names of the repository, as those of the key `link` are."""
    for name in worktree.git.names("ls-files", "-z", "--others"):
        path_abs = os.path.join(worktree.root_abs, name)
        is_link = os.path.islink(path_abs)
        if is_link and os.readlink(path_abs) == os.path.join(repo.root_abs, name):
            os.unlink(path_abs)
