"""Run each candidate once, in a private checkout, and judge whether it can become a gate.

Nothing in the working tree changes. Ignored files that gates need, such as `node_modules`, are
copied from there, so that a command finds in the checkout what it would find in a hook.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from gitgates.config.load import load
from gitgates.core.clean import plain_line
from gitgates.core.types import Config, Gate, GateResult, Hook, make_gate
from gitgates.engine.plan.plan import REMOTE, REUSE, make_plan
from gitgates.engine.plan.walk import describe
from gitgates.engine.run.job import Deadline, RunOptions
from gitgates.engine.run.run import run_plan
from gitgates.files.stored import look_as_stored
from gitgates.git.paths import tracked_paths
from gitgates.hosts.git import decode_by_hand
from gitgates.setup.discover.candidates import TryResult
from gitgates.setup.discover.folder import KNOWN
from gitgates.worktree.checkouts import check_out
from gitgates.worktree.lock_files import INSTALL_COMMANDS
from gitgates.worktree.setup import WorktreeSettings, worktree_settings

if TYPE_CHECKING:
    from gitgates.engine.plan.listener import Listener
    from gitgates.git.repo import Repo
    from gitgates.setup.discover.candidates import GateCandidate, Outcomes

_COPIED = frozenset(KNOWN["folders"]["copied"].split())
_VENVS = (".venv", "venv")
_LOCKS: dict[str, str] = KNOWN["locks"]["python"]
_UNUSABLE = re.compile("|".join(KNOWN["trial"]["unusable"]), re.MULTILINE | re.IGNORECASE)
# What pytest, unittest, Jest and Vitest print if they fail because there are no tests.
_IDLE = re.compile(r"no tests ran\b|no test(?:s| files) found, exiting\b", re.IGNORECASE)
_LAST_LINES = 30  # of an output: only they are searched for the reason
_LONGEST = 120
_AT_ONCE_S = 0.1  # the shell alone takes a few milliseconds, and tools that read files take longer
_SHARE = 2  # one command may take half of the time for all
_HOOK = "manual"
_EMPTY = "passed at once and printed nothing: make sure that it checks something"
_MORE_TIME = "to give it more time: --try-for 5m"
_Results: TypeAlias = dict[tuple[str, str], GateResult]  # by the candidates' keys


class Trial:
    """A private checkout in which candidates run, within a limit for all of them."""

    def __init__(self, repo: Repo, limit_s: float, listener: Listener) -> None:
        self._repo, self._listener = repo, listener
        self._deadline = Deadline(at=time.monotonic() + limit_s, limit_s=limit_s)

    def __enter__(self) -> Trial:
        """Create the checkout. Raises: as `look_as_stored` and `check_out`."""
        repo, say = self._repo, self._listener.message
        tree, left_s = look_as_stored(repo).tree, self._deadline.left_s()
        self._checkout = check_out(repo, tree, settings_for(repo), say, limit_s=left_s)
        return self

    def __exit__(self, *exc: object) -> None:
        self._checkout.close()

    def run(self, candidates: Sequence[GateCandidate]) -> Outcomes:
        """Run candidates in parallel, but formatters, and those that changed files, one by one."""
        results = self._run([each for each in candidates if each.kind != "format"], writes=False)
        for each in candidates:
            if each.kind == "format" or results[each.key].changed_paths:
                results |= self._run([each], writes=True)
        end = (self._deadline, self._checkout.root_abs)
        return {each.key: result_of(each, results[each.key], *end) for each in candidates}

    def _run(self, candidates: Sequence[GateCandidate], *, writes: bool) -> _Results:
        if not candidates:
            return {}
        repo = self._checkout.repo
        repo = repo._replace(env={**repo.env, REUSE: "0", REMOTE: "0"})
        by_name = {f"{each.kind}-{number}": each for number, each in enumerate(candidates, 1)}
        limit_s = self._deadline.limit_s / _SHARE
        gates = (gate_of(each, name) for name, each in by_name.items())
        config = Config(gates=tuple(g.changed(timeout_s=limit_s, writes=writes) for g in gates))
        hook = Hook(name=_HOOK, gates=tuple(by_name), strategy="collect")
        root = (repo.root_abs, repo.git_dir_abs)
        event = decode_by_hand(_HOOK, tracked_paths(repo.git), (), root)
        plan = make_plan(config, hook, event, {})
        options = RunOptions(locks=False, deadline=self._deadline)
        decision = run_plan(plan, config, repo, self._listener, options=options)
        results = {visit.result.gate: visit.result for visit in decision.visits}
        if any(result.changed_paths for result in results.values()):
            repo.git.out("checkout-index", "--all", "--force", "--quiet")
            repo.git.out("clean", "-d", "--force", "--quiet")
        unknown = GateResult(gate="", status="not-run", reason="it did not run")
        return {each.key: results.get(name, unknown) for name, each in by_name.items()}


def gate_of(candidate: GateCandidate, name: str) -> Gate:
    """Return a candidate as a gate."""
    if candidate.framework:
        return make_gate(name=name, pre_commit=(), runner=candidate.framework)
    gate = make_gate(name=name, command=candidate.command, working_dir=candidate.folder or ".")
    return gate.changed(files=candidate.files or None, pass_files=candidate.pass_files)


def settings_for(repo: Repo) -> WorktreeSettings:
    """Return the checkout's settings: the configured ones, or copies of usual folders."""
    config = load(repo.root_abs)
    if config and "worktree" in config.tuned:
        return worktree_settings(config)
    options = ("--others", "--ignored", "--exclude-standard", "--directory")
    ignored = repo.git.names("ls-files", "-z", *options)
    locks = [lock for lock in _LOCKS if os.path.exists(os.path.join(repo.root_abs, lock))]
    # Its manager would reject a copied environment, and create it again.
    names = _COPIED - {*_VENVS} if locks else _COPIED
    folders = [name.rstrip("/") for name in ignored if name.endswith("/")]
    copied = tuple(name for name in folders if os.path.basename(name) in names)
    setup = tuple(INSTALL_COMMANDS[lock] for lock in locks if lock != "uv.lock")
    return WorktreeSettings(setup=setup, copy=copied)


