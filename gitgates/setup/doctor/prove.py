"""Test that a failing gate blocks, for each installed host, in a throwaway repository.

The installed hooks run unchanged in that repository: first with a gate that passes, because a hook
that refuses everything proves nothing, and then with a gate that fails.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from gitgates.core.errors import GitError
from gitgates.core.lifecycle import HOOK_OF
from gitgates.edit.user_file import content
from gitgates.git.previous_hook import SUFFIX, is_kept
from gitgates.hosts import AGENTS, agent_host, agent_settings
from gitgates.proc.call import CompletedProcess, call, call_detached
from gitgates.setup.doctor.agents import Source, find_sources
from gitgates.setup.doctor.hooks import Subject, Worktree, may_start
from gitgates.setup.install import agents
from gitgates.setup.install.framework import FILE
from gitgates.setup.install.githooks import HookFile, read_hook
from gitgates.setup.install.managers import FRAMEWORK, of_framework
from gitgates.verbs.finding import Finding

GATE = "gitgates-doctor-proof"
LONGEST_S = 20.0
_SETTINGS = f"""\
[gates.{GATE}]
command = "test -e '@PASSES@'"
[hooks.@HOOK@]
gates = ["{GATE}"]
"""
_CONFIG_ABS = os.path.join(os.path.dirname(__file__), "throwaway.gitconfig")
_SETUP = """\
git init -q --template= . && cat >>.git/config && mkdir -p .git/hooks &&
git add -A && git commit -q -m settings
"""
# Variables that name another repository, or another run of gitgates.
_ELSEWHERE = ("GIT_", "GITGATES_ACTIVE", "GITGATES_HOOK", "GITGATES_RUN", "PRE_COMMIT")
# Hooks that a commit or a push runs, the earliest first.
_PROVABLE_HOOKS = ("pre-commit", "commit-msg", "prepare-commit-msg", "pre-push")
_KEPT = f"{GATE}-kept"
_COMMIT = "git add -A && git commit -q -m work"
_PUSH = (
    "git init -q --bare --template= ../remote && git add -A && git commit -q -m work && "
    "git push -q origin HEAD:refs/heads/main"
)


def prove(subject: Subject, findings: list[Finding], *, only: str = "") -> list[Finding]:
    """Try each installed host; return a finding for each, or that there is none.

    `findings`: those of the checks. `only`: the coding agent to try; empty: all hosts.

    Raises: GitError if no repository can be created to try them in.
    """
    proofs = [] if only else [*_prove_git(subject.current)]
    proofs += _try_agents(subject, findings, (only,) if only else AGENTS)
    if proofs:
        return proofs
    fine = Finding("note", "proof", subject.repo.root_abs, "", "gitgates install-hooks")
    if only:
        what = f"{agent_host(only).TITLE} has no gitgates hooks here: nothing to prove"
        return [fine._replace(severity="problem", what=what, mend=f"{fine.mend} --agent {only}")]
    for (manager, hook), file in subject.current.calls.items():
        what = f"{manager} is not tested, as that would run other commands of this repository"
        verb = "push" if hook == "pre-push" else "commit"
        mend = f"To test it: {verb} while a gate fails"
        return [fine._replace(where=file, what=what, mend=mend)]
    what = "no testable gitgates hook is installed: nothing to prove"
    return [fine._replace(what=what)]


# The throwaway repository


class Throwaway:
    """A repository with one gate."""

    def __init__(self, scratch_abs: str, env: Mapping[str, str]) -> None:
        self.root_abs = os.path.join(scratch_abs, "work")
        self.passes_abs = os.path.join(scratch_abs, "passes")
        names = (n for n in env if not n.startswith(_ELSEWHERE) or n.startswith("GIT_CONFIG_"))
        clean = {name: env[name] for name in names}
        started = [agent_host(agent).ENVIRONMENT.project for agent in AGENTS]
        self._env = clean | {name: self.root_abs for name in started if name}
        self._env["XDG_STATE_HOME"] = os.path.join(
            scratch_abs, "state"
        )  # else save points would remain

    def change(self, *, passes: bool) -> None:
        """Change a file, and make the gate pass or fail from now on."""
        self.write("work", f"done: {passes}\n".encode())
        if passes:
            open(self.passes_abs, "wb").close()
        else:
            os.unlink(self.passes_abs)

    def write(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """Write a file in the repository."""
        path_abs = os.path.join(self.root_abs, name)
        os.makedirs(os.path.dirname(path_abs), exist_ok=True)
        with open(path_abs, "wb") as file:
            file.write(content)
        os.chmod(path_abs, mode)

    def run(self, script: str, stdin: bytes = b"") -> CompletedProcess:
        """Run a script here, as a host would; at the deadline, all its processes are ended."""
        argv = ("/bin/sh", "-c", 'cd "$0" && exec sh -c "$1"', self.root_abs, script)
        try:
            return call_detached(argv, self._env, stdin, LONGEST_S)
        except OSError as error:  # it took too long
            return CompletedProcess(-1, b"", os.fsencode(str(error)))


def _last_line(process: CompletedProcess) -> str:
    """Return the last line that a process printed on standard error."""
    return os.fsdecode(process.stderr).strip().rpartition("\n")[2]


def _can_start(script_abs: str) -> bool:
    """Return whether a script can be started in its folder: not if that is mounted `noexec`."""
    with open(script_abs, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n")
    os.chmod(script_abs, 0o700)
    try:
        return call((script_abs,), {}).exit_status == 0
    except OSError:
        return False


@contextmanager
def _throwaway(hook: str, env: Mapping[str, str]) -> Iterator[Throwaway]:
    """Yield a repository with a gate in a hook; it is removed after the `with` block.

    Raises: GitError if it cannot be created.
    """
    with tempfile.TemporaryDirectory(prefix="gitgates-doctor-") as scratch:
        # Links in the path would give the folder two names.
        scratch_abs = os.path.realpath(scratch)
        if not _can_start(f"{scratch_abs}/can-start"):
            raise GitError(  # git ignores such hooks
                f"no hook can be tested: programs cannot be started from {tempfile.gettempdir()}",
                "Use another folder: TMPDIR=FOLDER gitgates doctor --prove",
            )
        repo = Throwaway(scratch_abs, env)
        os.mkdir(repo.root_abs)
        settings = _SETTINGS.replace("@HOOK@", hook).replace("@PASSES@", repo.passes_abs)
        repo.write("gitgates.toml", settings.encode())
        with open(_CONFIG_ABS, encoding="utf-8") as file:
            config = file.read().replace("@ROOT@", repo.root_abs)
        process = repo.run(_SETUP, config.encode())
        if process.exit_status != 0:
            why = _last_line(process) or f"exit status {process.exit_status}"
            raise GitError(f"cannot create a repository to test in: {why}")
        yield repo


# git, and the pre-commit framework


def _prove_git(worktree: Worktree) -> Iterator[Finding]:
    """Try our shim, the framework's hook that runs gates, and the hooks that our shims run."""
    folder_abs = worktree.folder.path_abs
    files = [read_hook(os.path.join(folder_abs, hook)) for hook in _PROVABLE_HOOKS]
    shims = [file for file in files if file.kind == "shim" and may_start(file, worktree.repo)]
    stages = {hook for name, hook in worktree.calls if name in FRAMEWORK}
    by_framework = [f for f in files if f.manager and f.manager.name in FRAMEWORK]
    served = [file for file in by_framework if file.hook in stages]
    for file in (*shims[:1], *served[:1]):
        verb = "push" if file.hook == "pre-push" else "commit"
        with _throwaway_with(file, worktree.repo.env) as repo:
            passed = _refusal(repo, file.hook, passes=True)
            failed = passed or _refusal(repo, file.hook, passes=False)
        what = "" if GATE in failed else f"a {verb} is refused, but not for its gate: {failed}"
        what = what if failed else f"a {verb} whose gate fails goes through"
        what = f"a {verb} whose gates pass is refused: {passed}" if passed else what
        fine = Finding("ok", "proof", worktree.display_path(file.path_abs), "")
        proved = fine._replace(what=f"proved: a {verb} whose gate fails is refused")
        wrong = fine._replace(severity="problem", what=what, mend="gitgates doctor")
        yield wrong if what else proved
    for file in shims:
        if is_kept(file.path_abs):
            yield _try_kept(file, worktree)


