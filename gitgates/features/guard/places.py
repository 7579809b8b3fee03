"""The files and folders that an agent must not change, and whether a path is one of them."""

from __future__ import annotations

import os

from gitgates.config import BASELINE_FILE, FILES, PYPROJECT
from gitgates.core.policy import functions_of
from gitgates.core.record import Record
from gitgates.hosts import DEFAULT_AGENT, agent_host, project_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gitgates.drivers.call import Call
    from gitgates.shell.syntax import SimpleCommand

# Programs that change all their operands, the last one only, or all with a certain option.
_REMOVERS = ("rm", "rmdir", "shred", "unlink")
_CHANGERS = ("chattr", "chmod", "chown", "patch", "setfacl", "sponge", "tee", "touch", "truncate")
_COPIERS = ("cp", "install", "ln", "mv", "rsync", "scp")
_IN_PLACE = ("gsed", "perl", "ruby", "sed", "yq")
# They write the file that an option names, or one named like the URL.
_FETCHERS = ("curl", "wget")
_EXCLUDING = ("--exclude", "--exclude-from", "--include")  # for rsync: a pattern follows
_GIT_VERBS = {"rm": "rm", "mv": "mv", "checkout": "touch", "restore": "touch"}
_FRAMEWORK_FILES = (".pre-commit-config.yaml", ".pre-commit-config.yml")


# All of these programs, by their names in a command.
WRITERS = (
    *_REMOVERS,
    *_CHANGERS,
    *_COPIERS,
    *_IN_PLACE,
    *_FETCHERS,
    "dd",
    "find",
    "restore",
    "checkout",
)


class Violation(Record):
    """What a command does against a rule."""

    rule: str
    what: str


class Place(Record):
    """A guarded file, or a folder and everything in it."""

    path_abs: str
    rule: str
    is_folder: bool = False
    mention: str = ""  # writing is guarded only if the change contains this; removing, always
    forms: frozenset[str] = frozenset()  # all forms of the path, which `resolved` adds


def guarded_places(call: Call, settings: str) -> Iterator[Place]:
    """Return a repository's guarded places, and those of the agent that works in it.

    `settings`: the text of git's settings.
    """
    repo, config = call.repo, call.config
    root, git, common = repo.root_abs, repo.git_dir_abs, repo.common_dir_abs
    for path in (f"{root}/.git", git, common, f"{common}/config", f"{git}/config.worktree"):
        yield Place(path, "git_folder")
    yield Place(f"{common}/hooks", "hooks_folder", is_folder=True)
    yield Place(f"{common}/refs/remotes", "signers", is_folder=True)
    yield Place(f"{common}/packed-refs", "signers")
    if "hookspath" in settings:
        hooks_path = repo.git.configured("rev-parse", "--git-path", "hooks").stdout
        path = os.path.join(root, os.fsdecode(hooks_path).rstrip("\n"))
        yield Place(path, "hooks_folder", is_folder=True)
    for name in dict.fromkeys((*FILES, *config.sources, BASELINE_FILE, *_FRAMEWORK_FILES)):
        mention = "gitgates" if os.path.basename(name) == PYPROJECT else ""
        yield Place(f"{root}/{name}", "gate_settings", mention=mention)
    for files_of in functions_of(config, "guarded_files", call.kind):
        for rule, path_abs in files_of(call):
            yield Place(path_abs, rule)
    for path in dict.fromkeys((f"{git}/gitgates", f"{common}/gitgates")):
        yield Place(path, "state_folder", is_folder=True)
    yield Place(f"{common}/info/exclude", "git_exclude")
    yield from _places_of_agent(call)


def _places_of_agent(call: Call) -> Iterator[Place]:
    root, env = call.repo.root_abs, call.env
    host = agent_host(call.payload.host or DEFAULT_AGENT)
    for folder in dict.fromkeys((root, call.payload.project_abs or root)):
        mentions = dict.fromkeys(host.settings_files(folder, env).values(), "")
        mentions |= dict.fromkeys(host.switch_files(folder, env), host.OFF.mention)
        for path, mention in mentions.items():
            yield Place(path, "agent_settings", mention=mention)
    for name, file in project_settings().items():
        if os.path.lexists(f"{root}/{file}"):  # for other agents, existing files only
            for path in (file, *agent_host(name).OFF.files):
                yield Place(f"{root}/{path}", "agent_settings")


def _own_git_files(call: Call) -> tuple[str, str]:
    """Return the paths of a person's own git configuration."""
    # Like git, take a relative HOME or XDG_CONFIG_HOME from the current folder.
    home = os.path.join(call.payload.cwd_abs, call.env.get("HOME", ""))
    config_home = call.env.get("XDG_CONFIG_HOME") or f"{home}/.config"
    config_home = os.path.join(call.payload.cwd_abs, config_home)
    return f"{home}/.gitconfig", f"{config_home}/git/config"