def result_of(
    candidate: GateCandidate, result: GateResult, deadline: Deadline, root_abs: str
) -> TryResult:
    """Return what a candidate's result in a checkout means."""
    seconds, changed = result.duration_s, len(result.changed_paths)
    text = result.output.replace(os.fsencode(f"{root_abs}/"), b"").decode("utf-8", "replace")
    last = "\n".join(text.rstrip().split("\n")[-_LAST_LINES:])
    seen = TryResult(seconds=seconds, changed=changed)
    match result.status:
        case "passed" if candidate.kind == "build" and seconds < _AT_ONCE_S:
            return TryResult(why_not="it built nothing")
        case "passed":
            is_empty = candidate.is_task and seconds < _AT_ONCE_S and not text.strip()
            return seen._replace(remark=_EMPTY if is_empty and not changed else "")
        case "failed":
            if why_not := _why_not(last):
                return TryResult(why_not=why_not)
            return seen._replace(has_failed=True)
        case "unchecked" | "skipped":
            return TryResult(why_not=f"it has nothing to check: {result.reason}")
        case "timed-out":
            why_not = f"it was still running after {seconds:.0f} s; {_MORE_TIME}"
            return TryResult(why_not=why_not, runs_on=True)
        case "not-run":
            why_not = f"not tried: no time was left of the {deadline.limit_s:g} s; {_MORE_TIME}"
            return TryResult(why_not=why_not)
        case _:
            return TryResult(why_not=describe(result))


def _why_not(last: str) -> str:
    """Return why a failed command cannot be a gate here, by its last lines; empty if it can."""
    if match := _UNUSABLE.search(last):
        return f"it cannot run here: {_line_around(last, match.start())}"
    match = _IDLE.search(last)
    return f"it has nothing to check: {match[0]}" if match else ""


def _line_around(text: str, at: int) -> str:
    begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    return plain_line(text[begin : end if end >= 0 else len(text)].strip(), _LONGEST)
