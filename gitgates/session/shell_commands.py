"""Shell commands of agents: the caller of gitgates commands, and what the reviewer may run.

A shell command of ours that an agent is about to run is rewritten to `gitgates VERB --caller=NONCE
…`; the journal keeps whose nonce it is. Of a reviewer's token it has only the digest. The reviewer
is kept read-only by the commands that it may give, not by their effects: a program that it may run
could still write. docs/how-to/review.md says what this can and cannot prevent.
"""

from __future__ import annotations

from gitgates.core.types import Verdict
from gitgates.session.facts import CallerEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tree_sitter import Node

    from gitgates.session.call import Call
    from gitgates.shell.syntax import SyntaxTree

OPTION = "--caller"
LONGEST = 1 << 17  # characters of a command; Linux starts no `sh -c` with more
_LONGEST_S = 0.3  # to parse it, and to read it, if it must be plain
_OURS = "gitgates"
MASK = "…"  # what stands for a token in a text that is kept
_NONCE_DIGITS = 16
_FOLDER = r"""(?:[^\s'"`&|;<>()\\]+|'[^']*'|"[^"`\\]*")"""
_END = r"(?=[\s;&|<>)]|$)"
# Without a word behind it, `review` means its status; what asks for help is left alone.
_VERB = (
    rf"(?:review[ \t]+[a-z]+{_END}|review(?=\s*$|[ \t]*[;&|]|[ \t]+-(?!-?h(?:elp)?\b))|cannot-fix"
    rf"|undo|intent[ \t]+(?:select|release|scope-expansion-request){_END}"
    rf"|run[ \t]+[A-Za-z]+[ \t]+--wait{_END})"
)
_COMMAND = (
    rf"(?P<verb>\s*(?:cd[ \t]+{_FOLDER}[ \t]*&&[ \t]*)?(?:[\w./~-]*/)?gitgates[ \t]+{_VERB})"
    rf"(?:[ \t]+{OPTION}=\w*)?{_END}"
)
# What output may be passed on to, and what shows where one is. None has an option that writes.
_FILTERS = ("head", "tail", "wc", "cat", "grep", "cut", "nl", "cd", "ls", "pwd", "echo")
# Options of git itself that change nothing about what is read.
_QUIET = ("--no-pager", "-P")
# Options that write a file, or start a program.
_WRITING = {"git": ("--output", "--ext-diff", "--textconv"), "gitgates": ("--output",)}
_SHORTEST = len("--ou")  # git takes the beginning of an option for the whole
_TEXT = "--text"  # an option of its own, which writes nothing
# What a plain line for the shell is made of, by the grammar, and the words in it.
_PARTS = ("program", "list", "pipeline", "redirected_statement", "command", "command_name")
_JOINTS = ("&&", "||", "|", ";", "\n")
_WORDS = ("word", "number", "string", "raw_string", "concatenation")
_THROWN_AWAY = (">/dev/null", "2>/dev/null", "&>/dev/null", "2>&1")
_WORD = r"""(?:'[^']*'|"[^"\\$`]*"|[\^@]\{[\w-]*\}|[^\s\0'"\\$`<>()|&;#{}])+"""
# White space that the grammar and a shell do not agree on; so it is if a word has two lines.
_ODD = r"\0|[^\S \t\n]|(?<![ \t])\\\n"
_QUOTED = r"'([^']*)'|\"([^\"]*)\""


def refuse_line(command: str, allowed: tuple[str, ...]) -> str:
    """Return why the reviewer may not run a shell command; empty if it may."""
    commands = split_commands(command)
    if commands is None:
        return (
            "The reviewer may run only plain commands: no substitutions, no variables, no files "
            "written, nothing in the background. Put text with such characters in single quotes."
        )
    return next((why for words in commands if (why := _refuse_command(words, allowed))), "")