def git_settings(call: Call) -> str:
    """Return git's settings as lower-case text, without included files and the system's."""
    repo = call.repo
    files = (f"{repo.common_dir_abs}/config", f"{repo.git_dir_abs}/config.worktree")
    text = b""
    for path in (*files, *_own_git_files(call)):
        try:
            with open(path, "rb", buffering=0) as file:
                text += file.read() + b"\n"
        except OSError:
            continue
    return text.decode("utf-8", "replace").lower()


def find_places(
    path_abs: str, places: Iterable[Place], *, removes: bool = False, is_pattern: bool = False
) -> Iterator[Place]:
    """Find the guarded places that a path names or lies in or, if it is removed, contains.

    `places` must be resolved.
    """
    goals = [form.rstrip("/").split("/") for form in _forms(path_abs)]
    for place in places:
        if is_pattern and not os.path.lexists(place.path_abs):
            continue
        for form in (path.split("/") for path in place.forms):
            for goal in goals:
                depth = len(goal) - len(form)  # positive: in the place; negative: around it
                reaches = place.is_folder if depth > 0 else removes or not depth
                if reaches and _is_prefix(goal, form, is_pattern=is_pattern):
                    yield place


def _is_prefix(goal: list[str], form: list[str], *, is_pattern: bool) -> bool:
    """Return whether one path is a prefix of the other; the first may be a pattern."""
    pairs = tuple(zip(goal, form, strict=False))
    if not is_pattern:
        return all(name == other for name, other in pairs)
    from fnmatch import fnmatchcase  # rarely needed

    # In a shell, only a pattern with a leading dot matches hidden files.
    return all(
        fnmatchcase(name, pattern) and (pattern[:1] == "." or name[:1] != ".")
        for pattern, name in pairs
    )


def resolved(places: Iterable[Place]) -> tuple[Place, ...]:
    """Return places with all forms of their paths, which costs system calls for each."""
    return tuple(place._replace(forms=_forms(place.path_abs)) for place in places)


def _forms(path: str) -> frozenset[str]:
    """Return a path as given, with its folder resolved, and fully resolved; all case-folded."""
    folder, name = os.path.split(os.path.normpath(path))
    real = os.path.realpath(path), os.path.join(os.path.realpath(folder), name)
    return frozenset(form.casefold() for form in (os.path.normpath(path), *real))


def touched(words: list[str], command: SimpleCommand) -> Iterator[tuple[str, bool]]:
    """Yield the paths that a command writes or removes, and whether it removes."""
    for path in command.writes:
        yield path, False
    program, *rest = _as_program(words[1:]) if words[:1] == ["git"] else words or [""]
    pairs = zip(["", *rest], rest, strict=False)
    plain = [word for last, word in pairs if word[:1] != "-" and last not in _EXCLUDING]
    if program == "find":
        from gitgates.shell.options import spared_by_find  # not needed for edits

        plain = [word for word in plain if word not in spared_by_find(rest)]
    if program in _REMOVERS or (program == "find" and "-delete" in rest):
        yield from ((path, program != "find") for path in plain)
        yield from ((path, False) for path in command.fed)
    elif program in _CHANGERS or (program in _IN_PLACE and any(map(_is_in_place, rest))):
        yield from ((path, False) for path in (*plain, *command.fed))
    elif program in _COPIERS and plain:
        sources, goal = plain[:-1], plain[-1]
        for at, word in enumerate(rest[:-1]):
            if word in ("-t", "--target-directory"):
                sources, goal = [path for path in plain if path != rest[at + 1]], rest[at + 1]
        yield goal, False
        yield from ((os.path.join(goal, os.path.basename(path)), False) for path in sources)
        yield from ((path, True) for path in sources if program == "mv")
        yield from ((path, False) for path in command.fed if program == "mv")
    elif program in _FETCHERS:
        values = (word.partition("=")[2] for word in rest if word.startswith("--"))
        named = (os.path.basename(word) if "://" in word else word for word in plain)
        yield from ((path, False) for path in (*values, *named))
    elif program == "dd":
        yield from ((word[len("of=") :], False) for word in rest if word.startswith("of="))


def linked(words: list[str]) -> Iterator[str]:
    """Yield the targets of the links that a command makes, relative to its folder."""
    if words[:1] != ["ln"]:
        return
    plain = [word for word in words[1:] if not word.startswith("-")]
    goal = plain[-1] if len(plain) > 1 else ""
    for path in plain[:-1] or plain:
        # A symbolic link's target is relative to the link; the operand may be a folder.
        yield from (os.path.join(folder, path) for folder in ("", os.path.dirname(goal), goal))


def _as_program(words: list[str]) -> list[str]:
    """Return a git command that changes files as the equivalent program and its operands."""
    from gitgates.shell.repositories import git_call  # not needed for edits

    call = git_call(words)
    paths = (
        word if word.startswith("-") else os.path.join(call.folder, word) for word in call.rest
    )
    return [_GIT_VERBS.get(call.verb, ""), *paths]


def _is_in_place(word: str) -> bool:
    is_short = word.startswith("-") and not word.startswith("--")
    return word.startswith("--in-place") or (is_short and "i" in word.partition("e")[0])
