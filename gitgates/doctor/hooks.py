"""Whether git runs the gates of each configured hook, once, in every worktree."""

from __future__ import annotations

import os
from shlex import quote

from gitgates.doctor.alive import check_shim
from gitgates.doctor.finding import Finding, in_folder
from gitgates.doctor.framework import FILE
from gitgates.doctor.hookfile import HookFile, kept_by_manager, kept_by_us, look
from gitgates.install.managers import FRAMEWORK, VIA, next_command
from gitgates.install.own_file import content
from gitgates.record import Record
from gitgates.store.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.doctor.framework import Framework
    from gitgates.doctor.place import Place

_INSTALL = "gitgates install-hooks"
_COPIES = ("simple-git-hooks",)  # a hook of theirs holds what their settings said
_NOT_EXECUTABLE = "is not executable, so that git does not run it"


class Look(Record):
    """One hook in one hooks folder, and what is known around it."""

    hook: str
    file: HookFile
    place: Place  # the worktree, or the first of those that share the folder
    framework: Framework  # of that worktree
    joined: Mapping[str, tuple[str, str]]  # hook: the manager that runs our gates, and its file
    here_abs: str  # the root that commands are called from
    env: Mapping[str, str]

    @property
    def where(self) -> str:
        """Name the hook by its file, as short as it can be."""
        path = os.path.relpath(self.file.path_abs, self.here_abs)
        return self.file.path_abs if path.startswith("..") else path

    def finding(self, what: str, mend: str = "") -> Finding:
        """Return a problem with this hook; what mends it, if nothing else, is to install it.

        Where a manager runs our gates, that is done through it: a shim of ours beside it would run
        them twice.
        """
        names = [manager for manager, _file in self.joined.values()]
        names = ["pre-commit"] if self.framework.our_stages else names
        install = f"{_INSTALL} --via {names[0]}" if names else _INSTALL
        mend = in_folder(self.place.repo.root_abs, mend or install, self.here_abs)
        return Finding(severity="problem", check="hook", where=self.where, what=what, mend=mend)

    def note(self, what: str, mend: str = "") -> Finding:
        """Return something to know of this hook."""
        return self.finding(what, mend)._replace(severity="note", mend=mend)


def check_hook(look_: Look) -> list[Finding]:
    """Return what is found of one hook: at least one finding."""
    match look_.file.kind:
        case "none":
            what = f"{look_.hook} is not installed: git runs none of its gates"
            manager, file = look_.joined.get(look_.hook, ("", ""))
            wants = manager and manager not in FRAMEWORK
            return [
                look_.finding(what, next_command(manager, (look_.hook,), file) if wants else "")
            ]
        case "shim":
            alive = check_shim(look_.file, look_.where, look_.env, look_.place.repo)
            if alive.mend.startswith("gitgates"):
                alive = alive._replace(mend=look_.finding("", alive.mend).mend)
            return [alive, *_twice(look_, kept_by_us(look_.file))]
        case "manager":
            return _manager(look_)
        case "custom":
            said = look_.note("is a hook of your own that speaks of gitgates: not looked into")
            wrong = look_.finding(_NOT_EXECUTABLE, f"chmod +x {quote(look_.file.path_abs)}")
            return [said if look_.file.executable else wrong]
        case "other":
            return [look_.finding("is a hook that is not ours: git runs none of the gates")]


def _manager(look_: Look) -> list[Finding]:
    """Look at a hook that another manager has installed."""
    file, manager = look_.file, look_.file.manager
    if manager is None:
        return []
    by, settings = look_.joined.get(look_.hook, ("", FILE))
    served = manager.name in FRAMEWORK and look_.hook in look_.framework.our_stages
    serves = served or manager.name == by
    beside = kept_by_manager(file)
    if serves and not file.executable:
        return [look_.finding(_NOT_EXECUTABLE, f"chmod +x {quote(file.path_abs)}")]
    if beside.kind == "shim" and manager.runs_kept:
        alive = check_shim(beside, f"{look_.where}{manager.kept}", look_.env, look_.place.repo)
        what = f"is {manager.name}'s, installed over ours: it runs {look_.hook}{manager.kept} first"
        join = look_.finding("", f"{_INSTALL} --via {manager.name}").mend
        told = look_.note(what, "" if serves else join)
        return [told, alive, *(_double(look_, manager.name) if serves else [])]
    if serves and by in _COPIES and b"gitgates" not in content(file.path_abs):
        what = f"{settings} lets {by} run the gates, but this hook is older"
        return [look_.finding(what, next_command(by, ()))]
    if serves:
        what = f"{manager.name} runs the gates, as {settings} says"
        return [look_.note(what)._replace(severity="ok")]
    if manager.name not in FRAMEWORK and _names_us(look_, manager.settings):
        return [look_.note(f"is {manager.name}'s, whose settings speak of gitgates")]
    was_ours = beside.kind == "shim" or kept_by_us(file).kind != "none"
    lost = " instead of ours" if was_ours else ""
    what = f"is {manager.name}'s{lost}: git runs none of the gates"
    if manager.name in VIA:
        name = "pre-commit" if look_.framework.our_stages else manager.name
        return [look_.finding(what, f"{_INSTALL} --via {name}")]
    return [look_.finding(f"{what} (installing ours keeps that hook, and runs it first)")]


def _twice(look_: Look, kept: HookFile) -> list[Finding]:
    """Find the same gates behind the hook that our shim runs first."""
    if kept.kind != "manager" or kept.manager is None or not kept.executable:
        return []
    if kept.manager.name in FRAMEWORK:
        both = look_.hook in look_.framework.our_stages
    else:
        both = look_.hook in look_.joined or _names_us(look_, kept.manager.settings)
    return _double(look_, kept.manager.name) if both else []


def _double(look_: Look, manager: str) -> list[Finding]:
    if manager in FRAMEWORK:
        mend = f"take gitgates-{look_.hook} out of {FILE}, or: gitgates uninstall-hooks"
    else:
        mend = f"take gitgates out of {manager}'s settings, or: gitgates uninstall-hooks"
    what = f"two managers fire: our shim and {manager} both run the gates of {look_.hook}"
    return [look_.finding(what)._replace(check="twice", mend=mend)]


def _names_us(look_: Look, settings: tuple[str, ...]) -> bool:
    """Tell whether another manager's settings speak of us."""
    root_abs = look_.place.repo.root_abs
    for name in settings:
        path_abs = os.path.join(root_abs, name.format(hook=look_.hook))
        try:
            # husky 8 has its scripts, and so our shim, in the hooks folder.
            if path_abs != look_.file.path_abs and b"gitgates" in read_regular(path_abs):
                return True
        except OSError:
            continue
    return False


def look_at(folder_abs: str, hook: str) -> HookFile:
    """Look at a hook in a folder."""
    return look(os.path.join(folder_abs, hook))
