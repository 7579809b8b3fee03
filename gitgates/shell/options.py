"""Split a command's words into options and operands, as getopt(3) and git do."""

from __future__ import annotations

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PATH_TESTS = ("-path", "-ipath", "-wholename", "-name", "-iname")  # in find
_SHORTEST = len("--f")  # abbreviation of a long option


class Options(Record):
    """The words after a program or a git verb, split."""

    given: tuple[tuple[str, str], ...] = ()  # options with their values; `-qf` is `-q` and `-f`
    before: tuple[str, ...] = ()  # operands before `--`, or all of them without one
    after: tuple[str, ...] = ()  # words after `--`

    @property
    def plain(self) -> tuple[str, ...]:
        """All operands."""
        return (*self.before, *self.after)

    def has(self, *names: str) -> bool:
        """Return whether any of these options is given; long ones may be abbreviated."""
        return any(_is(option, name) for option, _ in self.given for name in names)

    def values(self, *names: str) -> tuple[str, ...]:
        """Return the values of these options."""
        return tuple(
            value for option, value in self.given if any(_is(option, name) for name in names)
        )


def _is(option: str, name: str) -> bool:
    return option == name or (
        name.startswith("--") and len(option) >= _SHORTEST and name.startswith(option)
    )


def read_options(words: Sequence[str], letters: str = "", names: Sequence[str] = ()) -> Options:
    """Split words. `letters`, `names`: the short and long options that take a value."""
    given: list[tuple[str, str]] = []
    before: list[str] = []
    rest = list(words)
    while rest:
        word, *rest = rest
        if word == "--":
            return Options(tuple(given), tuple(before), tuple(rest))
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if not equals and rest and any(_is(name, other) for other in names):
                value, *rest = rest
            given.append((name, value))
        elif word.startswith("-") and word != "-":
            last = given_letters = list(_short(word, letters))
            if last[-1][0][1] in letters and not last[-1][1] and rest:
                value, *rest = rest
                given_letters = [*last[:-1], (last[-1][0], value)]
            given += given_letters
        else:
            before.append(word)
    return Options(tuple(given), tuple(before))


def _short(word: str, letters: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a word such as `-qfbNAME`."""
    for at, letter in enumerate(word[1:], 1):
        if letter in letters:
            yield f"-{letter}", word[at + 1 :]
            return
        yield f"-{letter}", ""


def spared_by_find(words: Sequence[str]) -> set[str]:
    """Return the patterns that a `find` command excludes: `! -path P`, `-path P -prune`."""
    around = zip(["", *words], words, words[1:], [*words[2:], ""], strict=False)
    return {
        pattern
        for before, option, pattern, after in around
        if option in _PATH_TESTS and (before in ("!", "-not") or after == "-prune")
    }
