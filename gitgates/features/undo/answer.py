"""The answer to a shell command before it runs: save a point, ask the person, or refuse.

It follows the rules `lost_work` and `destructive` of `[tool.gitgates.guard]`.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from gitgates.core.clean import plain_line
from gitgates.core.guarded import rules_by_name, setting_of
from gitgates.core.record import Record
from gitgates.features.undo.destructive import destroyed
from gitgates.features.undo.losses import (
    UNLIMITED,
    Loss,
    Situation,
    commands_of,
    find_losses,
)
from gitgates.features.undo.relevant import may_matter
from gitgates.shell.known import known_output
from gitgates.shell.repositories import git_call
from gitgates.shell.syntax import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from gitgates.core.types import Config
    from gitgates.git.repo import Repo

OFF, SAVE, ASK, DENY = _ANSWERS = ("off", "save", "ask", "deny")  # from the mildest
_UNDO = "gitgates undo"
_LONGEST = 120  # characters of a command that are shown
_MOST_SHOWN = 3  # paths


class Answer(Record):
    """What to do about a command before it runs."""

    action: str  # save, ask, deny
    text: str = ""  # for agent and person; empty: only the session's own work is at stake
    losses: tuple[Loss, ...] = ()
    roots_abs: tuple[str, ...] = ()  # of the worktrees whose files, or refs, are to be saved


def situation_of(repo: Repo, config: Config, cwd_abs: str, env: Mapping[str, str]) -> Situation:
    """Return what is known where a command is about to run, and what save points hold."""
    table = config.tables.get("undo", {})
    return Situation(
        cwd_abs=cwd_abs,
        repo=repo,
        env=env,
        max_file_bytes=table.get("max_file_bytes", UNLIMITED),
        output_of=lambda words, cwd: known_output(repo, os.path.join(cwd_abs, cwd), words),
    )


def answer(
    command: str,
    situation: Situation,
    config: Config,
    is_own: Callable[[str], bool] = lambda _path: False,
) -> Answer | None:
    """Return what to do before a shell command runs; None if nothing is at stake.

    `is_own`: whether a file, from the root of the worktree, is this session's own work.

    Raises: GitError where git does not exist.
    """
    if not may_matter(command, config):
        return None
    if setting_of(config, "destructive") == ASK and (found := _destructive(command, situation)):
        return found
    setting = setting_of(config, "lost_work")
    if setting == OFF:
        return None
    saves = config.tables.get("undo", {}).get("enabled", True)
    rated = [
        (action, loss)
        for loss in find_losses(command, situation)
        if (action := _action(loss, setting, saves=saves)) != OFF
    ]
    return _joined(rated, is_own, saves=saves)


def _action(loss: Loss, setting: Any, *, saves: bool) -> str:  # noqa: ANN401 - a word, or pairs of patterns
    """Return the answer to one loss: as configured, but what cannot be saved is asked about.

    `saves`: save points are taken at all.
    """
    chosen = setting if isinstance(setting, str) else _by_pattern(loss.words, setting)
    if chosen != SAVE:
        return str(chosen)
    return (ASK if loss.unsavable else SAVE) if saves else OFF


def _by_pattern(words: tuple[str, ...], pairs: Any) -> str:  # noqa: ANN401 - or lists, from JSON
    text = " ".join(words).replace(UNKNOWN, "")
    chosen = SAVE
    for pattern, action in pairs:
        # `git clean *` means `git clean` as well.
        if fnmatchcase(text, pattern) or fnmatchcase(f"{text} ", pattern):
            chosen = action
    return chosen


def _joined(
    rated: list[tuple[str, Loss]], is_own: Callable[[str], bool], *, saves: bool
) -> Answer | None:
    if not rated:
        return None
    action = max((action for action, _ in rated), key=_ANSWERS.index)
    losses = tuple(loss for _, loss in rated)
    told = [loss for one, loss in rated if one == action and not (saves and _is_own(loss, is_own))]
    roots = tuple(dict.fromkeys(loss.root_abs for loss in losses if loss.root_abs))
    if not told:  # an agent may do with its own as it likes: it comes back
        return Answer(SAVE, losses=losses, roots_abs=roots)
    text = saved_text(told) if action == SAVE else _guarded_text(told, action, saves=saves)
    return Answer(action, text, losses, roots)


def _is_own(loss: Loss, is_own: Callable[[str], bool]) -> bool:
    return bool(loss.paths) and not loss.unsavable and all(map(is_own, loss.paths))


def saved_text(losses: list[Loss], undo: str = _UNDO) -> str:
    """Return the line on what a command destroys, all of which is saved."""
    return f"gitgates: {_sentence(losses)} It was saved first; to get it back: {undo}"


def _guarded_text(losses: list[Loss], action: str, *, saves: bool) -> str:
    rule = rules_by_name()["lost_work"]
    reasons = dict.fromkeys(
        (one.why, one.path) for loss in losses for one in loss.unsavable[:_MOST_SHOWN]
    )
    shown = [f"{_clean(path)}: {why}." for why, path in reasons][:_MOST_SHOWN]
    if shown:
        how = f"It cannot be saved first. {' '.join(shown)}"
    else:
        back = f"; to get it back afterwards: {_UNDO}" if saves and action == ASK else ""
        how = f"{rule.why} The configuration says `{action}`{back}."
    return f"gitgates: guard rule `lost_work`: {_sentence(losses)}\n{how} {rule.instead}"


def _sentence(losses: list[Loss]) -> str:
    """Return what commands destroy, for a person."""
    return " ".join(dict.fromkeys(map(_of_loss, losses)))


def _of_loss(loss: Loss) -> str:
    words = " ".join(loss.words).replace(UNKNOWN, "…")
    return f"`{plain_line(words, _LONGEST)}` {loss.does} {_clean(loss.what)}{_listed(loss)}."


def _listed(loss: Loss) -> str:
    if loss.scope != "files" and not loss.paths:
        return ""
    paths = [_clean(path) for path in loss.paths if path != loss.what]
    more = len(paths) - _MOST_SHOWN
    text = ", ".join(paths[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f": {text}" if text else ""


def _clean(text: str) -> str:
    return str(plain_line(text, _LONGEST))


def _destructive(command: str, situation: Situation) -> Answer | None:
    rule = rules_by_name()["destructive"]
    for one in commands_of(command, situation):
        folder = os.path.join(situation.cwd_abs, one.cwd, _folder(one.words))
        git = situation.repo.git._replace(
            cwd_abs=folder if os.path.isdir(folder) else situation.cwd_abs
        )
        if what := destroyed(one, git):
            text = plain_line(" ".join(one.words).replace(UNKNOWN, "…"), _LONGEST)
            told = f"gitgates: guard rule `destructive`: `{text}` destroys {what}."
            return Answer(ASK, f"{told}\n{rule.why} {rule.instead}")
    return None


def _folder(words: tuple[str, ...]) -> str:
    is_git = words[:1] and os.path.basename(words[0]) == "git"
    return git_call(list(words[1:])).folder if is_git else ""
