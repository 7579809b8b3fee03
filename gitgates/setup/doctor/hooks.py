"""Whether git runs the gates of each configured hook, once, in every worktree."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping

import gitgates
from gitgates import __version__
from gitgates.core.errors import ConfigError
from gitgates.edit.user_file import content
from gitgates.git.hook_file import runs_gates
from gitgates.git.repo import Repo
from gitgates.proc.call import call
from gitgates.session.trust import is_approved
from gitgates.setup.doctor.findings import Subject, Worktree
from gitgates.setup.install import config_hooks, selection
from gitgates.setup.install.config_hooks import ConfigHook
from gitgates.setup.install.framework import FILE
from gitgates.setup.install.githooks import HookFile, read_hook
from gitgates.setup.install.hookspath import setting, unset_command
from gitgates.setup.install.managers import FRAMEWORK, VIA, Manager, next_command
from gitgates.store.files import read_regular
from gitgates.verbs.finding import Finding

_INSTALL = "gitgates install-hooks"
_COPIES = ("simple-git-hooks",)  # their hooks are copies of their settings
_NOT_EXECUTABLE = "is not executable, so git does not run it"
_NOT_FIRED = "manual"  # a stage that git never fires, so that there is nothing to install
_ASK = "import sys; sys.path.insert(0, sys.argv[1]); import gitgates; print(gitgates.__version__)"


# The shim


def check_shim(file: HookFile, location: str, worktree: Worktree) -> Finding:
    """Return the findings about one gitgates shim."""
    fix = worktree.command(_INSTALL)
    wrong = Finding("problem", "shim", location, "", fix)
    if not file.executable:
        fix = f"chmod +x {shlex.quote(file.path_abs)}"
        return wrong._replace(what=_NOT_EXECUTABLE, mend=fix)
    if not os.access(file.python, os.X_OK):
        return wrong._replace(what=f"its interpreter is missing: {file.python or 'none is named'}")
    if not os.path.isfile(os.path.join(file.home, "gitgates", "__init__.py")):
        return wrong._replace(what=f"gitgates is missing from {file.home or 'its home'}")
    if not may_start(file, worktree.repo):
        what = (
            f"names {file.python}, which is a file of the repository and not trusted: not checked"
        )
        return Finding("note", "shim", location, what, fix)
    version, trouble = __version__, ""
    if not _starts_this_gitgates(file):
        version, trouble = _ask_version(file, worktree.repo.env)
    note = wrong._replace(severity="note")
    if trouble:
        return wrong._replace(what=f"its interpreter {file.python} does not run it: {trouble}")
    if version != __version__:
        return note._replace(what=f"runs gitgates {version} of {file.home}; this is {__version__}")
    if not file.current:
        return note._replace(what="was written by a different version of gitgates")
    return Finding("ok", "shim", location, "installed and working")


def may_start(file: HookFile, repo: Repo) -> bool:
    """Return whether a shim may be started: one that may have been cloned only as we write it."""
    folder_abs = os.path.realpath(os.path.dirname(file.path_abs)) + os.sep
    is_in_tree, is_in_git = (
        folder_abs.startswith(os.path.realpath(place_abs) + os.sep)
        for place_abs in (repo.root_abs, repo.common_dir_abs)
    )
    return is_in_git or not is_in_tree or (file.current and _starts_this_gitgates(file))


def _starts_this_gitgates(file: HookFile) -> bool:
    """Return whether a shim starts the running gitgates, so it need not be tried."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(gitgates.__file__)))
    return (file.python, file.home) == (sys.executable, home)


def _ask_version(file: HookFile, env: Mapping[str, str]) -> tuple[str, str]:
    """Return the version that a shim would run, or why it would not."""
    try:
        process = call((file.python, "-I", "-S", "-c", _ASK, file.home), env)
    except OSError as error:
        return "", error.strerror or str(error)
    message = os.fsdecode(process.stderr).strip().rpartition("\n")[2]
    if process.exit_status:
        return "", message or f"exit status {process.exit_status}"
    return os.fsdecode(process.stdout).strip(), ""


# core.hooksPath


def check_hooks_path(subject: Subject) -> Iterator[Finding]:
    """Find traps of core.hooksPath: folders that are missing, shared with others, or different.

    Whether hooks are in a folder is another check's; here it is whether git looks in a sensible
    one.
    """
    shared: set[str] = set()  # reported for one worktree only
    usual = {
        worktree.folder.path_abs
        for worktree in subject.worktrees
        if worktree.folder.scope != "worktree"
    }
    for worktree in subject.worktrees:
        folder = worktree.folder
        problem = Finding("problem", "hooksPath", worktree.repo.root_abs, f"{setting(folder)}: ")
        unset = worktree.command(unset_command(folder)) if folder.scope else ""
        if folder.value and os.path.isdir(folder.path_abs):
            if folder.is_shared and folder.value not in shared:
                shared.add(folder.value)
                what = f"{problem.what}other repositories also use that folder for hooks"
                yield problem._replace(severity="note", what=what, mend=unset)
        elif ".husky" in folder.value.split("/"):
            what = f"{problem.what}husky's folder is missing, so git runs no hooks"
            fix = f"{worktree.command('npm install')}   # or: {unset}"
            yield problem._replace(what=what, mend=fix)
        elif folder.scope and worktree.configured.keys() >= {*_wanted_hooks(subject)}:
            what = f"{problem.what}that folder does not exist: git runs those of its configuration"
            yield problem._replace(severity="note", what=what, mend=unset)
        elif folder.scope:
            what = f"{problem.what}that folder does not exist, so git runs no hooks"
            yield problem._replace(what=what, mend=unset)
        if folder.scope == "worktree" and usual - {folder.path_abs}:
            what = f"{problem.what}this worktree has its own hooks"
            yield problem._replace(severity="note", what=what, mend=unset)


