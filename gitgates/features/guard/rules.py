"""What the guard looks for in a command, as pure functions of its words and the known paths.

Each violation names a rule of `[tool.gitgates.guard]` and the words that violate it. The unknown
part of a path is assumed to be the agent's current folder.
"""

from __future__ import annotations

import os
import time
from itertools import pairwise

from gitgates.core.record import Record
from gitgates.features.guard.places import Place, Violation, find_places, linked, touched
from gitgates.shell.known import TEMPORARY
from gitgates.shell.repositories import GitCall, Repositories, git_call
from gitgates.shell.syntax import NO_TIME, UNKNOWN, SimpleCommand, printed, read_command_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

# Git settings, in lower case → rule.
_SETTINGS = {
    "core.hookspath": "hooks_path",
    "core.worktree": "git_folder",
    "core.bare": "git_folder",
    "core.excludesfile": "git_exclude",
    "gpg.ssh.allowedsignersfile": "signers",
    "gpg.ssh.program": "signers",
    "gpg.ssh.revocationfile": "signers",
}
_HOOK = "hook."  # the prefix of settings that define hooks
# Variables that switch hooks off → the values that do; (): any value that is not empty.
_VARIABLES = {
    "GITGATES": ("0",),
    "GITGATES_SKIP": (),
    "HUSKY": ("0",),
    "HUSKY_SKIP_HOOKS": (),
    "LEFTHOOK": ("0", "false"),
    "LEFTHOOK_EXCLUDE": (),
    "OVERCOMMIT_DISABLE": (),
    "PREK_SKIP": (),
    "SKIP": (),
    "SKIP_SIMPLE_GIT_HOOKS": (),
}
# They select the advice to run: with another name, an agent would avoid its own.
_IDENTITY = ("GITGATES_RIG", "GITGATES_ROLE", "GITGATES_AGENT")
# A variable that other programs use, too; and the programs that run hooks.
_SHARED_NAME, _HOOK_RUNNERS = "SKIP", ("git", "gitgates", "pre-commit", "prek")
_CONFIG_FILES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
_UNINSTALLS = {
    "gitgates": "uninstall-hooks",
    **dict.fromkeys(("husky", "lefthook", "overcommit", "pre-commit", "prek"), "uninstall"),
}
_INSTALLERS = ("pip", "pipx", "uv", "poetry", "pdm", "rye", "pixi", "conda", "mamba", "pipenv")
_REMOVING = {"uninstall", "remove", "uninject"}
_OUR_PROGRAM = ("bin/gitgates", "site-packages/gitgates")
_TOKEN = "--token"  # approval.py checks it
_EVIDENCE = ("refs/notes/gitgates", "notes/gitgates", "gitgates")
_NOTES_WRITING = {"add", "append", "copy", "edit", "merge", "prune", "remove"}
_HIDING = ("--skip-worktree", "--assume-unchanged")
_READING = ("--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l")
_CONFIG_VERBS = ("set", "unset", "edit", "remove-section", "rename-section")
_CONFIG_WITH_VALUE = ("-f", "--file", "--type", "--default", "--comment", "--value", "--url")
_CONFIG_WRITING = ("--add", "--unset", "--unset-all", "--replace-all", "--remove-section")
_LONGEST_S = 2.0  # for checking one command line


class Context(Record):
    """What is known about the place in which a command runs."""

    cwd_abs: str
    root_abs: str = ""  # the worktree's; empty: unknown
    common_dir_abs: str = ""  # the repository's; empty: every command applies to it
    places: tuple[Place, ...] = ()
    env: Mapping[str, str] = {}
    output_of: Callable[[tuple[str, ...], str], str] = lambda _words, _cwd: UNKNOWN
    alias: Callable[[str], str] = lambda _name: ""  # git's
    # our verbs, with arguments, that are reserved for a person
    person_verbs: Callable[[], Sequence[tuple[str, ...]]] = tuple
    # a program that starts an agent → the options that stop it asking for permission
    auto_approve_options: Callable[[str], tuple[str, ...]] = lambda _program: ()
    # whether these words and variables start an agent without its hooks
    runs_without_hooks: Callable[[str, list[str], Mapping[str, str]], bool] = lambda *_command: (
        False
    )
    # a file's path and new text → whether our settings in it change
    changes_table: Callable[[str, str], bool] = lambda _path, _text: True


def find(text: str, context: Context) -> Iterator[Violation]:
    """Find the rules that a command line violates."""
    until = time.monotonic() + _LONGEST_S
    line = read_command_line(
        text,
        {**context.env, "PWD": context.cwd_abs},
        context.output_of,
        is_folder=lambda path: (
            path.startswith(TEMPORARY) or os.path.isdir(os.path.join(context.cwd_abs, path))
        ),
        alias_of=context.alias,
    )
    trouble = line.trouble
    repositories = Repositories(context.cwd_abs, context.common_dir_abs, UNKNOWN)
    for command in line.commands:
        yield from _command_violations(command, context, repositories)
        if time.monotonic() > until:
            trouble = NO_TIME
            break
    if trouble:
        yield Violation("unreadable", trouble)


