"""Whether a git command disables hooks: `--no-verify`, in each of its forms."""

from __future__ import annotations

# Commands of git that run hooks: letters for --no-verify, and letters that take a value.
_VERIFYING = {
    "commit": ("n", "mFCct"),
    "am": ("n", ""),
    "merge": ("", "mFsX"),
    "pull": ("", "sX"),
    "push": ("", "o"),
    "rebase": ("", "sXx"),
}
_NO_VERIFY, _SHORTEST = "--no-verify", len("--no-veri")  # what is shorter may mean --no-verbose
_OPTIONAL = "uS"  # letters whose value is in the same word, or missing
_LONG_WITH_VALUE = (
    *("--message", "--file", "--author", "--date", "--reuse-message", "--reedit-message"),
    *("--template", "--trailer", "--fixup", "--squash", "--cleanup", "--strategy", "--exec"),
    *("--strategy-option", "--push-option", "--receive-pack", "--repo", "--pathspec-from-file"),
)


def skips_hooks(verb: str, words: list[str]) -> bool:
    """Return whether a git command disables hooks; `words` follow its verb."""
    if verb == "history":  # it runs none, and this one commits what is staged
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
