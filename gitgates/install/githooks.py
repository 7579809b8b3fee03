"""Put our shims into a hooks folder, and take them out again. Nothing of others is ever lost.

A shim is the small sh script that git finds there, and that starts us. A hook that is there already
is renamed, and our entry runs it first. Where one cannot be, that is found out before the first
file is touched.
"""

from __future__ import annotations

import os
import re
import shlex
import sys

import gitgates
from gitgates.errors import StateError
from gitgates.git.previous_hook import BECOME, OPENS_ITSELF, SUFFIX
from gitgates.install.managers import VIA, recognise
from gitgates.install.own_file import content
from gitgates.record import Record
from gitgates.store.files import open_regular, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    # What is in the place of a hook: nothing, our shim, or somebody else's hook.
    Holder: TypeAlias = Literal["nobody", "us", "another"]

# The second line of every shim of ours begins so, whatever its version.
MARK = b"# Installed by gitgates (shim "
_LONGEST_HEAD = 4096
_MODE = 0o755
_SHELL = re.compile(rb"^#!.*[/ ](sh|bash|dash|ash)( -\w+)*\s*$")
_OPENS_ITSELF = re.compile(OPENS_ITSELF.encode(), re.MULTILINE)
_SHELL_NAME = re.compile(rb"basename[^;|\n]*[$]\{?(0|BASH_SOURCE)|[$]\{(0|BASH_SOURCE[^}]*)##")
_OTHER_NAME = re.compile(
    rb"[$]0\b|PROGRAM_NAME|sys\.argv\[0\]|process\.argv\[1\]|basename\W+__(file|FILE)__"
)


class Found(Record):
    """One hook's place in a hooks folder, as it is now."""

    hook: str
    shim_abs: str
    holder: Holder
    kept: bool  # there is a hook that was there before ours

    @property
    def kept_abs(self) -> str:
        """Where the hook that was there before is kept."""
        return self.shim_abs + SUFFIX

    @property
    def is_copied(self) -> bool:
        """Tell whether what is kept is what is there: its manager has written it over ours."""
        return self.kept and content(self.shim_abs) == content(self.kept_abs)


class Done(Record):
    """What was done about one hook, in words."""

    hook: str
    shim_abs: str
    what: str


def render(hook: str) -> bytes:
    """Return the shim of a hook: this interpreter and this installation are written into it."""
    package_abs = os.path.dirname(os.path.abspath(gitgates.__file__))
    with open(os.path.join(package_abs, "install", "shim.sh"), encoding="utf-8") as file:
        template = file.read()
    become = "".join(f"    {line}" for line in BECOME.splitlines(keepends=True))
    template = template.replace("    @BECOME@\n", become)
    values = {
        "@HOOK@": hook,
        "@PYTHON@": sys.executable,
        "@HOME@": os.path.dirname(package_abs),
    }
    for placeholder, value in values.items():
        template = template.replace(f"={placeholder}\n", f"={shlex.quote(value)}\n")
    return os.fsencode(template)


def is_ours(path_abs: str) -> bool:
    """Tell whether a file is a shim of ours. A link never is: it is somebody's own."""
    if os.path.islink(path_abs) or not os.path.isfile(path_abs):
        return False
    try:
        with open(path_abs, "rb", opener=open_regular) as file:
            head = file.read(_LONGEST_HEAD)
    except OSError:
        return False
    return head.partition(b"\n")[2].startswith(MARK)


def look(folder_abs: str, hook: str) -> Found:
    """Look at one hook's place."""
    shim_abs = os.path.join(folder_abs, hook)
    holder: Holder = "another"
    if is_ours(shim_abs):
        holder = "us"
    elif not os.path.lexists(shim_abs):
        holder = "nobody"
    return Found(hook, shim_abs, holder, kept=os.path.lexists(shim_abs + SUFFIX))


def install(folder_abs: str, hooks: tuple[str, ...], *, force: bool) -> list[Done]:
    """Put the shims of `hooks` into a folder, which is made where it is missing.

    `force` numbers a kept hook that is in the way of another one.

    Raises: StateError where a hook would be in the way, or the folder cannot be written.
    """
    places = [look(folder_abs, hook) for hook in hooks]
    if not force:
        _refuse_conflicts(places)
        _refuse_hooks_that_need_their_name(places)
    try:
        os.makedirs(folder_abs, exist_ok=True)
        return [_install_one(place) for place in places]
    except OSError as error:
        raise _cannot_write(folder_abs, error) from error


def uninstall(folder_abs: str, hooks: tuple[str, ...]) -> list[Done]:
    """Take our shims out of a folder and give the hooks that were there before back.

    Raises: StateError where the folder cannot be written.
    """
    try:
        done = [_uninstall_one(look(folder_abs, hook)) for hook in hooks]
    except OSError as error:
        raise _cannot_write(folder_abs, error) from error
    return [one for one in done if one.what]


def _refuse_conflicts(places: list[Found]) -> None:
    in_the_way = [
        place
        for place in places
        if place.holder == "another" and place.kept and not place.is_copied
    ]
    if not in_the_way:
        return
    names = "\n".join(f"  {place.shim_abs}\n  {place.kept_abs}" for place in in_the_way)
    manager = recognise(content(in_the_way[0].shim_abs))
    join = (
        f"Let {manager.name}, which writes it, run the gates: "
        f"gitgates install-hooks --via {manager.name}\n  Or look"
        if manager and manager.name in VIA
        else "Look"
    )
    raise StateError(
        "a hook that is not ours is where ours would go, and one from before is kept already; "
        f"nothing was changed:\n{names}",
        f"{join} at both, and remove the one that you no longer need.\n"
        f"  Or keep both: gitgates install-hooks --force names the older one {SUFFIX}.1, "
        "and it runs no more.",
    )