def _command_violations(
    command: SimpleCommand, context: Context, repositories: Repositories
) -> Iterator[Violation]:
    violations = [
        *_word_violations(command, context, repositories),
        *_path_violations(command, context),
    ]
    if command.fallback:  # the command may run in that folder instead
        fallback = command._replace(cwd=command.fallback)
        violations += [
            *_word_violations(fallback, context, repositories),
            *_path_violations(fallback, context),
        ]
    yield from violations
    if command.words[:1] == ("git",):
        repositories.note(command.cwd, list(command.words[1:]), command.env)


def _word_violations(
    command: SimpleCommand, context: Context, repositories: Repositories
) -> Iterator[Violation]:
    words = _plain_program(command.words)
    program = words[0] if words else ""
    is_git = program == "git"
    is_ours = repositories.is_ours(command.cwd, words[1:] if is_git else [], command.env)
    # Outside a repository git does nothing; another program may enter a repository.
    is_meant = bool(is_ours) if is_git else is_ours is not False
    if is_meant:
        for rule, what in _env_violations({**command.env, **_exported(words)}, program, context):
            yield Violation(rule, what)
    text = " ".join(words).replace(UNKNOWN, "…")
    for rule in _rules_for_words(words, command, context) if words else ():
        if is_meant or rule == "nested_agent" or (is_git and _changes_global_settings(words)):
            yield Violation(rule, text)
    if words and context.runs_without_hooks(words[0], words[1:], command.env):
        yield Violation("agent_settings", text)


def _exported(words: list[str]) -> dict[str, str]:
    """Return the variables that a command sets for all later commands, also on later lines."""
    program, *rest = words or [""]
    options = "".join(word for word in rest if word.startswith("-"))
    if program == "export":
        is_set = "n" not in options and "p" not in options
    else:
        is_set = program in ("declare", "typeset") and "x" in options
    pairs = (word.partition("=") for word in rest if is_set and not word.startswith("-"))
    return {name: value for name, equals, value in pairs if equals}


def _changes_global_settings(words: list[str]) -> bool:
    """Return whether a git command changes settings that apply to every repository."""
    return "config" in words and not {"--global", "--system"}.isdisjoint(words)


def _path_violations(command: SimpleCommand, context: Context) -> Iterator[Violation]:
    words = _plain_program(command.words)
    for path, removes in touched(words, command):
        if any(place in path for place in _OUR_PROGRAM):
            yield Violation("uninstall", path)
        for place in _places(os.path.join(command.cwd, path), context, removes=removes):
            if removes or _changes(place, path, command, context):
                yield Violation(place.rule, path.replace(UNKNOWN, "…"))
    for path in linked(words):
        for place in _places(os.path.join(command.cwd, path), context, removes=False):
            if place.is_folder or place.path_abs.endswith("/.git"):
                yield Violation(place.rule, path.replace(UNKNOWN, "…"))


def _changes(place: Place, path: str, command: SimpleCommand, context: Context) -> bool:
    """Return whether a command that writes a file changes its guarded part."""
    is_table = place.rule == "gate_settings" and place.mention
    text = _whole_text(command, path) if is_table else None
    if text is not None:
        return context.changes_table(place.path_abs, text)
    words = (*(word for word in command.words if word != path), command.stdin)
    return any(place.mention in word for word in words)


def _whole_text(command: SimpleCommand, path: str) -> str | None:
    """Return a file's whole new text; None if it is unknown."""
    text = printed(command) if path in command.replaces else None
    if command.words[:1] == ("tee",) and command.words[1:] == (path,):
        text = command.stdin
    return None if text is None or UNKNOWN in text else text


def _plain_program(words: tuple[str, ...]) -> list[str]:
    """Return words with the program's bare name; for `python -m NAME`, that of the module."""
    if not words:
        return []
    program, rest = os.path.basename(words[0]), list(words[1:])
    if program.startswith("python") and "-m" in rest[:-1]:
        at = rest.index("-m")
        return [rest[at + 1].replace("_", "-"), *rest[at + 2 :]]
    return [program, *rest]


