"""The answer to a shell command before it runs: the person is asked, or it is refused.

It follows the rules `lost_work` and `destructive` of `[tool.gitgates.guard]`.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from gitgates.core.clean import plain_line
from gitgates.core.guarded import rules_by_name, setting_of
from gitgates.core.record import Record
from gitgates.features.undo.commands import commands_of
from gitgates.features.undo.destroyers import (
    BROUGHT,
    IGNORED,
    INDEX,
    TRACKED,
    UNTRACKED,
    destroyers,
)
from gitgates.features.undo.destructive import destroyed
from gitgates.features.undo.relevant import may_matter
from gitgates.features.undo.unsavable import Search, Unsavable
from gitgates.shell.repositories import git_call
from gitgates.shell.syntax import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.types import Config
    from gitgates.features.undo.destroyers import Destroyer
    from gitgates.features.undo.unsavable import Surroundings
    from gitgates.shell.syntax import SimpleCommand

OFF, SAVE, ASK, DENY = _ANSWERS = ("off", "save", "ask", "deny")  # from the mildest
_UNDO = "gitgates undo"
_LONGEST = 120  # characters of a command that are shown
_MOST_SHOWN = 3  # paths


class Answer(Record):
    """What to do about a command before it runs."""

    action: str  # ask, deny
    text: str  # for the agent


class _Loss(Record):
    """What one command would destroy."""

    destroyer: Destroyer
    unsavable: tuple[Unsavable, ...]


def answer(command: str, place: Surroundings, config: Config) -> Answer | None:
    """Return the question about a shell command, or its refusal; None: it may run.

    Raises: GitError where git does not exist.
    """
    if not may_matter(command, config):
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
    for each, destroyer in destroyers(commands):
        for cwd in dict.fromkeys((each.cwd, each.fallback or each.cwd)):
            cwd_abs = os.path.join(place.cwd_abs, "" if UNKNOWN in cwd else cwd)
            lost = tuple(search.of(destroyer, cwd_abs)) if os.path.isdir(cwd_abs) else ()
            action = _action(destroyer, setting, is_unsavable=is_unsaved or bool(lost), saves=saves)
            if action in (ASK, DENY) and (lost or _is_at_stake(destroyer, place, cwd_abs)):
                rated.append((action, _Loss(destroyer, lost)))
    if not rated:
        return None
    action = max((action for action, _ in rated), key=_ANSWERS.index)
    losses = [loss for each_action, loss in rated if each_action == action]
    return Answer(action, _text(losses, action, saves=saves, is_unsaved=is_unsaved))


def _action(destroyer: Destroyer, setting: Any, *, is_unsavable: bool, saves: bool) -> str:  # noqa: ANN401 - a word, or pairs of patterns
    """Return the answer: as configured, but what cannot be saved is asked about.

    `saves`: save points are taken at all.
    """
    chosen = setting if isinstance(setting, str) else _by_pattern(_words(destroyer), setting)
    if chosen != SAVE:
        return str(chosen)
    return (ASK if is_unsavable else SAVE) if saves else OFF


def _by_pattern(text: str, pairs: Any) -> str:  # noqa: ANN401 - or lists, from JSON
    chosen = SAVE
    for pattern, action in pairs:
        # `git clean *` means `git clean` as well.
        if fnmatchcase(text, pattern) or fnmatchcase(f"{text} ", pattern):
            chosen = action
    return chosen


def _words(destroyer: Destroyer) -> str:
    """Return the words of a command, without options of git itself."""
    words = list(destroyer.words)
    if words[:1] == ["git"]:
        call = git_call(words[1:])
        words = ["git", call.verb, *call.rest]
    return " ".join(words).replace(UNKNOWN, "")


def _is_at_stake(destroyer: Destroyer, place: Surroundings, cwd_abs: str) -> bool:
    """Return whether there is anything that no commit holds where a command destroys."""
    takes, paths = {*destroyer.takes} - {BROUGHT}, list[str]()
    if not destroyer.takes:
        paths = [path for path in destroyer.paths if UNKNOWN not in path]
        takes = {UNTRACKED, IGNORED} if paths else set()
    if not takes or takes.isdisjoint({TRACKED, INDEX, UNTRACKED, IGNORED}):
        return bool(takes)  # refs, say
    untracked = "no" if takes.isdisjoint({UNTRACKED, IGNORED}) else "all"
    ask = ["status", "--porcelain", "-z", f"--untracked-files={untracked}"]
    ask += ["--ignored=matching"] if IGNORED in takes else []
    git = place.repo.git._replace(cwd_abs=os.path.join(cwd_abs, destroyer.folder))
    return bool(git.ask("--no-literal-pathspecs", *ask, "--", *paths).stdout)


def _text(losses: list[_Loss], action: str, *, saves: bool, is_unsaved: bool) -> str:
    rule = rules_by_name()["lost_work"]
    sentences = dict.fromkeys(map(_sentence, losses))
    reasons = dict.fromkeys((one.why, one.path) for loss in losses for one in loss.unsavable)
    shown = [f"{_clean(path)}: {why}." for why, path in reasons][:_MOST_SHOWN]
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
    destroyer = loss.destroyer
    words = plain_line(" ".join(destroyer.words).replace(UNKNOWN, "…"), _LONGEST)
    what = ", ".join(_clean(one.path) for one in loss.unsavable[:_MOST_SHOWN])
    more = len(loss.unsavable) - _MOST_SHOWN
    what += f" and {more} more" if more > 0 else ""
    return f"`{words}` {destroyer.does} {what or 'what no commit has'}."


def _clean(text: str) -> str:
    return str(plain_line(text, _LONGEST))


def _destructive(commands: tuple[SimpleCommand, ...], place: Surroundings) -> Answer | None:
    rule = rules_by_name()["destructive"]
    for one in commands:
        folder = os.path.join(place.cwd_abs, one.cwd, _folder(one.words))
        git = place.repo.git._replace(cwd_abs=folder if os.path.isdir(folder) else place.cwd_abs)
        if what := destroyed(one, git):
            text = plain_line(" ".join(one.words).replace(UNKNOWN, "…"), _LONGEST)
            told = f"gitgates: guard rule `destructive`: `{text}` destroys {what}."
            return Answer(ASK, f"{told}\n{rule.why} {rule.instead}")
    return None


def _folder(words: tuple[str, ...]) -> str:
    is_git = words[:1] and os.path.basename(words[0]) == "git"
    return git_call(list(words[1:])).folder if is_git else ""
