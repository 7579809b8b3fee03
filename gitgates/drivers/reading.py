"""Whether a shell command only reads: pipelines, loops and scripts of programs that write nothing.

What is not known to read counts as writing: then a save point is taken once too often. Programs are
known by their names: one that somebody has put in its place is not detected.
"""

from __future__ import annotations

import os

from gitgates.core.policy import POLICIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.shell.syntax import SimpleCommand

# Programs that read → how the options begin with which they write, or start another.
_READERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            *("[", "basename", "bc", "cat", "cksum", "cmp", "column", "comm", "cut", "df"),
            *("diff", "dirname", "du", "echo", "egrep", "expr", "false", "fgrep", "fold", "free"),
            *("grep", "groups", "head", "hexdump", "id", "join", "jq", "last", "locale", "ls"),
            *("lscpu", "lsof", "md5sum", "nl", "nproc", "numfmt", "od", "paste", "pgrep"),
            *("printenv", "printf", "ps", "pwd", "readlink", "realpath", "rev", "seq", "sha1sum"),
            *("sha256sum", "sha512sum", "sleep", "stat", "strings", "tac", "tail", "test", "tokei"),
            *("tr", "true", "tty", "type", "uname", "uptime", "wc", "whereis", "which", "who"),
            *("whoami", "zcat", "zgrep", ":", "cd", "exit", "popd", "pushd", "read", "set"),
            *("shift", "wait", "break", "continue", "return", "local", "command", "timeout"),
        ),
        (),
    ),
    "date": ("-s", "--s"),
    "file": ("-C", "--comp"),
    "find": ("-delete", "-fls", "-fprint", "-ok"),
    "rg": ("--pre", "--hostname-bin"),
    "sort": ("--o", "--comp"),
    "uniq": (),
    "xargs": (),
}
# Programs that start what `shell_syntax` reads, too.
_SHELLS = ("bash", "dash", "sh", "zsh")
_STARTERS = (*_SHELLS, "command", "env", "nice", "time", "timeout", "xargs")
_OTHERS = ("git", "sed", "awk", "gitgates")
# Git commands that only read, whatever their arguments; and others, by the argument that decides.
_GIT_READERS = (
    *("blame", "cat-file", "check-ignore", "cherry", "count-objects", "describe", "diff"),
    *("diff-tree", "for-each-ref", "grep", "log", "ls-files", "ls-tree", "merge-base", "name-rev"),
    *("range-diff", "rev-list", "rev-parse", "shortlog", "show", "show-ref", "status", "var"),
)
_GIT_LISTING = {
    "config": ("--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"),
    "reflog": ("show",),
    "remote": ("show", "get-url"),
    "stash": ("list", "show"),
    "submodule": ("status",),
    "worktree": ("list",),
}
# These list with no other words than these.
_GIT_ALONE = {
    "branch": {"-a", "-r", "-v", "-vv", "-av", "-avv", "--all", "--list", "--show-current"},
    "reflog": set[str](),
    "remote": {"-v", "--verbose"},
    "submodule": set[str](),
    "tag": {"-l", "--list"},
}
_GIT_WRITING = ("--ou", "--ext-diff", "--textconv", "-O", "--open", "--edit")
# Verbs of ours that an agent may always call.
_VERBS = (
    *("journal", "explain", "check", "runs", "cannot-fix"),
    *(row.verb for row in POLICIES if row.verb),
)
_ASKING = (["--version"], ["-V"], ["--help"])
_ENV = ("LANG", "TZ", "NO_COLOR", "COLUMNS")
_PAGERS = ("PAGER", "GIT_PAGER")
_DEVICES = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty")
_SED = frozenset("0123456789,$pq;= ")  # prints lines
_AWK_WRITING = (">", "|", "system", "getline", "close", "@")
_LONGEST_S = 0.5
# Words of these characters and letters mean themselves.
_PLAIN = str.maketrans("", "", "_-./,:@+=")
_KEYWORDS = ("case", "coproc", "do", "for", "function", "if", "select", "until", "while")


