"""The guard: refuse tool calls that bypass the gates, before they are made.

It stops a careless agent, not a determined one, which would write a script: docs/how-to/guard.md.
Commands that contain none of the rules' words are not parsed.
"""

from __future__ import annotations

import os

from gitgates.core.policy import POLICIES, Need, functions_of
from gitgates.core.types import BLOCK, WARN, Verdict
from gitgates.drivers.needs import is_guardable
from gitgates.hosts import AGENTS, agent_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gitgates.core.agent_types import Payload
    from gitgates.core.types import Config
    from gitgates.drivers.call import Call
    from gitgates.features.guard.places import Place, Violation

_ANSWERS = ("off", "warn", "ask", "deny")
# Parts of a command that make a rule likely to apply, besides file names.
_WORDS = (
    *("no-veri", "hookspath", "hook.", "git_config", "husky", "lefthook", "overcommit", "skip"),
    *("gitgates=", "gitgates_", "uninstall", "approve", "notes", "update-ref", "core."),
    *("gpg.", "symbolic-ref", "set-head", "remotes/"),
    *("assume-unchanged", "fixup", "remove", "worktree", "which", "command", "bin/gitgates"),
    "-packages/gitgates",
    *AGENTS,
    "@factory/",
    *(row.person_word for row in POLICIES if row.person_word),
)
_DELETED = str.maketrans("", "", "'\"\\")
_JOINTS = str.maketrans(";&|()`\n", " " * 7)
_PATH_ENDS = str.maketrans(";&|()`\n<>=\0", " " * 11)
_MOST_PATHS = 200  # that are checked for links
_LONGEST = 120