def _env_violations(
    env: Mapping[str, str], program: str, context: Context
) -> Iterator[tuple[str, str]]:
    for name, value in env.items():
        assignment = f"{name}={value}".replace(UNKNOWN, "…")
        if program and _is_guarded_variable(name, value, program, context):
            yield "skip_variables", assignment
        elif name.startswith("GIT_CONFIG_KEY_"):
            key, number = value, name.removeprefix("GIT_CONFIG_KEY_")
            for rule in _setting_rules(key, env.get(f"GIT_CONFIG_VALUE_{number}", ""), context):
                yield rule, assignment
        elif name == "GIT_CONFIG_PARAMETERS":
            for key, rule in {**_SETTINGS, _HOOK: "hooks_path"}.items():
                if key in value.lower():
                    yield rule, assignment
        elif name in _CONFIG_FILES and value not in ("", os.devnull):
            yield "hooks_path", assignment


def _is_guarded_variable(name: str, value: str, program: str, context: Context) -> bool:
    """Return whether a variable switches hooks off, or changes the agent's identity."""
    if name in _IDENTITY:
        return value != context.env.get(name, "")
    disabling = _VARIABLES.get(name)
    if disabling is None or (name == _SHARED_NAME and program not in _HOOK_RUNNERS):
        return False
    return bool(value) and (not disabling or value in disabling)


def _rules_for_words(words: list[str], command: SimpleCommand, context: Context) -> Iterator[str]:
    """Yield the rules that a command's words violate, apart from those about paths."""
    program, *rest = words
    plain = tuple(word for word in rest if not word.startswith("-"))
    if program == "git":
        yield from _git_rules(rest, command, context)
    elif "--help" in rest:
        return
    elif plain[:1] == (_UNINSTALLS.get(program),) or _uninstalls(program, rest, plain):
        yield "uninstall"
    elif program == "gitgates":
        has_token = any(word.partition("=")[0] == _TOKEN for word in rest)
        if not has_token and any(plain[: len(verb)] == verb for verb in context.person_verbs()):
            yield "person_verbs"
    elif options := (
        context.auto_approve_options(program)
        or context.auto_approve_options(_package(command.words[0]))
    ):
        values = (word.partition("=")[2].strip("'\"") for word in rest)
        pairs = (f"{name}={value}" for name, value in pairwise(rest) if name.startswith("-"))
        if not {*rest, *values, *pairs}.isdisjoint(options):
            yield "nested_agent"


def _uninstalls(program: str, words: list[str], plain: tuple[str, ...]) -> bool:
    """Return whether a command uninstalls gitgates, or overcommit's hooks."""
    if program == "overcommit":
        return "--uninstall" in words or "-u" in words
    is_named = any(_package(word).partition("[")[0] == "gitgates" for word in plain)
    removes = not _REMOVING.isdisjoint(plain) and program.rstrip("0123456789.") in _INSTALLERS
    return is_named and removes


def _package(word: str) -> str:
    """Return a package's name without its version."""
    name, _, _version = word[1:].partition("@")
    return f"{word[:1]}{name}".partition("==")[0]


def _git_rules(words: list[str], command: SimpleCommand, context: Context) -> Iterator[str]:
    call = git_call(words)
    for setting in call.settings:
        key, _, value = setting.partition("=")
        yield from _setting_rules(key, value, context)
    verb, rest = call.verb, list(call.rest)
    if skips_hooks(verb, rest):
        yield "no_verify"
    elif verb == "config":
        yield from _git_config_rules(rest, context)
    elif verb == "update-index" and any(word in _HIDING for word in rest):
        yield "hidden_files"
    elif verb == "worktree" and _ends_worktree(call, command.cwd, context):
        yield "worktree"
    elif _writes_evidence(verb, rest):
        yield "state_folder"
    elif _sets_remote_ref(verb, rest):
        yield "signers"


def _ends_worktree(call: GitCall, cwd: str, context: Context) -> bool:
    """Return whether a command removes or moves the worktree that the session is in.

    Git also accepts the last components of its path. Source: git-worktree(1).
    """
    verb, path, *_ = (*(word for word in call.rest if not word.startswith("-")), "", "")
    if verb not in ("remove", "move") or not (path and context.root_abs):
        return False
    whole, root_abs = os.path.join(context.cwd_abs, cwd, call.folder, path), context.root_abs
    is_it = UNKNOWN in whole or os.path.realpath(whole) == os.path.realpath(root_abs)
    return is_it or f"{root_abs}/".endswith(f"/{path.strip('/')}/")


def _writes_evidence(verb: str, words: list[str]) -> bool:
    """Return whether a git command writes the notes that say which gates a commit passed."""
    if verb == "update-ref":
        return _EVIDENCE[0] in words
    is_written = verb == "notes" and not _NOTES_WRITING.isdisjoint(words)
    return is_written and any(
        f"--ref={name}" in words or ("--ref", name) in pairwise(words) for name in _EVIDENCE
    )


