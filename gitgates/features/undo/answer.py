"""Answer a shell command before it runs: ask the person, or refuse it.

The answer follows the rules `lost_work` and `destructive` of `[tool.gitgates.guard]`.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from fnmatch import fnmatchcase

from gitgates.core.clean import first_few, plain_line
from gitgates.core.guarded import rules_by_name, setting_of
from gitgates.core.record import Record
from gitgates.features.undo import table
from gitgates.features.undo.unsavable import Search, call_of, commands_of, threats
from gitgates.shell.options import read_options
from gitgates.shell.repositories import git_call
from gitgates.shell.syntax import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.core.types import Config
    from gitgates.features.undo.unsavable import Surroundings, Threat, Unsavable
    from gitgates.git.repo import Git
    from gitgates.shell.syntax import SimpleCommand

OFF, SAVE, ASK, DENY = _ANSWERS = ("off", "save", "ask", "deny")  # from the mildest
_UNDO = "gitgates undo"
_LONGEST = 120  # characters of a command that are shown
_MOST_SHOWN = 3  # paths
_KIND_OF_STATUS = {b"??": table.UNTRACKED, b"!!": table.IGNORED}
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
    """Return the question about a shell command, or its refusal; None if it may run.

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
    """Return the configured answer, except that what cannot be saved is asked about.

    `saves`: whether save points are taken.
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
    """Return whether a command destroys anything that no commit has."""
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
    kinds = {_KIND_OF_STATUS.get(line[:2], table.TRACKED) for line in lines if line}
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


_MOST_GLOBALS = 2  # operands before a row's words: values of options such as `-n NAMESPACE`
_USUAL = ("main", "master", "trunk")  # names of default branches, if git knows of none


@functools.cache
def data() -> dict[str, Any]:
    """Return the content of `destructive.toml`."""
    import tomllib  # most commands threaten nothing

    with open(os.path.join(os.path.dirname(__file__), "destructive.toml"), "rb") as file:
        return tomllib.load(file)


def destroyed(command: SimpleCommand, git: Git) -> str:
    """Return what a command destroys for good, or changes elsewhere; empty if nothing."""
    words = command.words
    program = os.path.basename(words[0]) if words else ""
    rows = (row for row in data()["command"] if _has_program(row, program))
    return next((row["what"] for row in rows if _matches(row, command, git)), "")


def _has_program(row: Mapping[str, Any], program: str) -> bool:
    return any(fnmatchcase(program, name) for name in row["programs"])


def _matches(row: Mapping[str, Any], command: SimpleCommand, git: Git) -> bool:
    words = command.words[1:]
    if row.get("default_branch"):
        return _forces_default(command, git)
    if any(word in row.get("without", ()) for word in words):
        return False
    plain = [word for word in words if not word.startswith("-")]
    starts = [plain[at:] for at in range(_MOST_GLOBALS + 1)]
    verbs = row.get("words", ())
    if verbs and not any(start[: len(verb)] == verb for verb in verbs for start in starts):
        return False
    if "options" in row and not _has_option(words, row["options"]):
        return False
    texts = (*words, "" if UNKNOWN in command.stdin else command.stdin)
    pattern = row.get("text", "")
    return not pattern or any(re.search(pattern, text, re.MULTILINE) for text in texts)


def _has_option(words: tuple[str, ...], options: list[str]) -> bool:
    pairs = (f"{word} {after}" for word, after in itertools.pairwise(words))
    return not {*words, *pairs}.isdisjoint(options)


def _forces_default(command: SimpleCommand, git: Git) -> bool:
    """Return whether a push replaces or deletes the remote's default branch."""
    call = git_call(list(command.words[1:]))
    options = read_options(call.rest, "o", ("--push-option", "--repo", "--receive-pack"))
    if call.verb != "push" or options.has("-n", "--dry-run"):
        return False
    is_forced, deletes = options.has("-f", "--force"), options.has("-d", "--delete")
    if options.has("--mirror") or (is_forced and options.has("--all", "--branches")):
        return True
    remote, *specs = options.plain or ("origin",)
    names = [] if specs else _current(git) if is_forced else []
    for spec in specs:
        source, colon, goal = spec.removeprefix("+").partition(":")
        if is_forced or deletes or spec.startswith("+") or (colon and not source):
            names += [goal or source] if source != "HEAD" or goal else _current(git)
    goals = {name.removeprefix("refs/heads/") for name in names}
    return not goals.isdisjoint(_default_branches(remote, git))


def _current(git: Git) -> list[str]:
    return [os.fsdecode(git.ask("symbolic-ref", "-q", "--short", "HEAD").stdout).strip()]


def _default_branches(remote: str, git: Git) -> tuple[str, ...]:
    ref = git.ask("symbolic-ref", "-q", "--short", f"refs/remotes/{remote}/HEAD").stdout
    name = os.fsdecode(ref).strip().removeprefix(f"{remote}/")
    return (name,) if name else _USUAL