# The pre-commit framework


def check_stages(subject: Subject) -> Iterator[Finding]:
    """Find gitgates stages that the pre-commit framework is not installed for."""
    framework = subject.current.framework
    if framework.broken:
        what = f"cannot be read: {framework.broken}"
        yield Finding("problem", "stages", FILE, what, "fix its YAML")
        return
    stages = [stage for stage in framework.our_stages if stage != _NOT_FIRED]
    for stage in stages:
        file = read_hook(os.path.join(subject.current.folder.path_abs, stage))
        is_served = file.manager is not None and file.manager.name in FRAMEWORK
        if not is_served and file.kind != "shim":
            what = f"has gitgates-{stage}, but pre-commit is not installed for {stage}"
            fix = f"pre-commit install --hook-type {stage}"
            yield Finding("problem", "stages", FILE, what, fix)
    left_out = [stage for stage in stages if stage not in framework.install_types]
    if left_out:
        what = f"`pre-commit install` does not install {', '.join(left_out)}"
        types = ", ".join(dict.fromkeys([*framework.install_types, *left_out]))
        fix = f"add: default_install_hook_types: [{types}]"
        yield Finding("note", "stages", FILE, what, fix)


# The hooks


def check_hooks(subject: Subject) -> Iterator[Finding]:
    """Check each hook, once in each hooks folder or configuration: worktrees mostly share one."""
    hooks = _wanted_hooks(subject)
    first: dict[str, Worktree] = {}
    for worktree in subject.worktrees:
        first.setdefault(worktree.folder.path_abs, worktree)
    seen: set[tuple[str, str]] = set()
    for folder_abs, worktree in first.items():
        for hook in hooks:
            for finding in _check_hook(read_hook(os.path.join(folder_abs, hook)), worktree):
                if (finding.where, finding.what) not in seen:
                    yield finding
                seen.add((finding.where, finding.what))


def _wanted_hooks(subject: Subject) -> tuple[str, ...]:
    """Return the hooks of git that should be alive: the configured ones.

    If the configuration cannot be read: those that are installed.
    """
    if subject.config is None:
        files = (
            os.path.join(subject.current.folder.path_abs, hook) for hook in selection.CLIENT_HOOKS
        )
        shims = (os.path.basename(file) for file in files if read_hook(file).kind == "shim")
        return tuple(dict.fromkeys((*shims, *subject.current.configured)))
    try:
        return selection.select(subject.config)[0]
    except ConfigError:
        return ()  # no hook of git is configured: then there is nothing to install


def _check_hook(file: HookFile, worktree: Worktree) -> Iterator[Finding]:
    """Yield the findings about one hook, at least one."""
    if by_config := worktree.configured.get(file.hook):
        if not runs_gates(file.path_abs, worktree.repo.root_abs):
            yield _check_configured(by_config, worktree)
            return
        what = "git's configuration has this hook as well, which leaves the gates to the file"
        yield _note(file, worktree, what)._replace(severity="ok")
    match file.kind:
        case "none":
            what = f"{file.hook} is not installed: git runs none of its gates"
            manager, name = worktree.joined.get(file.hook, ("", ""))
            wants = manager and manager not in FRAMEWORK
            fix = next_command(manager, (file.hook,), name) if wants else ""
            yield _wrong(file, worktree, what, fix)
        case "shim":
            yield check_shim(file, worktree.display_path(file.path_abs), worktree)
            previous = read_hook(file.kept_abs)
            by = previous.manager if previous.executable else None
            if by and _runs_gates(file, worktree, by):
                yield _double(file, worktree, by.name)
        case "manager":
            if file.manager:
                yield from _check_managers(file, file.manager, worktree)
        case "custom":
            what = "is a custom hook that mentions gitgates: not checked"
            yield _note(file, worktree, what) if file.executable else _off(file, worktree)
        case "other":
            what = "is not a gitgates hook: git runs none of the gates"
            yield _wrong(file, worktree, what)