def _refuse_hooks_that_need_their_name(places: list[Found]) -> None:
    """Refuse hooks that would silently do nothing under the name that they are kept with."""
    found = [
        place
        for place in places
        if place.holder == "another"
        and os.access(place.shim_abs, os.X_OK)
        and _needs_its_name(place.shim_abs)
    ]
    if not found:
        return
    names = "\n".join(f"  {place.shim_abs}" for place in found)
    lines = "\n".join(f'    gitgates git-hook --via=own {place.hook} "$@"' for place in found)
    raise StateError(
        "a hook that is there does what its own name says ($0), and would be kept under another "
        f"one; nothing was changed:\n{names}",
        f"Leave it there and let it run the gates, in the words of sh:\n{lines}\n"
        "  Or keep it all the same, and try whether it still works: gitgates install-hooks --force",
    )


def _install_one(place: Found) -> Done:
    shim = render(place.hook)
    what = "installed"
    match place.holder:
        case "us" if _is_current(place.shim_abs, shim):
            return Done(place.hook, place.shim_abs, "already installed")
        case "us":
            what = "updated"
        case "another":
            what += _set_aside(place)
        case "nobody" if place.kept:
            what += f"; {os.path.basename(place.kept_abs)} runs first"
        case _:
            pass
    replace_file(place.shim_abs, shim, mode=_MODE, sync=False)  # git never finds half a hook
    return Done(place.hook, place.shim_abs, what)


def _is_current(shim_abs: str, shim: bytes) -> bool:
    return content(shim_abs) == shim and os.access(shim_abs, os.X_OK)


def _set_aside(place: Found) -> str:
    """Rename the hook that is there; return what to say about it."""
    said = ""
    kept_name = os.path.basename(place.kept_abs)
    if place.kept and not place.is_copied:
        numbered_abs = _free_name(place.kept_abs)
        os.rename(place.kept_abs, numbered_abs)
        said = f"; the older {kept_name} is now {os.path.basename(numbered_abs)} and runs no more"
    runs = os.path.isfile(place.shim_abs) and os.access(place.shim_abs, os.X_OK)
    os.rename(place.shim_abs, place.kept_abs)
    how = "runs first" if runs else "is kept; git did not run it (not executable), nor do we"
    return f"; the hook that was there {how}: {kept_name}{said}"


def _needs_its_name(path_abs: str) -> bool:
    """Tell whether a hook does what its name says, and cannot be run under it from another file.

    Scripts of sh and bash can be (`git/previous_hook.py`), unless they open their own file as well.
    """
    text = content(path_abs)
    first = text.partition(b"\n")[0]
    if not first.startswith(b"#!"):
        return b"\0" not in text and bool(_SHELL_NAME.search(text))
    if _SHELL.search(first):
        return bool(_SHELL_NAME.search(text) and _OPENS_ITSELF.search(text))
    return bool(_OTHER_NAME.search(text))


def _free_name(path_abs: str) -> str:
    number = 1
    while os.path.lexists(f"{path_abs}.{number}"):
        number += 1
    return f"{path_abs}.{number}"


def _uninstall_one(place: Found) -> Done:
    kept_name = os.path.basename(place.kept_abs)
    match place.holder:
        case "another":
            what = _uninstall_aside(place)
        case "us":
            what = "taken out"
            if not place.kept or os.path.isdir(place.kept_abs):
                os.unlink(place.shim_abs)  # no file to rename over it
        case _:
            what = "was gone already" if place.kept else ""
    manager = recognise(content(place.kept_abs))
    if place.holder == "nobody" and manager:  # which has taken out its own then, and ours with it
        what += f"; {kept_name} is {manager.name}'s, and stays as it is"
    elif place.holder != "another" and place.kept:
        os.rename(place.kept_abs, place.shim_abs)
        what += f"; the hook that was there before is back ({kept_name})"
        if manager and manager.kept and is_ours(place.shim_abs + manager.kept):
            os.unlink(place.shim_abs + manager.kept)
    if what and os.path.lexists(f"{place.kept_abs}.1"):
        what += f"; {kept_name}.1 is yours to look at"
    return Done(place.hook, place.shim_abs, what)


def _uninstall_aside(place: Found) -> str:
    """Take our shim out from where a manager has put it; return what to say.

    The hook from before ours goes there, unless it is an older one of the same manager.
    """
    kept_name = os.path.basename(place.kept_abs)
    manager, kept = recognise(content(place.shim_abs)), recognise(content(place.kept_abs))
    aside_abs = place.shim_abs + (manager.kept if manager else "")
    said = []
    if manager and manager.kept and is_ours(aside_abs):
        name = os.path.basename(aside_abs)
        said.append(f"{manager.name}'s is left as it is; ours was taken out ({name})")
        os.unlink(aside_abs)
        if place.kept and kept != manager:
            os.rename(place.kept_abs, aside_abs)
            return f"{said[0]}; the hook that was there before is {name} again"
    if not place.kept:
        return "".join(said)
    if manager and place.is_copied:
        os.unlink(place.kept_abs)
        return "; ".join(
            said or [f"{manager.name}'s is left as it is; {kept_name}, its copy, is gone"]
        )
    return "; ".join([*(said or ["not ours, left as it is"]), f"so is {kept_name} beside it"])


def _cannot_write(folder_abs: str, error: OSError) -> StateError:
    what = os.fsdecode(error.filename) if error.filename else folder_abs
    return StateError(
        f"{what}: {error.strerror}: the hooks cannot be written",
        f"Look at it with: ls -ld {folder_abs}",
    )