def needs(config: Config) -> tuple[Need, ...]:
    """Return the needed events: those before each tool that writes, if anything is guarded."""
    if not is_guardable(config):
        return ()
    return (Need(kind="before-tool", tools=(), tool_kinds=("writes", "shell")),)


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Refuse the tool call, or have the person asked, as the settings of the rule say."""
    kind = call.payload.tool.kind
    violations = (
        _command_violations(call)
        if kind == "shell"
        else _edit_violations(call)
        if kind == "writes"
        else ()
    )
    rated = [
        (_ANSWERS.index(_answer_of(call.config, violation.rule)), violation)
        for violation in violations
    ]
    answer, worst = max(rated, key=lambda rating: rating[0], default=(0, None))
    if not (answer and worst):
        return so_far
    from gitgates.core.clean import plain_line  # most tool calls violate no rule
    from gitgates.core.guarded import rules_by_name

    rule, what = rules_by_name()[worst.rule], plain_line(worst.what, _LONGEST)
    text = f"gitgates: guard rule `{rule.name}`: {what}\n{rule.why} {rule.instead}"
    match _ANSWERS[answer]:
        case "deny":
            return so_far.joined(Verdict(BLOCK, to_agent=text, final=True))
        case "ask":
            return so_far.joined(Verdict(ask=True, to_agent=text))
        case _:
            return so_far.joined(Verdict(WARN, to_agent=text))


def _answer_of(config: Config, rule: str) -> str:
    from gitgates.core.guarded import setting_of  # most tool calls violate no rule

    return str(setting_of(config, rule))


# Edits


def _edit_violations(call: Call) -> Iterable[Violation]:
    from gitgates.drivers.trust import absolute
    from gitgates.features.guard.places import (
        Violation,
        find_places,
        git_settings,
        guarded_places,
        resolved,
    )

    payload, places = call.payload, resolved(guarded_places(call, git_settings(call)))
    for path in payload.tool.paths:
        for place in find_places(absolute(path, payload.cwd_abs), places):
            if place.mention and not _changes_guarded_part(place, payload):
                continue
            if place.rule == "gate_settings" and _has_invalid_config(call):
                continue
            yield Violation(place.rule, path)


def _has_invalid_config(call: Call) -> bool:
    """Return whether the configuration is invalid, so that an edit may repair it."""
    from gitgates.config.load import inspect  # only if its files are edited

    return bool(inspect(call.repo.root_abs)[1])


def _changes_guarded_part(place: Place, payload: Payload) -> bool:
    """Return whether an edit changes the guarded part of a file."""
    if place.rule == "gate_settings":
        return _changes_table(place.path_abs, payload)
    return any(
        place.mention in text for edit in payload.tool.edits for text in (edit.old, edit.new)
    )


def _changes_table(path_abs: str, payload: Payload) -> bool:
    """Return whether an edit changes our table in pyproject.toml, which must stay valid TOML."""
    before = after = _content(path_abs)
    for edit in payload.tool.edits:
        replaced = after.replace(edit.old, edit.new, -1 if edit.everywhere else 1)
        after = edit.new if edit.whole else replaced
    return _has_other_table(before, after)


def _content(path_abs: str) -> str:
    try:
        with open(path_abs, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def _has_other_table(before: str, after: str) -> bool:
    import tomllib  # only if that file is changed

    from gitgates.core.limits import parse_toml

    try:
        current, changed = (parse_toml(text).get("tool", {}) for text in (before, after))
    except tomllib.TOMLDecodeError:
        return False
    return bool(current.get("gitgates") != changed.get("gitgates"))


# Commands


def _command_violations(call: Call) -> Iterable[Violation]:
    from gitgates.drivers.shell_commands import LONGEST
    from gitgates.features.guard.places import (
        Violation,
        git_settings,
        guarded_places,
        resolved,
    )

    text, settings = call.payload.tool.command, git_settings(call)
    if len(text) > LONGEST:
        return (Violation("unreadable", "it is too long"),)
    places = tuple(guarded_places(call, settings))
    if not _may_matter(text, settings, places, call.payload.cwd_abs):
        return ()
    from gitgates.features.guard.rules import Context, find  # most commands do not matter

    has_agent = any(name in text.lower() for name in (*AGENTS, "@factory/"))
    from gitgates.shell.known import alias_of, known_output

    cwd_abs = call.payload.cwd_abs
    context = Context(
        cwd_abs=cwd_abs,
        root_abs=call.repo.root_abs,
        common_dir_abs=call.repo.common_dir_abs,
        places=resolved(places),
        env=call.env,
        output_of=lambda words, cwd: known_output(call.repo, os.path.join(cwd_abs, cwd), words),
        alias=lambda verb: alias_of(call.repo, verb) if "[alias" in settings else "",
        auto_approve_options=_auto_approve_options if has_agent else lambda _program: (),
        changes_table=lambda path, whole: _has_other_table(_content(path), whole),
        runs_without_hooks=_runs_without_hooks,
        person_verbs=lambda: _person_verbs(call),
    )
    return find(text, context)


def _person_verbs(call: Call) -> list[tuple[str, ...]]:
    """Return the verbs that are reserved for a person, as the policies declare them."""
    verbs_of = functions_of(call.config, "person_verbs", call.kind)
    return [("approve",), *(verb for of_policy in verbs_of for verb in of_policy(call))]


def _may_matter(text: str, settings: str, places: Iterable[Place], cwd_abs: str) -> bool:
    """Return whether a command, or a git alias, contains any of the rules' words."""
    raw = text
    text = text.replace("\\\n", "").translate(_DELETED).lower()
    if "git" in text:
        text = f"{text} {settings.partition('[alias')[2]}"
    if any(word in text for word in _WORDS):
        return True
    from gitgates.features.guard.places import WRITERS

    words = text.translate(_JOINTS).split()
    options = [word for word in words if word[0] == "-" != word[1:2]]
    if ("commit" in text or "am" in words) and any("n" in option for option in options):
        return True
    writes = ">" in text or any(word.rpartition("/")[2] in WRITERS for word in words)
    if not writes:
        return False
    return any(name in text for name in _names(places)) or _follows_link(raw, cwd_abs)


def _follows_link(text: str, cwd_abs: str) -> bool:
    """Return whether a path in a command leads through a link, or the folder is in a `.git`."""
    folder = os.path.realpath(cwd_abs)
    if "/.git/" in f"{folder}/":
        return True
    words = text.translate(_DELETED).translate(_PATH_ENDS).split()
    paths = (os.path.normpath(os.path.join(folder, word)) for word in words[:_MOST_PATHS])
    return any("\0" not in path and os.path.realpath(path) != path for path in paths)


def _names(places: Iterable[Place]) -> set[str]:
    """Return the names of guarded paths and the repository, and what may expand to one."""
    paths = [place.path_abs.lower().split("/") for place in places]
    hidden = {name for path in paths for name in path if name.startswith(".")}
    roots = {path[-2] for path in paths if path[-1] == ".git"}
    return {"*", "?", "$pwd", "rev-parse", *hidden, *roots, *(path[-1] for path in paths)}


def _auto_approve_options(program: str) -> tuple[str, ...]:
    """Return the options that stop an agent, by program or package, asking for permission."""
    for name in AGENTS:
        host = agent_host(name)
        if program in host.PROGRAMS:
            return host.AUTO_APPROVE_OPTIONS
    return ()


def _runs_without_hooks(program: str, words: list[str], env: Mapping[str, str]) -> bool:
    return program in AGENTS and agent_host(program).runs_without_hooks(words, env)