def _try_kept(file: HookFile, worktree: Worktree) -> Finding:
    """Try whether the previous hook runs with its own name, and can refuse.

    A shell script replaces it, because the hook itself may do anything.
    """
    script = f'#!/bin/sh\necho "{_KEPT} ${{0##*/}}" >&2\nexit 1\n'.encode()
    with _throwaway_with(file, worktree.repo.env) as repo:
        repo.write(f".git/hooks/{file.hook}{SUFFIX}", script, 0o755)
        refused = _refusal(repo, file.hook, passes=True)
    location = worktree.display_path(file.kept_abs)
    if f"{_KEPT} {file.hook} " in f"{refused} ":
        what = "proved: it runs under its own name, and its refusal counts"
        return Finding("ok", "proof", location, what)
    what = f"the previous hook has no effect: {refused or 'it is not run'}"
    return Finding("problem", "proof", location, what, "gitgates install-hooks")


@contextmanager
def _throwaway_with(file: HookFile, env: Mapping[str, str]) -> Iterator[Throwaway]:
    """Yield a repository with an installed hook."""
    with _throwaway(file.hook, env) as repo:
        mode = os.stat(file.path_abs).st_mode & 0o777
        repo.write(f".git/hooks/{file.hook}", content(file.path_abs), mode)
        # As install-hooks prints it, because the repository's own file could start anything.
        repo.write(FILE, f"repos:\n{of_framework((file.hook,), FILE)}".encode())
        yield repo


