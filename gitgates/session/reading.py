"""Whether a shell command only reads: pipelines, loops and scripts of programs that write nothing.

What is not known to read is taken to write. A program is known by its name: one that somebody has
put in its place is not seen.
"""

from __future__ import annotations

import os

from gitgates.core.policy import POLICIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
            *("shift", "wait", "break", "continue", "return", "local"),
        ),
        (),
    ),
    **dict.fromkeys(("ack", "ag"), ("--pag",)),
    "base64": ("-o", "--o"),
    "date": ("-s", "--s"),
    "file": ("-C", "--comp"),
    "find": ("-delete", "-fls", "-fprint", "-ok"),
    "man": ("-",),  # some name the pager
    "rg": ("--pre", "--hostname-bin"),
    "sort": ("-o", "--o", "--comp"),
    "tree": ("-o", "--output"),
    "uniq": (),
    "xxd": ("-r",),
}
# Of these, a letter for a file that is written may stand behind others: `sort -no a`.
_CLUSTERS = dict.fromkeys(("sort", "tree"), r"-\w*o")
# Of these, the second word that is no option is a file that is written.
_OPERANDS = {"uniq": 1, "xxd": 1}
# Programs that start what `shell_syntax` reads, too.
_STARTERS = ("command", "env", "nice", "time", "timeout", "xargs", "bash", "dash", "sh", "zsh")
_SHELLS = ("bash", "dash", "sh", "zsh")
# Commands of git that read, whatever stands behind them; and others, by what has to.
_GIT_READERS = (
    *(
        "blame",
        "cat-file",
        "check-ignore",
        "cherry",
        "count-objects",
        "describe",
        "diff",
        "diff-tree",
        "for-each-ref",
    ),
    *("grep", "log", "ls-files", "ls-remote", "ls-tree", "merge-base", "name-rev", "range-diff"),
    *("rev-list", "rev-parse", "shortlog", "show", "show-ref", "status", "var", "whatchanged"),
)
_HAVING = ("--contains", "--no-contains", "--merged", "--no-merged")
_GIT_LISTING = {
    "bisect": ("log",),
    "branch": ("-a", "-r", "-av", "-avv", "--list", "--show-current", "--all", *_HAVING),
    "config": ("--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"),
    "notes": ("list", "show"),
    "reflog": ("show",),
    "remote": ("show", "get-url"),
    "stash": ("list", "show"),
    "submodule": ("status",),
    "tag": ("-l", "--list", *_HAVING),
    "worktree": ("list",),
}
# These show more where something is listed, and do not have it listed: `git branch -v NEW`.
_GIT_VERBOSE = {"branch": ("-v", "-vv", "--verbose"), "remote": ("-v", "--verbose")}
_GIT_CHANGING = {"-d", "-D", "-m", "-M", "-c", "-C", "-f", "--delete", "--force", "--move"}
_GIT_ALONE = ("branch", "reflog", "remote", "tag", "submodule")
_GIT_WRITING = ("--ou", "--ext-diff", "--textconv", "-O", "--open", "--edit")
_GIT_SERVERS = ("--u", "--exe")  # a program that is run for the other repository
_QUIET = ("--no-pager", "-P")
# Verbs of ours that an agent may always call.
_VERBS = (
    *("journal", "explain", "check", "runs", "cannot-fix"),
    *(row.verb for row in POLICIES if row.verb),
)
_ASKING = (["--version"], ["-V"], ["--help"])
_ENV = ("LANG", "TZ", "NO_COLOR", "COLUMNS")
_PAGERS = ("PAGER", "GIT_PAGER")
_DEVICES = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty")
# Scripts of sed that print, delete or replace lines of what it puts out.
_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\.)*/)?(?:,(?:\+?\d+|\$|/(?:[^/\\\n]|\\.)*/))?\s*!?"
_SUBSTITUTE = r"s([/|#,@])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpiI\d]*"
_SED = rf"(?:\s*(?:{_ADDRESS}(?:[pdq=]|{_SUBSTITUTE}))\s*;?)+"
_SED_OPTIONS = ("-n", "-E", "-r", "-e", "-ne", "-nE", "-En", "-nr", "-s", "-z", "--quiet")
_AWK_WRITING = r">(?!=)|(?<!\|)\|(?!\|)|system|getline|close|@"
_LONGEST_S = 0.5
# Words of these characters and letters mean themselves.
_PLAIN = str.maketrans("", "", "_-./,:@+=")
_KEYWORDS = ("case", "coproc", "do", "for", "function", "if", "select", "until", "while")