def is_reading(command: str) -> bool:
    """Return whether a shell command is known to change no file, except by a gitgates command."""
    words = command.split(" ")
    if all(map(_is_plain, words)):  # needs no parser, which takes longer than a look at the files
        name = words[0]
        if _READERS.get(name) == () and name not in (*_STARTERS, "uniq"):
            return True
        if name == "git":
            return _git_reads(words[1:])
    if _is_plain(words[0]) and "=" not in words[0]:
        is_asking = any(option in words for (option,) in _ASKING)
        known = (*_READERS, *_STARTERS, *_KEYWORDS, *_OTHERS)
        if os.path.basename(words[0]) not in known and not is_asking:
            return False
    from gitgates.drivers.shell_commands import LONGEST
    from gitgates.shell.syntax import read_command_line

    if len(command) > LONGEST:
        return False
    line = read_command_line(command, longest_s=_LONGEST_S)
    return not line.trouble and bool(line.commands) and all(map(reads, line.commands))


def _is_plain(word: str) -> bool:
    """Return whether a word means itself, in any place of a command."""
    return word.isascii() and word.translate(_PLAIN).isalnum()


def reads(command: SimpleCommand) -> bool:
    """Return whether one command of a line is known to change no file."""
    is_device = all(path in _DEVICES or path.isdecimal() for path in command.writes)
    if not (is_device and _is_harmless(command.env)):
        return False
    if not command.words:
        return True
    program, *rest = command.words
    name = os.path.basename(program)
    if name == "gitgates":
        return rest[:1] != [] and rest[0] in _VERBS
    if program != name and not program.startswith(("/bin/", "/usr/bin/")):
        return False
    return rest in _ASKING or _reads_with(name, rest)


def _is_harmless(env: Mapping[str, str]) -> bool:
    return all(
        name in _ENV or name.startswith("LC_") or (name in _PAGERS and value in ("cat", ""))
        for name, value in env.items()
    )


def _reads_with(name: str, words: list[str]) -> bool:
    """Return whether a program only reads, with these arguments."""
    from gitgates.shell.syntax import UNKNOWN

    options = [word for word in words if word.startswith("-") and word != "-"]
    plain = [word for word in words if word not in options]
    match name:
        case "git":
            return _git_reads(words)
        case "sed":
            return options == ["-n"] == words[:1] and _SED.issuperset("".join(words[1:2]))
        case "awk":  # another option names a program in a file, edits in place or writes a profile
            is_plain = all(option.startswith(("-F", "-v")) for option in options)
            writing = (*_AWK_WRITING, UNKNOWN)
            return is_plain and not any(sign in word for word in plain for sign in writing)
        case _ if name in _SHELLS:  # what the script starts is among the commands that are read
            is_script = words[:-1] in (["-c"], ["-lc"])
            return is_script and not any(part in words[-1] for part in (UNKNOWN, "{}"))
        case "xargs":  # which adds words
            return {*map(os.path.basename, words)}.isdisjoint(_STARTERS)
        case "uniq" if len(plain) > 1:
            return False
        # An option may follow others in one word: `sort -no a`.
        case "sort" if any("o" in option for option in options if option[:2] != "--"):
            return False
    starts = _READERS.get(name)
    writes = starts and any(word.startswith((*starts, UNKNOWN)) for word in words)
    return starts is not None and not writes


def _git_reads(words: list[str]) -> bool:
    while words and words[0] in ("--no-pager", "-P", "-C"):
        words = words[2:] if words[0] == "-C" else words[1:]
    verb, *rest = words or [""]
    if any(word.startswith(_GIT_WRITING) for word in rest if word != "--text"):
        return False
    if verb in _GIT_READERS or (verb in _GIT_ALONE and {*rest} <= _GIT_ALONE[verb]):
        return True
    if verb == "config" and len(rest) == 1 and not rest[0].startswith("-"):
        return True
    return bool(rest) and rest[0] in _GIT_LISTING.get(verb, ())
