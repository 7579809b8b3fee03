"""Tell whether a shell command calls gitgates with given arguments. Pure.

The journal holds no token: what was written down of a command has a sign in its place. So the value
of `--token` is compared with anything, and all the rest exactly.
"""

from __future__ import annotations

import re
from itertools import pairwise

from gitgates.review.shell_commands import Word, commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.review.shell_commands import Words

# How well a text fits a call: better ones beat others.
MENTIONED = 1  # in a way that cannot be followed, such as by another program's code
CALLED = 2  # as far as it can be known before the shell has expanded it
CALLED_EXACTLY = 3

_PROGRAM = "gitgates"
_TOKEN = "--token"
_SHORTEST = 16  # signs of a token
_SECRET = "…"  # what stands for it in the journal; in older ones, `***`
_VALUE = re.compile(rf"({_TOKEN}[ =\t'\"]*)(?:\*\*\*|{_SECRET}|[\w-]+)")
_TALKING = ("echo", "printf", "grep", "rg")  # what they are given, they do not run
_LONGEST = 8192  # from this length on, the journal may hold the beginning alone
_VERB_WORDS = 2


def fit(text: str, args: tuple[str, ...]) -> int:
    """Return how well a shell command fits a call of gitgates; 0 where it does not."""
    if _PROGRAM not in text:
        return 0
    found = _calls(text)
    best = max((_fit(words, args) for words in found), default=0)
    return best or (MENTIONED if _mentions(text, args) > _like(found, args) else 0)


def calls(text: str, args: tuple[str, ...]) -> int:
    """Return how often a shell command calls gitgates so, at least once."""
    return max(1, sum(_fit(words, args) == CALLED_EXACTLY for words in _calls(text)))


def _calls(text: str) -> list[Words]:
    """Return the arguments of each call of gitgates in a shell command."""
    found: list[Words] = []
    for words in commands(text, cut=len(text) >= _LONGEST):
        if words[0].text not in _TALKING:
            found += [words[at + 1 :] for at, word in enumerate(words) if _is_program(word)]
    return found


def _is_program(word: Word) -> bool:
    return word.text == _PROGRAM or word.text.endswith(f"/{_PROGRAM}")


def _fit(words: Words, args: tuple[str, ...]) -> int:
    words = _without_token(words, _token(args))
    known = next((at for at, word in enumerate(words) if word.open), None)
    texts = tuple(word.text for word in words)
    wanted = without_token(args)
    if known is None:
        return CALLED_EXACTLY if texts == wanted else 0
    if texts[:known] != wanted[:known]:
        return 0
    return CALLED if known else MENTIONED


def without_token(args: tuple[str, ...]) -> tuple[str, ...]:
    """Return arguments with a sign for each token, as the journal has them."""
    return tuple(word.text for word in _without_token(tuple(map(Word, args)), _token(args)))


def _token(args: tuple[str, ...]) -> str:
    """Return the token in arguments; empty where there is none, and for what is none of ours."""
    found = [after for arg, after in pairwise(args) if arg == _TOKEN]
    found += [arg.partition("=")[2] for arg in args if arg.startswith(f"{_TOKEN}=")]
    return next((token for token in found if len(token) >= _SHORTEST), "")


def _without_token(words: Words, token: str) -> Words:
    return tuple(
        _mask(word, words[at - 1].text if at else "", token) for at, word in enumerate(words)
    )


def _mask(word: Word, before: str, token: str) -> Word:
    # Whatever the shell makes of the value, it is the value.
    if before.endswith(_TOKEN):
        return Word(_SECRET)
    if word.text.startswith(f"{_TOKEN}="):
        return Word(f"{_TOKEN}={_SECRET}")
    # Within a text, it was hidden all the same.
    text = word.text.replace(token, _SECRET) if token else word.text
    return word._replace(text=_VALUE.sub(rf"\1{_SECRET}", text))


def _mentions(text: str, args: tuple[str, ...]) -> int:
    """Return how often the words of the verb stand behind ours, with nothing but signs between."""
    wanted = [_PROGRAM, *_verb(args)]
    words = "".join(char if char.isalnum() or char in "-_" else " " for char in text).split()
    return sum(words[at : at + len(wanted)] == wanted for at in range(len(words)))


def _like(found: list[Words], args: tuple[str, ...]) -> int:
    """Return how many calls are of this verb: what they say is known, and it is not ours."""
    verb = _verb(args)
    return sum(tuple(word.text for word in words[: len(verb)]) == verb for words in found)


def _verb(args: tuple[str, ...]) -> tuple[str, ...]:
    options = next((at for at, arg in enumerate(args) if arg.startswith("-")), len(args))
    return args[: min(options, _VERB_WORDS)]
