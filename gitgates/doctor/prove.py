"""Show for each installed host that a gate which fails blocks: most wired hooks were never tried.

What is installed is run as it is, in a repository that is thrown away: once with a gate that
passes, because a hook that refuses everything proves nothing, and once with one that fails.
"""

from __future__ import annotations

import os

from gitgates.doctor.alive import may_start
from gitgates.doctor.finding import Finding
from gitgates.doctor.framework import FILE
from gitgates.doctor.framework import read as read_framework
from gitgates.doctor.hooks import look_at
from gitgates.doctor.prove_agents import prove_agents
from gitgates.doctor.throwaway import GATE, Throwaway, Trial
from gitgates.git.previous_hook import SUFFIX, KeptHook
from gitgates.install import framework as framework_file
from gitgates.install.hookspath import hooks_folder
from gitgates.install.managers import FRAMEWORK, entries
from gitgates.store.files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.doctor.hookfile import HookFile
    from gitgates.git.repo import Repo
    from gitgates.types import Config

# Hooks that a commit or a push fires, the nearest to a person's work first.
_PROVABLE = ("pre-commit", "commit-msg", "prepare-commit-msg", "pre-push")
_SHELLS = {b"sh", b"bash", b"dash", b"ash"}
_KEPT = f"{GATE}-kept"
_COMMIT = "git add -A && git commit -q -m work"
_PUSH = "git push -q origin HEAD:refs/heads/main"


def prove(
    config: Config | None, repo: Repo, env: Mapping[str, str], looked: list[Finding]
) -> list[Finding]:
    """Try each installed host; return one finding for each, or that there is none.

    `looked`: what was found without trying.

    Raises: GitError where no repository can be made to try them in.
    """
    folder = hooks_folder(repo._replace(env=env).git, repo)
    found = [*_git(folder.path_abs, repo, env), *prove_agents(config, repo, env, looked)]
    if found:
        return found
    for manager, file, _hook in entries(repo.root_abs, folder):
        what = f"{manager} is not tried: that would start what this repository names"
        return [Finding("note", "proof", file, what, "commit while a gate fails")]
    what = "no hook of ours that can be tried is installed: nothing to prove"
    return [Finding("note", "proof", repo.root_abs, what, "gitgates install-hooks")]


def _git(folder_abs: str, repo: Repo, env: Mapping[str, str]) -> list[Finding]:
    """Try our shim, and the hook of the framework that runs our stage."""
    framework = read_framework(repo.root_abs)
    files = {hook: look_at(folder_abs, hook) for hook in _PROVABLE}
    found = []
    shims = {hook: file for hook, file in files.items() if file.kind == "shim"}
    shim = next((hook for hook, file in shims.items() if may_start(file, repo)), "")
    if shim:
        found.append(_try(files[shim].path_abs, shim, repo, env))
    kept = [hook for hook, file in shims.items() if may_start(file, repo) and _has_kept(file)]
    found += [_try_kept(files[hook].path_abs, hook, repo, env) for hook in kept]
    served = [
        hook
        for hook, file in files.items()
        if hook in framework.our_stages and file.manager and file.manager.name in FRAMEWORK
    ]
    if served:
        found.append(_try(files[served[0]].path_abs, served[0], repo, env))
        what = "was not tried: install-hooks would not write it"
        for entry in framework.strange:
            said = Finding("note", "proof", FILE, f"the entry `{entry}` {what}")
            found.append(said._replace(mend="gitgates install-hooks --pre-commit"))
    return found


def _has_kept(file: HookFile) -> bool:
    return KeptHook(file.path_abs, (), None, {}).exists()


def _try_kept(hook_abs: str, hook: str, repo: Repo, env: Mapping[str, str]) -> Finding:
    """Try whether the hook from before ours is run, by its name, and counts.

    Another one with its first line stands in for it: it does not belong into a throwaway.
    """
    with open(hook_abs + SUFFIX, "rb") as file:
        first = file.readline().rstrip(b"\n")
    names = {word.rpartition(b"/")[2] for word in first.removeprefix(b"#!").split()}
    if not first.startswith(b"#!") or not names & _SHELLS:
        first = b"#!/bin/sh"
    kept = first + f'\necho "{_KEPT} ${{0##*/}}" >&2\nexit 1\n'.encode()
    trouble = _trial(hook_abs, Trial(hook, True, env), kept)
    where = os.path.relpath(hook_abs, repo.root_abs)
    found = Finding(
        severity="ok",
        check="proof",
        where=f"{hook_abs if where.startswith('..') else where}{SUFFIX}",
        what="proved: it runs under its own name, and what it refuses is refused",
    )
    if f"{_KEPT} {hook} " in f"{trouble} ":
        return found
    what = f"the hook that was there before ours does not count: {trouble or 'it is not run'}"
    return found._replace(severity="problem", what=what, mend="gitgates install-hooks")


def _try(hook_abs: str, hook: str, repo: Repo, env: Mapping[str, str]) -> Finding:
    path = os.path.relpath(hook_abs, repo.root_abs)
    where = hook_abs if path.startswith("..") else path
    verb = "push" if hook == "pre-push" else "commit"
    proved = f"proved: a {verb} whose gate fails is refused"
    fine = Finding(severity="ok", check="proof", where=where, what=proved)
    wrong = fine._replace(severity="problem", mend="gitgates doctor")
    trouble = _trial(hook_abs, Trial(hook, True, env))
    if trouble:
        return wrong._replace(what=f"a {verb} whose gates pass is refused: {trouble}")
    trouble = _trial(hook_abs, Trial(hook, False, env))
    if not trouble:
        return wrong._replace(what=f"a {verb} whose gate fails goes through")
    if GATE not in trouble:
        return wrong._replace(what=f"a {verb} is refused, but not for its gate: {trouble}")
    return fine


def _trial(hook_abs: str, trial: Trial, kept: bytes = b"") -> str:
    """Return what git says where it refuses to commit, or to push; nothing where it does not.

    `kept` is the hook from before ours; empty: there is none.
    """
    with Throwaway(trial) as repo:
        with open(hook_abs, "rb", opener=open_regular) as file:
            content = file.read()
        repo.write(f".git/hooks/{trial.hook}", content, os.stat(hook_abs).st_mode & 0o777)
        if kept:
            repo.write(f".git/hooks/{trial.hook}{SUFFIX}", kept, 0o755)
        # As we write it: what the repository's own file says could start anything.
        repo.write(
            FILE, framework_file.add_yaml(None, (trial.hook,), FILE, "gitgates doctor") or ""
        )
        repo.write("work", "done\n")
        done = repo.run(_PUSH if trial.hook == "pre-push" else _COMMIT)
        if done.exit_status == 0:
            return ""
        said = " ".join((done.stderr + os.fsdecode(done.stdout)).split())
        return done.trouble or (said if GATE in said else done.last_line) or "it does not say why"
