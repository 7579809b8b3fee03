"""Take a line for the shell apart into its simple commands. Pure; never fails, whatever the text.

Not to run it: to find out whether a command of ours is in it. What the shell would put in the place
of a word (variables, substitutions, patterns) is not known here; such a word is `open`. Source:
POSIX.1-2017, Shell Command Language, 2.2 to 2.10.
"""

from __future__ import annotations

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Words: TypeAlias = tuple["Word", ...]

_BLANK = " \t\r"
_ENDS = " \t\r\n;&|()<>"
_SPECIAL = "@*#?$!-"  # names of parameters that are one sign
_ESCAPED = '$`"\\'  # in double quotes, a backslash means something before these alone
_HOLE = "$_"  # stands in a word for what is not known; read again, it is one again
_DEEPEST = 40


class Word(Record):
    """One word of a command."""

    text: str
    open: bool = False  # the shell makes something of it that is not known here


def commands(text: str, *, cut: bool = False, depth: int = 3) -> list[Words]:
    """Return the words of each simple command, of those in substitutions and `sh -c`, too.

    Redirections, comments and here-documents are left out. `cut`: the end of the text is missing.
    """
    reader = _Reader(text, cut=cut)
    reader.read_all()
    found = [words for words in reader.found if words]
    if depth:
        scripts = [script for words in found for script in _scripts(words)]
        found += [words for script in scripts for words in commands(script, depth=depth - 1)]
    return found


def _scripts(words: Words) -> list[str]:
    """Return the words of a command that are commands themselves."""
    if words[0].text == "eval":
        return [" ".join(word.text for word in words[1:])]
    options = (word.text for word in words)
    return [
        word.text
        for option, word in zip(options, words[1:], strict=False)
        if option.startswith("-") and not option.startswith("--") and option.endswith("c")
    ]