def _refusal(repo: Throwaway, hook: str, *, passes: bool) -> str:
    """Return git's message if it refuses to commit or to push; else ""."""
    repo.change(passes=passes)
    process = repo.run(_PUSH if hook == "pre-push" else _COMMIT)
    if process.exit_status == 0:
        return ""
    output = " ".join(os.fsdecode(process.stderr + process.stdout).split())
    return (output if GATE in output else _last_line(process)) or "it does not say why"


# Coding agents


def _try_agents(subject: Subject, findings: list[Finding], names: Iterable[str]) -> list[Finding]:
    """Try our program at an event in each settings file that starts it; return a finding for each.

    It runs in our own environment, not with the settings' `env`, and only this gitgates is started:
    a cloned repository may contain other values. A block proves nothing if, according to
    `findings`, the client does not run our hook or does not wait for it.
    """
    gated = [hook.name for hook in subject.config.hooks if hook.gates] if subject.config else []
    wrong = {f.where for f in findings if (f.check, f.severity) == ("agent", "problem")}
    proofs = []
    for sources in (find_sources(agent, subject.repo) for agent in names):
        is_doubted = any(source.location in wrong for source in sources)
        for source in (each for each in sources if each.own_hooks):
            proof = _try_event(source, gated, subject.repo.env)
            if is_doubted and proof.severity == "ok":
                what = proof.what.removeprefix("proved: ") + ", once the problems above are fixed"
                proof = proof._replace(severity="note", what=what)
            proofs.append(proof)
    return proofs


def _try_event(source: Source, gated: list[str], env: Mapping[str, str]) -> Finding:
    """Try the most important event with gates."""
    host, client = agent_host(source.agent), agent_settings(source.agent)
    provable = [HOOK_OF[kind] for kind in host.PROTOCOL.provable]
    own_hooks = {hook.event: hook.command for hook in source.own_hooks if hook.event in provable}
    fine = Finding(severity="ok", check="proof", where=source.location, what="")
    events = [event for event in provable if event in own_hooks and event in (gated or provable)]
    if not events:
        gates, end = ("has gates and ", ": nothing to prove") if own_hooks else ("", "")
        what = f"calls gitgates at no event that {gates}can be blocked{end}"
        return fine._replace(severity="note", what=what)
    event, command = events[0], own_hooks[events[0]]
    wrong = fine._replace(severity="problem", mend="gitgates doctor")
    program = agents.program_of(command, source.agent)
    if program is not None and not agents.is_known(program, env):
        return wrong._replace(what=f"not tested: {program} is not the gitgates of this machine")
    answers = []
    with _throwaway(event, env) as repo:
        for passes in (True, False):  # each in its own session
            session = f"gitgates-doctor-{passes}"
            sample = partial(client.sample, root_abs=repo.root_abs, session=session)
            if host.has("session-start"):
                repo.run(command, sample(HOOK_OF["session-start"]))
            repo.change(passes=passes)
            answers.append(repo.run(command, sample(event, file="work")))
    passed, failed = answers
    if host.is_block(passed.exit_status, passed.stdout):
        return wrong._replace(what=f"{event} is blocked although the gates pass")
    output = failed.stdout.decode("utf-8", "replace")
    why = _last_line(failed) or (repr(output.strip()[:80]) if output else "nothing")
    if not host.is_block(failed.exit_status, failed.stdout):
        return wrong._replace(what=f"{event} goes through although a gate fails: it answers {why}")
    if GATE not in output:
        return wrong._replace(what=f"{event} is blocked, but not for its gate: it answers {why}")
    return fine._replace(what=f"proved: {event} is blocked if a gate fails")
