"""Show for each installed host that a gate which fails blocks: most wired hooks were never tried.

What is installed is run as it is, in a repository that is thrown away: once with a gate that
passes, because a hook that refuses everything proves nothing, and once with one that fails.
"""

from __future__ import annotations

import os

from gitgates.doctor.findings import Finding
from gitgates.doctor.hooks import may_start, read_hook
from gitgates.doctor.prove_agents import prove_agents
from gitgates.doctor.throwaway import GATE, Throwaway
from gitgates.git.previous_hook import SUFFIX, KeptHook
from gitgates.install.framework import FILE, add_yaml
from gitgates.install.managers import FRAMEWORK
from gitgates.store.files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gitgates.doctor.findings import Subject, Worktree

# Hooks that a commit or a push fires, the nearest to a person's work first.
_PROVABLE = ("pre-commit", "commit-msg", "prepare-commit-msg", "pre-push")
_SHELLS = {b"sh", b"bash", b"dash", b"ash"}
_KEPT = f"{GATE}-kept"
_COMMIT = "git add -A && git commit -q -m work"
_PUSH = "git push -q origin HEAD:refs/heads/main"


def prove(subject: Subject, looked: list[Finding]) -> list[Finding]:
    """Try each installed host; return one finding for each, or that there is none.

    `looked`: what was found without trying.

    Raises: GitError where no repository can be made to try them in.
    """
    found = [*_prove_git(subject.here), *prove_agents(subject, looked)]
    if found:
        return found
    for manager, file in subject.here.joined.values():
        what = f"{manager} is not tried: that would start what this repository names"
        return [Finding("note", "proof", file, what, "commit while a gate fails")]
    what = "no hook of ours that can be tried is installed: nothing to prove"
    return [Finding("note", "proof", subject.repo.root_abs, what, "gitgates install-hooks")]


def _prove_git(worktree: Worktree) -> Iterator[Finding]:
    """Try our shim, the hooks that it runs first, and the framework's hook that runs our stage."""
    folder_abs, framework = worktree.folder.path_abs, worktree.framework
    files = [read_hook(os.path.join(folder_abs, hook)) for hook in _PROVABLE]
    shims = [file for file in files if file.kind == "shim" and may_start(file, worktree.repo)]
    for file in shims[:1]:
        yield _try(file.path_abs, worktree)
    for file in shims:
        if KeptHook(file.path_abs, (), None, {}).exists():
            yield _try_kept(file.path_abs, worktree)
    served = [
        file
        for file in files
        if file.hook in framework.our_stages and file.manager and file.manager.name in FRAMEWORK
    ]
    for file in served[:1]:
        yield _try(file.path_abs, worktree)
    for entry in framework.strange if served else ():
        what = f"the entry `{entry}` was not tried: install-hooks would not write it"
        yield Finding("note", "proof", FILE, what, "gitgates install-hooks --pre-commit")


def _try_kept(hook_abs: str, worktree: Worktree) -> Finding:
    """Try whether the hook from before ours is run, by its name, and counts.

    Another one with its first line stands in for it: it does not belong into a throwaway.
    """
    with open(hook_abs + SUFFIX, "rb") as file:
        first = file.readline().rstrip(b"\n")
    names = {word.rpartition(b"/")[2] for word in first.removeprefix(b"#!").split()}
    if not first.startswith(b"#!") or not names & _SHELLS:
        first = b"#!/bin/sh"
    kept = first + f'\necho "{_KEPT} ${{0##*/}}" >&2\nexit 1\n'.encode()
    refused = _refusal(hook_abs, worktree.repo.env, passes=True, kept=kept)
    where = worktree.shown(hook_abs) + SUFFIX
    if f"{_KEPT} {os.path.basename(hook_abs)} " in f"{refused} ":
        what = "proved: it runs under its own name, and what it refuses is refused"
        return Finding("ok", "proof", where, what)
    what = f"the hook that was there before ours does not count: {refused or 'it is not run'}"
    return Finding("problem", "proof", where, what, "gitgates install-hooks")


def _try(hook_abs: str, worktree: Worktree) -> Finding:
    verb = "push" if hook_abs.endswith("/pre-push") else "commit"
    where, env = worktree.shown(hook_abs), worktree.repo.env
    if refused := _refusal(hook_abs, env, passes=True):
        what = f"a {verb} whose gates pass is refused: {refused}"
    elif not (refused := _refusal(hook_abs, env, passes=False)):
        what = f"a {verb} whose gate fails goes through"
    elif GATE not in refused:
        what = f"a {verb} is refused, but not for its gate: {refused}"
    else:
        return Finding("ok", "proof", where, f"proved: a {verb} whose gate fails is refused")
    return Finding("problem", "proof", where, what, "gitgates doctor")


def _refusal(hook_abs: str, env: Mapping[str, str], *, passes: bool, kept: bytes = b"") -> str:
    """Return what git says where it refuses to commit, or to push; nothing where it does not.

    `kept` is the hook from before ours; empty: there is none.
    """
    hook = os.path.basename(hook_abs)
    with Throwaway(hook, env, passes=passes) as repo:
        with open(hook_abs, "rb", opener=open_regular) as file:
            content = file.read()
        repo.write(f".git/hooks/{hook}", content, os.stat(hook_abs).st_mode & 0o777)
        if kept:
            repo.write(f".git/hooks/{hook}{SUFFIX}", kept, 0o755)
        # As we write it: what the repository's own file says could start anything.
        repo.write(FILE, add_yaml(None, (hook,), FILE, "gitgates doctor") or "")
        repo.write("work", "done\n")
        done = repo.run(_PUSH if hook == "pre-push" else _COMMIT)
        if done.exit_status == 0:
            return ""
        said = " ".join((done.stderr + os.fsdecode(done.stdout)).split())
        return done.trouble or (said if GATE in said else done.last_line) or "it does not say why"
