"""Traps of core.hooksPath: folders that are not there, that others share, that differ. Pure enough.

Whether hooks are in a folder is another look's; here it is whether git looks in a sensible one.
"""

from __future__ import annotations

import os
import shlex

from gitgates.doctor.finding import Finding, in_folder
from gitgates.install.hookspath import setting, unset_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.doctor.place import Place


def check_folders(places: list[Place]) -> list[Finding]:
    """Return the traps that any worktree has fallen into. The current worktree comes first."""
    here_abs = places[0].repo.root_abs
    found = [finding for place in places for finding in _check_one(place, here_abs)]
    return _once(found) + _differences(places)


def _check_one(place: Place, here_abs: str) -> list[Finding]:
    folder, root_abs = place.folder, place.repo.root_abs
    if not folder.scope:
        return []
    unset = in_folder(root_abs, unset_command(folder), here_abs)
    trap = Finding(severity="problem", check="hooksPath", where=root_abs, what="", mend=unset)
    if folder.value and os.path.isdir(folder.path_abs):
        if folder.is_shared:
            what = f"{setting(folder)}: other repositories take their hooks from there, too"
            return [trap._replace(severity="note", what=what)]
        return []
    if _is_huskys(folder.value):
        what = f"{setting(folder)}: husky's folder is missing here, so that git runs no hooks"
        mend = in_folder(root_abs, "npm install", here_abs)
        return [trap._replace(what=what, mend=f"{mend}   # or: {unset}")]
    if place.linked and folder.value and not os.path.isabs(os.path.expanduser(folder.value)):
        what = (
            f"{setting(folder)}: a relative path means another folder in each worktree, and this "
            "one has none, so that git runs no hooks"
        )
        absolute = shlex.quote(os.path.join(place.repo.common_dir_abs, "hooks"))
        return [
            trap._replace(what=what, mend=f"{unset}   # or: git config core.hooksPath {absolute}")
        ]
    what = f"{setting(folder)}: there is no such folder, so that git runs no hooks at all"
    return [trap._replace(what=what)]


def _is_huskys(value: str) -> bool:
    return ".husky" in value.split("/")


def _once(findings: list[Finding]) -> list[Finding]:
    """Keep the first of those that say the same of several worktrees."""
    first: dict[str, Finding] = {}
    for finding in findings:
        key = finding.what if finding.severity == "note" else f"{finding.where}\0{finding.what}"
        first.setdefault(key, finding)
    return list(first.values())


def _differences(places: list[Place]) -> list[Finding]:
    """Find worktrees that have a folder set for them alone."""
    usual = {place.folder.path_abs for place in places if place.folder.scope != "worktree"}
    return [
        Finding(
            severity="note",
            check="hooksPath",
            where=place.repo.root_abs,
            what=f"{setting(place.folder)}: this worktree has hooks of its own",
            mend=in_folder(
                place.repo.root_abs, unset_command(place.folder), places[0].repo.root_abs
            ),
        )
        for place in places
        if place.folder.scope == "worktree" and usual - {place.folder.path_abs}
    ]