def is_reading(command: str) -> bool:
    """Return whether a shell command is known to change no file, except by a gitgates command."""
    words = command.split(" ")
    if all(map(_is_plain, words)):  # needs no parser, which takes longer than a look at the files
        name = words[0]
        if _READERS.get(name) == () and name not in _OPERANDS:
            return True
        if name == "git":
            return _git_reads(words[1:])
    if _is_plain(words[0]) and "=" not in words[0]:
        known = (*_READERS, *_STARTERS, *_KEYWORDS, "git", "sed", "awk", "gawk", "mawk", "gitgates")
        is_asking = any(option in words for (option,) in _ASKING)
        if os.path.basename(words[0]) not in known and not is_asking:
            return False
    from gitgates.session.shell_commands import LONGEST
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
    if not (all(map(_is_device, command.writes)) and _is_harmless(command.env)):
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


def _reads_with(name: str, words: list[str]) -> bool:
    """Return whether a program reads, with these words behind it."""
    match name:
        case "git":
            return _git_reads(words)
        case "sed":
            return _sed_reads(words)
        case "awk" | "gawk" | "mawk":
            import re  # takes as long as a look at the files; few commands need it

            # Others name a program in a file, edit in place or write a profile.
            plain = [word for word in words if word[:2] not in ("-F", "-v", "-")]
            return bool(words) and not any(
                word.startswith("-") or re.search(_AWK_WRITING, word) for word in plain
            )
        case _ if name in _STARTERS:
            return _is_followed(name, words)
        case _:
            return _program_reads(name, words)


def _is_device(path: str) -> bool:
    return path in _DEVICES or path.isdecimal()


def _is_harmless(env: Mapping[str, str]) -> bool:
    return all(
        name in _ENV or name.startswith("LC_") or (name in _PAGERS and value in ("cat", ""))
        for name, value in env.items()
    )


def _is_followed(name: str, words: Sequence[str]) -> bool:
    """Return whether what a program starts is among the commands that are read."""
    from itertools import takewhile

    from gitgates.shell.starters import started
    from gitgates.shell.syntax import UNKNOWN

    if name in _SHELLS:
        import re

        at = next((n for n, word in enumerate(words) if re.fullmatch(r"-[a-z]*c", word)), None)
        script = "".join(words[at + 1 : at + 2]) if at is not None else ""
        # `find` and `xargs` put file names in the place of `{}`.
        is_known = script and not any(part in script for part in (UNKNOWN, "{}"))
        return bool(is_known) and not any(word.startswith("--") for word in words[:at])
    if name == "xargs":  # which adds words: the command that one of these starts
        inner = (
            os.path.basename(command.words[0])
            for command in started(name, [*words])
            if command.words
        )
        return not any(program in _STARTERS for program in inner)
    options = takewhile(lambda word: word.startswith("-"), words)
    return name != "time" or all(word in ("-p", "-v") for word in options)


def _program_reads(name: str, words: Sequence[str]) -> bool:
    from gitgates.shell.syntax import UNKNOWN

    if name not in _READERS:
        return False
    writing = _READERS[name]
    if writing and any(word.startswith((*writing, UNKNOWN)) for word in words):
        return False
    if name in _CLUSTERS:
        import re

        if any(re.match(_CLUSTERS[name], word) for word in words):
            return False
    plain = [word for word in words if not word.startswith("-") or word == "-"]
    return len(plain) <= _OPERANDS.get(name, len(plain))


def _git_reads(words: list[str]) -> bool:
    while words and words[0].startswith("-"):
        if words[0] not in (*_QUIET, "-C"):
            return False
        words = words[2:] if words[0] == "-C" else words[1:]
    verb, *rest = words or [""]
    if any(word.startswith(_GIT_WRITING) for word in rest if word != "--text"):
        return False
    if verb == "ls-remote" and any(word.startswith(_GIT_SERVERS) for word in rest):
        return False
    while rest and rest[0] in _GIT_VERBOSE.get(verb, ()):
        rest = rest[1:]
    if verb in _GIT_READERS or (verb in _GIT_ALONE and not rest):
        return True
    if verb == "config" and len(rest) == 1 and not rest[0].startswith("-"):
        return True
    lists = rest[:1] and rest[0] in _GIT_LISTING.get(verb, ())
    return bool(lists) and _GIT_CHANGING.isdisjoint(rest)


def _sed_reads(words: list[str]) -> bool:
    import re

    options = [word for word in words if word.startswith("-")]
    scripts = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-e", "-ne")]
    plain = [word for word in words if not word.startswith("-")]
    scripts = scripts or plain[:1]
    return (
        bool(scripts)
        and all(option in _SED_OPTIONS for option in options)
        and all(re.fullmatch(_SED, script) for script in scripts)
    )