def _sets_remote_ref(verb: str, words: list[str]) -> bool:
    """Return whether a git command sets remote-tracking refs, which say who is trusted."""
    pairs = zip(["", *words], words, strict=False)
    plain = [word for before, word in pairs if word[:1] != "-" and before != "-m"]
    if verb == "remote":
        return plain[:1] == ["set-head"]
    if verb in ("fetch", "pull", "push"):
        return any(_renames_remote_branch(refspec, plain) for refspec in plain)
    is_written = verb == "update-ref" or (verb == "symbolic-ref" and len(plain) > 1)
    return is_written and any(word.startswith("refs/remotes/") for word in plain[:1])


def _renames_remote_branch(refspec: str, words: list[str]) -> bool:
    """Return whether a refspec writes a remote-tracking ref under another branch's name."""
    source, _colon, target = refspec.removeprefix("+").partition(":")
    ref, name = f"refs/{target.removeprefix('refs/')}", source.removeprefix("refs/heads/")
    own = (f"refs/remotes/{remote}/{name}" for remote in words)
    return ref.startswith("refs/remotes/") and ref not in own


def _alias_rules(text: str, context: Context) -> Iterator[str]:
    """Yield the rules that an alias would violate, no matter where it is used."""
    everywhere = Repositories(context.cwd_abs, "", UNKNOWN)
    for command in read_command_line(text[1:] if text[:1] == "!" else f"git {text}").commands:
        yield from (
            violation.rule for violation in _command_violations(command, context, everywhere)
        )


def _git_config_rules(words: list[str], context: Context) -> Iterator[str]:
    options: list[str] = []
    plain: list[str] = []
    while words:
        word, *words = words
        (options if word.startswith("-") else plain).append(word)
        words = words[1:] if word in _CONFIG_WITH_VALUE else words
    writes = any(word in _CONFIG_WRITING for word in options)
    if plain[:1] and plain[0] in _CONFIG_VERBS:
        plain, writes = plain[1:], True
    is_read = any(word in _READING for word in options) or plain[:1] in (["get"], ["list"])
    if plain and not is_read and (writes or len(plain) > 1):
        yield from _setting_rules(plain[0], " ".join(plain[1:]), context)


def _setting_rules(key: str, value: str, context: Context) -> Iterator[str]:
    key = key.lower()
    if key.startswith("alias."):
        yield from _alias_rules(value, context)
    if f"{key}.".startswith(_HOOK):
        yield "hooks_path"
    # `git config --remove-section` names the section only.
    yield from dict.fromkeys(
        rule for name, rule in _SETTINGS.items() if key in (name, name.rpartition(".")[0])
    )


def _places(path: str, context: Context, *, removes: bool) -> Iterator[Place]:
    # A shell drops NUL, which no path may contain.
    whole = os.path.join(context.cwd_abs, path.replace(UNKNOWN, ".").replace("\0", ""))
    if UNKNOWN in path:  # it may differ from the existing path
        return find_places(whole, context.places)
    is_pattern = not {*"*?["}.isdisjoint(path)
    return find_places(whole, context.places, removes=removes, is_pattern=is_pattern)


# Git commands that run hooks → letters that mean --no-verify, and letters that take a value.
_VERIFYING = {
    "commit": ("n", "mFCct"),
    "am": ("n", ""),
    "merge": ("", "mFsX"),
    "pull": ("", "sX"),
    "push": ("", "o"),
    "rebase": ("", "sXx"),
}
_NO_VERIFY, _SHORTEST = "--no-verify", len("--no-veri")  # shorter ones may mean --no-verbose
_OPTIONAL = "uS"  # letters with an optional value, which is in the same word
_LONG_WITH_VALUE = (
    *("--message", "--file", "--author", "--date", "--reuse-message", "--reedit-message"),
    *("--template", "--trailer", "--fixup", "--squash", "--cleanup", "--strategy", "--exec"),
    *("--strategy-option", "--push-option", "--receive-pack", "--repo", "--pathspec-from-file"),
)


def skips_hooks(verb: str, words: list[str]) -> bool:
    """Return whether a git command disables hooks; `words` follow its verb."""
    if verb == "history":  # it runs no hooks, and `fixup` commits what is staged
        return "fixup" in words[:1] and "--dry-run" not in words
    if verb not in _VERIFYING:
        return False
    letters, valued = _VERIFYING[verb]
    while words and words[0] != "--":
        word, *words = words
        if word.startswith("--"):
            if len(word) >= _SHORTEST and _NO_VERIFY.startswith(word):
                return True
            words = words[1:] if word in _LONG_WITH_VALUE else words
        elif word.startswith("-"):
            until = next(
                (at for at, letter in enumerate(word) if letter in valued + _OPTIONAL), len(word)
            )
            if any(letter in word[:until] for letter in letters):
                return True
            is_last = until == len(word) - 1 and word[until] in valued
            words = words[1:] if is_last else words
    return False
