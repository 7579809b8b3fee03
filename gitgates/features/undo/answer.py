"""The answer to a shell command before it runs: the person is asked, or it is refused.

It follows the rules `lost_work` and `destructive` of `[tool.gitgates.guard]`.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from gitgates.core.clean import first_few, plain_line
from gitgates.core.guarded import rules_by_name, setting_of
from gitgates.core.record import Record
from gitgates.features.undo import table
from gitgates.features.undo.destructive import destroyed
from gitgates.features.undo.unsavable import Search, call_of, commands_of, threats
from gitgates.shell.syntax import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.types import Config
    from gitgates.features.undo.unsavable import Surroundings, Threat, Unsavable
    from gitgates.shell.syntax import SimpleCommand

OFF, SAVE, ASK, DENY = _ANSWERS = ("off", "save", "ask", "deny")  # from the mildest
_UNDO = "gitgates undo"
_LONGEST = 120  # characters of a command that are shown
_MOST_SHOWN = 3  # paths
_OF_STATUS = {b"??": table.UNTRACKED, b"!!": table.IGNORED}
_OF_FILES = {table.TRACKED, table.INDEX, table.UNTRACKED, table.IGNORED}


class Answer(Record):
    """What to do about a command before it runs."""

    action: str  # ask, deny
    text: str  # for the agent


class _Loss(Record):
    """What one command would destroy."""

    threat: Threat
    unsavable: tuple[Unsavable, ...]


def answer(command: str, place: Surroundings, config: Config) -> Answer | None:
    """Return the question about a shell command, or its refusal; None: it may run.

    Raises: GitError if git does not exist.
    """
    if not table.may_matter(command, config):
        return None
    commands = commands_of(command, place.repo, place.cwd_abs, place.env)
    if setting_of(config, "destructive") == ASK and (found := _destructive(commands, place)):
        return found
    setting = setting_of(config, "lost_work")
    if setting == OFF:
        return None
    saves = bool(config.tables.get("undo", {}).get("enabled", True))
    is_unsaved = saves and place.look is None
    search, rated = Search(place), list[tuple[str, _Loss]]()
    for each, threat in threats(commands):
        for cwd in dict.fromkeys((each.cwd, each.fallback or each.cwd)):
            cwd_abs = os.path.join(place.cwd_abs, "" if UNKNOWN in cwd else cwd)
            lost = tuple(search.of(threat, cwd_abs)) if os.path.isdir(cwd_abs) else ()
            action = _action(threat, setting, is_unsavable=is_unsaved or bool(lost), saves=saves)
            if action in (ASK, DENY) and (lost or _is_at_stake(threat, place, cwd_abs)):
                rated.append((action, _Loss(threat, lost)))
    if not rated:
        return None
    action = max((action for action, _ in rated), key=_ANSWERS.index)
    losses = [loss for each_action, loss in rated if each_action == action]
    return Answer(action, _text(losses, action, saves=saves, is_unsaved=is_unsaved))


def _action(threat: Threat, setting: Any, *, is_unsavable: bool, saves: bool) -> str:  # noqa: ANN401 - a word, or pairs of patterns
    """Return the answer: as configured, but what cannot be saved is asked about.

    `saves`: save points are taken at all.
    """
    chosen = setting if isinstance(setting, str) else SAVE
    call = call_of(threat.words)
    words = ("git", call.verb, *call.rest) if call else threat.words
    text = " ".join(words).replace(UNKNOWN, "")
    for pattern, action in () if isinstance(setting, str) else setting:
        # `git clean *` means `git clean` as well.
        if fnmatchcase(text, pattern) or fnmatchcase(f"{text} ", pattern):
            chosen = action
    if chosen != SAVE:
        return str(chosen)
    return (ASK if is_unsavable else SAVE) if saves else OFF


def _is_at_stake(threat: Threat, place: Surroundings, cwd_abs: str) -> bool:
    """Return whether a command destroys anything that no commit holds."""
    takes, paths = {*threat.takes} - {table.BROUGHT}, list[str]()
    if not threat.takes:
        takes, paths = _OF_FILES, [path for path in threat.paths if UNKNOWN not in path]
        if not paths:
            return False
    if takes.isdisjoint(_OF_FILES):
        return bool(takes)  # refs, say
    ask = ("status", "--porcelain", "-z", "--untracked-files=all", "--ignored=matching")
    git = place.repo.git._replace(cwd_abs=os.path.join(cwd_abs, threat.folder))
    lines = git.ask("--no-literal-pathspecs", *ask, "--", *paths).stdout.split(b"\0")
    kinds = {_OF_STATUS.get(line[:2], table.TRACKED) for line in lines if line}
    takes |= {table.TRACKED} if table.INDEX in takes else set()
    return not kinds.isdisjoint(takes)


def _text(losses: list[_Loss], action: str, *, saves: bool, is_unsaved: bool) -> str:
    rule = rules_by_name()["lost_work"]
    sentences = dict.fromkeys(map(_sentence, losses))
    reasons = dict.fromkeys((one.why, one.path) for loss in losses for one in loss.unsavable)
    shown = [f"{plain_line(path, _LONGEST)}: {why}." for why, path in reasons][:_MOST_SHOWN]
    if shown:
        how = f"It cannot be saved first. {' '.join(shown)}"
    elif is_unsaved:
        how = "It cannot be saved first: no save point could be taken."
    else:
        back = f"; to get it back afterwards: {_UNDO}" if saves and action == ASK else ""
        how = f"{rule.why} The configuration says `{action}`{back}."
    told = " ".join(sentences)
    return f"gitgates: guard rule `lost_work`: {told}\n{how} {rule.instead}"


def _sentence(loss: _Loss) -> str:
    paths = [plain_line(one.path, _LONGEST) for one in loss.unsavable]
    what = first_few(paths, _MOST_SHOWN) or "what no commit has"
    return f"`{_shown(loss.threat.words)}` {loss.threat.does} {what}."


def _shown(words: tuple[str, ...]) -> str:
    return str(plain_line(" ".join(words).replace(UNKNOWN, "…"), _LONGEST))


def _destructive(commands: tuple[SimpleCommand, ...], place: Surroundings) -> Answer | None:
    rule = rules_by_name()["destructive"]
    for one in commands:
        call = call_of(one.words)
        folder = os.path.join(place.cwd_abs, one.cwd, call.folder if call else "")
        git = place.repo.git._replace(cwd_abs=folder if os.path.isdir(folder) else place.cwd_abs)
        if what := destroyed(one, git):
            told = f"gitgates: guard rule `destructive`: `{_shown(one.words)}` destroys {what}."
            return Answer(ASK, f"{told}\n{rule.why} {rule.instead}")
    return None