class _Reader:
    """Reads a text once, from its beginning to its end."""

    def __init__(self, text: str, *, cut: bool = False, depth: int = 0) -> None:
        self.found: list[Words] = []
        self._text = text
        self._cut = cut
        self._at = 0
        self._depth = depth
        self._words: list[Word] = []
        self._word_end = -1
        self._here: list[tuple[str, bool]] = []  # the ends of here-documents that are to come

    def read_all(self) -> None:
        """Read everything; a closing parenthesis too many ends a command, and no more."""
        while self._at < len(self._text):
            self._read()

    def _peek(self, length: int = 1) -> str:
        return self._text[self._at : self._at + length]

    def _read(self) -> None:
        """Read commands up to a closing parenthesis, or the end."""
        outer, self._words = self._words, []
        self._depth += 1
        if self._depth > _DEEPEST:
            self._at = len(self._text)
        while self._at < len(self._text) and self._peek() != ")":
            self._step()
        self._at += 1
        self._end_command()
        self._depth -= 1
        self._words = outer

    def _step(self) -> None:
        char = self._peek()
        if char in _BLANK:
            self._at += 1
        elif self._peek(2) == "\\\n":
            self._at += 2
        elif char == "#":
            end = self._text.find("\n", self._at)
            self._at = len(self._text) if end < 0 else end
        elif char == "\n":
            self._at += 1
            self._end_command()
            self._skip_here_documents()
        elif char in "<>" or self._peek(2) == "&>":
            self._redirect()
        elif char in ";&|":
            self._at += 1
            self._end_command()
        elif char == "(":
            self._at += 1
            self._end_command()
            self._read()
        else:
            self._words.append(self._word())
            self._word_end = self._at

    def _end_command(self) -> None:
        self.found.append(tuple(self._words))
        self._words = []

    def _redirect(self) -> None:
        if self._peek(2) in ("<(", ">("):
            self._at += 2
            self._read()
            self._words.append(Word(_HOLE, open=True))
            return
        if self._word_end == self._at and self._words and self._words[-1].text.isdigit():
            self._words.pop()  # the number of what is redirected
        start = self._at
        while self._peek() and self._peek() in "<>&|":
            self._at += 1
        sign = self._text[start : self._at]
        strips = sign == "<<" and self._peek() == "-"
        self._at += strips
        while self._peek() and self._peek() in _BLANK:
            self._at += 1
        if self._peek() and self._peek() not in _ENDS:
            target = self._word().text
            if sign == "<<":
                self._here.append((target, strips))

    def _skip_here_documents(self) -> None:
        for end, strips in self._here:
            while self._at < len(self._text):
                newline = self._text.find("\n", self._at)
                newline = len(self._text) if newline < 0 else newline
                line = self._text[self._at : newline]
                self._at = newline + 1
                if (line.lstrip("\t") if strips else line) == end:
                    break
        self._here = []

    def _word(self) -> Word:
        parts: list[str] = []
        is_open = False
        while (char := self._peek()) and char not in _ENDS:
            match char:
                case "'":
                    is_open |= self._single(parts)
                case '"':
                    is_open |= self._double(parts)
                case "\\":
                    escaped = self._text[self._at + 1 : self._at + 2]
                    parts.append("" if escaped == "\n" else escaped)
                    self._at += 2
                case "$" | "`":
                    is_open |= self._expansion(parts, quoted=False)
                case _:
                    is_open |= char in "*?[{" or (char == "~" and not parts)
                    parts.append(char)
                    self._at += 1
        is_cut = self._cut and self._at >= len(self._text)
        return Word("".join(parts), is_open or is_cut)

    def _single(self, parts: list[str]) -> bool:
        """Read a text in single quotes; tell whether its end is missing."""
        end = self._text.find("'", self._at + 1)
        parts.append(self._text[self._at + 1 : end if end >= 0 else len(self._text)])
        self._at = end + 1 if end >= 0 else len(self._text)
        return end < 0

    def _double(self, parts: list[str]) -> bool:
        """Read a text in double quotes; tell whether something in it is not known."""
        is_open = False
        self._at += 1
        while char := self._peek():
            if char == '"':
                self._at += 1
                return is_open
            if char == "\\" and (escaped := self._text[self._at + 1 : self._at + 2]):
                parts.append("" if escaped == "\n" else escaped if escaped in _ESCAPED else "\\")
                self._at += 2 if escaped in f"{_ESCAPED}\n" else 1
            elif char in "$`":
                is_open |= self._expansion(parts, quoted=True)
            else:
                parts.append(char)
                self._at += 1
        return True

    def _expansion(self, parts: list[str], *, quoted: bool) -> bool:
        """Read what the shell replaces; tell whether it was that."""
        after = self._text[self._at + 1 : self._at + 2]
        if self._peek() == "`":
            self._backquoted()
        elif after == "(":
            self._at += 2
            self._read()
        elif after == "{":
            self._jump_behind("}")
        elif after == "'" and not quoted:
            self._at += 1
            self._jump_behind("'")
        elif after and (after.isalnum() or after in f"_{_SPECIAL}"):
            self._name()
        else:
            parts.append("$")
            self._at += 1
            return False
        parts.append(_HOLE)
        return True

    def _name(self) -> None:
        self._at += 1
        if self._peek() in _SPECIAL or self._peek().isdigit():
            self._at += 1
            return
        while self._peek().isalnum() or self._peek() == "_":
            self._at += 1

    def _backquoted(self) -> None:
        start = self._at + 1
        self._jump_behind("`")
        inner = _Reader(self._text[start : self._at - 1], depth=self._depth + 1)
        if self._depth < _DEEPEST:
            inner.read_all()
        self.found += inner.found

    def _jump_behind(self, end: str) -> None:
        """Go behind the next sign of this kind that no backslash is before."""
        self._at += 1
        while (char := self._peek()) and char != end:
            self._at += 2 if char == "\\" else 1
        self._at += 1