def _refuse_command(words: list[str], allowed: tuple[str, ...]) -> str:
    if words[0] in _FILTERS:
        return ""
    words = _without_quiet(words)
    if not any(words[: len(prefix)] == prefix for prefix in map(str.split, allowed)):
        permitted = ", ".join(f"`{prefix}`" for prefix in allowed) or "none"
        rest = ", ".join(_FILTERS)
        command = " ".join(words[:2])
        return f"The reviewer may not run `{command}`. It may run: {permitted}; and {rest}."
    if any(_may_write(words[0], word.partition("=")[0]) for word in words[1:]):
        return f"The reviewer may not use {words[0]} to write a file or start a program."
    return ""


def _without_quiet(words: list[str]) -> list[str]:
    """Return a git command without options of folder and display."""
    while words[0] == "git" and words[1:2]:
        if words[1] in _QUIET:
            words = [words[0], *words[2:]]
        elif words[1] == "-C" and len(words) > len(("git", "-C", ".")):
            words = [words[0], *words[3:]]
        else:
            break
    return words


def _may_write(program: str, option: str) -> bool:
    if program == "gitgates" and option.startswith("-o"):
        return True
    is_known = any(
        writing_option.startswith(option) for writing_option in _WRITING.get(program, ())
    )
    return is_known and len(option) >= _SHORTEST and option != _TEXT


def split_commands(text: str) -> list[list[str]] | None:
    """Return the words of each command of a shell line; None if it is not plain.

    Commands may be joined by `&&`, `||`, `;`, `|` and line ends, and their output thrown away.
    """
    import re  # the first word decides on most commands

    from gitgates.shell.syntax import parse, read_command_line

    tree = parse(text, _LONGEST_S) if len(text) <= LONGEST else None
    try:
        if not tree or tree.root.has_error or re.search(_ODD, text) or not _is_plain(tree):
            return None
    except RecursionError:
        return None
    line = read_command_line(text, longest_s=_LONGEST_S)
    return (
        None
        if line.trouble
        else [list(command.words) for command in line.commands if command.words]
    )


def _is_plain(tree: SyntaxTree, node: Node | None = None) -> bool:
    import re

    node = node or tree.root
    text = tree.text_of(node)
    if node.type in _PARTS:
        return all(_is_plain(tree, child) for child in node.children)
    if node.type in _JOINTS:
        return True
    if node.type == "comment":  # on a line of its own
        before = node.prev_sibling
        return before is None or before.end_point.row < node.start_point.row
    if node.type == "file_redirect":
        return "".join(text.split()) in _THROWN_AWAY
    unquoted = re.sub(_QUOTED, "", text)
    # A pattern may become any option.
    is_pattern = not {*"*?["}.isdisjoint(unquoted) and re.sub(r"['\"]", "", text).startswith("-")
    return node.type in _WORDS and bool(re.fullmatch(_WORD, text)) and not is_pattern


def name_caller(call: Call, so_far: Verdict) -> Verdict:
    """Add the caller to a gitgates command or tool, unless a policy has done that; record it."""
    payload = call.payload
    is_tool = payload.tool_kind == "ours"
    if so_far.command or so_far.caller or not (is_tool or _OURS in payload.command):
        return so_far
    entry = caller_entry(payload.session, payload.agent_id, payload.agent_type, payload.tool_use_id)
    if is_tool:
        return so_far.joined(Verdict(caller=entry.nonce, entries=(entry,)))
    command = with_caller(payload.command, entry.nonce)
    return so_far.joined(Verdict(command=command, entries=(entry,))) if command else so_far


def with_caller(command: str, nonce: str) -> str | None:
    """Return a shell command with `--caller` added; None if it does not start with gitgates."""
    import re  # most commands are not ours

    match = re.match(_COMMAND, command)
    return f"{match['verb']} {OPTION}={nonce}{command[match.end() :]}" if match else None


def caller_entry(session: str, agent: str, agent_type: str, tool_use: str) -> CallerEntry:
    """Return the journal entry of an agent's command; the same for the same tool call."""
    nonce = digest_of(f"{session}\0{agent}\0{tool_use}")[:_NONCE_DIGITS]
    return CallerEntry(nonce, agent, agent_type)


def digest_of(token: str) -> str:
    """Return the digest of a token for the journal."""
    import hashlib  # most commands are not ours

    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