def _check_configured(hook: ConfigHook, worktree: Worktree) -> Finding:
    """Return the finding about a hook of git's configuration that runs the gates."""
    location = worktree.location_of(hook)
    problem = Finding("problem", "hook", location, "")
    if config_hooks.version_of(worktree.repo.git) < config_hooks.OLDEST_GIT:
        what = "this git has no hooks by configuration, and runs none of the gates"
        return problem._replace(what=what, mend=worktree.command(_INSTALL))
    if hook.off:
        scope = "" if hook.off_scope in (config_hooks.LOCAL, "command") else f"--{hook.off_scope} "
        fix = worktree.command(f"git config {scope}--unset-all {hook.off}")
        return problem._replace(what=f"`{hook.off}` is false: git does not run it", mend=fix)
    if hook.is_for_all and not is_approved(worktree.repo):
        what = "runs none of the gates, because you have not trusted this repository"
        return problem._replace(what=what, mend=worktree.command("gitgates approve gates"))
    option = "--global" if hook.is_for_all else "--config"
    finding = check_shim(hook.as_file, location, worktree)
    return finding._replace(mend=finding.mend and worktree.command(f"{_INSTALL} {option}"))


def _check_managers(file: HookFile, manager: Manager, worktree: Worktree) -> Iterator[Finding]:
    """Check a hook that another manager has installed."""
    by, settings = worktree.joined.get(file.hook, ("", FILE))
    is_served = manager.name in FRAMEWORK and file.hook in worktree.framework.our_stages
    runs_us = is_served or manager.name == by
    beside = read_hook(file.path_abs + manager.previous_suffix) if manager.previous_suffix else None
    is_over_ours = beside is not None and beside.kind == "shim"
    if runs_us and not file.executable:
        yield _off(file, worktree)
    elif beside and is_over_ours and manager.runs_kept:
        what = f"is {manager.name}'s, installed over gitgates': it runs {beside.hook} first"
        join = worktree.command(f"{_INSTALL} --via {manager.name}")
        yield _note(file, worktree, what, "" if runs_us else join)
        yield check_shim(
            beside, f"{worktree.display_path(file.path_abs)}{manager.previous_suffix}", worktree
        )
        if runs_us:
            yield _double(file, worktree, manager.name)
    elif runs_us and by in _COPIES and b"gitgates" not in content(file.path_abs):
        what = f"{settings} lets {by} run the gates, but this hook is older"
        yield _wrong(file, worktree, what, next_command(by, ()))
    elif runs_us:
        what = f"{manager.name} runs the gates, as {settings} says"
        yield _note(file, worktree, what)._replace(severity="ok")
    elif manager.name not in FRAMEWORK and _mentions_gitgates(file, worktree, manager.settings):
        yield _note(file, worktree, f"is {manager.name}'s, whose settings speak of gitgates")
    else:
        was_ours = is_over_ours or file.has_kept
        lost = " instead of gitgates'" if was_ours else ""
        what = f"is {manager.name}'s{lost}: git runs none of the gates"
        name = "pre-commit" if worktree.framework.our_stages else manager.name
        if manager.name in VIA:
            yield _wrong(file, worktree, what, f"{_INSTALL} --via {name}")
        else:
            remark = " (installing keeps that hook, and runs it first)"
            yield _wrong(file, worktree, what + remark)


def _runs_gates(file: HookFile, worktree: Worktree, manager: Manager) -> bool:
    """Return whether a manager runs the gates that our shim runs, too."""
    if manager.name in FRAMEWORK:
        return file.hook in worktree.framework.our_stages
    return file.hook in worktree.joined or _mentions_gitgates(file, worktree, manager.settings)


def _mentions_gitgates(file: HookFile, worktree: Worktree, settings: tuple[str, ...]) -> bool:
    """Return whether another manager's settings mention gitgates."""
    for name in settings:
        path_abs = os.path.join(worktree.repo.root_abs, name.format(hook=file.hook))
        try:
            # husky 8 has its scripts, and so our shim, in the hooks folder.
            if path_abs != file.path_abs and b"gitgates" in read_regular(path_abs):
                return True
        except OSError:
            continue
    return False


def _wrong(file: HookFile, worktree: Worktree, what: str, fix: str = "") -> Finding:
    """Return a problem with a hook; the default fix is to install it.

    Where a manager runs our gates, that is done through it: a shim of ours beside it would run
    them twice.
    """
    names = [manager for manager, _file in worktree.joined.values()]
    names = ["pre-commit"] if worktree.framework.our_stages else names
    fix = fix or (f"{_INSTALL} --via {names[0]}" if names else _INSTALL)
    location = worktree.display_path(file.path_abs)
    return Finding("problem", "hook", location, what, worktree.command(fix))


def _off(file: HookFile, worktree: Worktree) -> Finding:
    return _wrong(file, worktree, _NOT_EXECUTABLE, f"chmod +x {shlex.quote(file.path_abs)}")


def _note(file: HookFile, worktree: Worktree, what: str, fix: str = "") -> Finding:
    return Finding("note", "hook", worktree.display_path(file.path_abs), what, fix)


def _double(file: HookFile, worktree: Worktree, manager: str) -> Finding:
    settings = f"{manager}'s settings" if manager not in FRAMEWORK else FILE
    entry = f"gitgates-{file.hook}" if manager in FRAMEWORK else "gitgates"
    what = f"two managers: the gitgates hook and {manager} both run the gates of {file.hook}"
    fix = f"remove {entry} from {settings}, or: gitgates uninstall-hooks"
    return Finding("problem", "twice", worktree.display_path(file.path_abs), what, fix)
