"""The save points before and after a tool call that may change files."""

from __future__ import annotations

import os

from gitgates.core.errors import GitgatesError
from gitgates.core.guarded import has_rules, setting_of
from gitgates.core.types import BLOCK, WARN, Verdict
from gitgates.drivers import recorder
from gitgates.features.undo.settings import settings_of
from gitgates.files.look import TimeOver
from gitgates.journal.entries import NoteEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.drivers.call import Call
    from gitgates.features.undo.answer import Answer
    from gitgates.files.look import Look

_NOT_SAVED = "gitgates: too large to be saved before an agent changes them: "
_LARGE = ("larger than", "too large", "all ignored files together")
_MOST_SHOWN = 5


def begin(call: Call) -> Verdict:
    """Look at the files when a session begins; report those that are too large to be saved."""
    return _large_files(call, recorder.begin(call).look)


def settle(call: Call) -> Verdict:
    """Record the prompt, and that earlier calls are over."""
    recorder.observe(call)
    return Verdict()


def before(call: Call) -> Verdict:
    """Take a save point before a tool; ask about what a command would destroy for good."""
    error, look = None, None
    if settings_of(call.config).enabled:
        try:
            look = recorder.observe(call).look
        except GitgatesError as problem:
            error = problem
    if answer := _answer(call, look):
        text = answer.text if error is None else f"{answer.text}\n{error}"
        if answer.action == "deny":
            return Verdict(BLOCK, to_agent=text, final=True)
        return Verdict(ask=True, to_agent=text)
    if error is None:
        return _unsaved_file(call, look) or _large_files(call, look)
    if isinstance(error, TimeOver) and setting_of(call.config, "lost_work") != "off":
        text = f"gitgates: guard rule `lost_work`: there is no save point yet: {error.message}."
        hint = "Allow it if nothing can be lost by it, or try again when the look has finished."
        return Verdict(ask=True, to_agent=f"{text}\n{hint}")
    raise error


def _unsaved_file(call: Call, look: Look | None) -> Verdict | None:
    """Ask about a file that a tool will write and that could not be saved."""
    is_edit = look and call.payload.tool.kind == "writes"
    if not is_edit or setting_of(call.config, "lost_work") == "off":
        return None
    left_out = look.all_left_out if look else {}
    for path in call.edited_paths or ():
        inside = (folder for folder in left_out if path == folder or path.startswith(f"{folder}/"))
        place = next(inside, "")
        if place and os.path.lexists(f"{call.repo.root_abs}/{path}"):
            from gitgates.core.clean import plain_line  # seldom needed

            text = f"gitgates: guard rule `lost_work`: {plain_line(path)} cannot be saved first. "
            text += f"{plain_line(place)}: it is {left_out[place]}."
            return Verdict(ask=True, to_agent=text)
    return None


def _answer(call: Call, look: Look | None) -> Answer | None:
    """Return the question about a shell command, or its refusal; None if it may run."""
    from gitgates.features.undo.table import may_matter

    command, config = call.payload.tool.command, call.config
    is_command = call.payload.tool.kind == "shell"
    if not (is_command and has_rules(config) and may_matter(command, config)):
        return None
    from gitgates.features.undo.answer import answer  # most commands destroy nothing
    from gitgates.features.undo.unsavable import Surroundings

    return answer(command, Surroundings(call.payload.cwd_abs, call.repo, call.env, look), config)


def after(call: Call) -> Verdict:
    """Take a save point after a tool; say how to get back what it destroyed."""
    point = recorder.observe(call).point
    if not (point and point.parent and recorder.may_write(call.payload)):
        return Verdict()
    from gitgates.features.undo.told import told  # most calls change nothing

    text = told(call.repo, point, is_command=call.payload.tool.kind == "shell")
    return Verdict(WARN, to_agent=text, to_person=text) if text else Verdict()


def _large_files(call: Call, look: Look | None) -> Verdict:
    """Tell the person once in a session which files are too large to be saved."""
    if look is None or any(note.startswith(_NOT_SAVED) for note in call.session.notes):
        return Verdict()
    large = [path for path, why in look.all_left_out.items() if why.startswith(_LARGE)]
    if not large:
        return Verdict()
    from gitgates.core.clean import first_few, plain_line  # seldom needed

    names = [plain_line(path) for path in sorted(large)]
    text = f"{_NOT_SAVED}{first_few(names, _MOST_SHOWN)}. The limit is `max_file`, or half of"
    text += " `max_size`, in [tool.gitgates.undo]."
    return Verdict(WARN, to_person=text, entries=(NoteEntry(text),))
