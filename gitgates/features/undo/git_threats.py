"""What commands of git destroy, by their words. Source: the manual pages of git 2.39 to 2.50."""

from __future__ import annotations

from gitgates.features.undo.threats import (
    COMMITS,
    FILES,
    HISTORY,
    IGNORED,
    INDEX,
    OBJECTS,
    REFS,
    STAGED,
    STASH,
    UNSTAGED,
    UNTRACKED,
    WORKTREE,
    Threat,
)
from gitgates.shell.options import read_options
from gitgates.shell.repositories import git_call
from gitgates.shell.syntax import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gitgates.shell.options import Options
    from gitgates.shell.repositories import GitCall

_DISCARDS = "discards"
_SAFELY = ("--help", "-h")
_AFTER = {"now", "all"}  # dates that spare nothing
_ENDING = ("--abort", "--skip")
_BRANCHES = "refs/heads/"
_FROM_FILE = "--pathspec-from-file"


def git_threats(words: tuple[str, ...], stdin: str = UNKNOWN) -> Iterator[Threat]:
    """Yield what a command of git destroys; `words` begin with `git`."""
    call = git_call(list(words[1:]))
    threats_of = _VERBS.get(call.verb)
    if threats_of is None or any(word in _SAFELY for word in call.rest):
        return
    letters, names = _VALUED.get(call.verb, ("", ()))
    options = read_options(call.rest, letters, (*names, _FROM_FILE))
    named = ("git", call.verb, *call.rest)
    for threat in threats_of(call, options):
        paths = threat.paths
        if call.verb == "update-ref" and not paths:
            paths = _from_input(stdin)
        if any(UNKNOWN in path for path in paths):  # it may be any of them
            paths = ()
        yield threat._replace(
            words=named,
            is_git=threat.scope == "files",
            folder="" if UNKNOWN in call.folder else call.folder,
            paths=paths,
            with_submodules=threat.with_submodules or options.has("--recurse-submodules"),
        )


def is_known(verb: str) -> bool:
    """Return whether this is a command of git's own, and so no alias."""
    return verb in _VERBS or verb in _OTHERS


def _threat(takes: tuple[str, ...], paths: tuple[str, ...] = (), does: str = _DISCARDS) -> Threat:
    return Threat(words=(), does=does, takes=takes, paths=paths)


def _of_refs(names: tuple[str, ...], does: str, prefix: str = _BRANCHES) -> Threat:
    paths = tuple(name if name.startswith("refs/") else prefix + name for name in names)
    return Threat(words=(), does=does, scope=REFS, paths=paths)


def _checkout(_call: GitCall, options: Options) -> Iterator[Threat]:
    if options.has("-p", "--patch"):
        return
    forced_names = options.values("-B")
    if options.has("-f", "--force") and not options.behind:
        yield _threat((UNSTAGED, STAGED))
    elif options.is_split or options.has(_FROM_FILE):
        if options.behind or options.has(_FROM_FILE):
            takes = (UNSTAGED, STAGED) if options.before else (UNSTAGED,)
            yield _threat(takes, options.behind)
    elif not options.has("-b", "-B", "--orphan", "-d", "--detach"):
        if len(options.before) > 1:
            yield _threat((UNSTAGED, STAGED), options.before)
        elif options.before:
            paths = options.before
            yield _threat((UNSTAGED,), paths)._replace(unless_rev=paths[0])
    if forced_names:
        yield _of_refs(forced_names, "moves")


def _switch(_call: GitCall, options: Options) -> Iterator[Threat]:
    if options.has("-f", "--force", "--discard-changes"):
        yield _threat((UNSTAGED, STAGED))
    if names := options.values("-C", "--force-create"):
        yield _of_refs(names, "moves")


def _restore(_call: GitCall, options: Options) -> Iterator[Threat]:
    if options.has("-p", "--patch") or not (options.plain or options.has(_FROM_FILE)):
        return
    is_staged = options.has("-S", "--staged")
    if is_staged and not options.has("-W", "--worktree"):
        yield _threat((INDEX,), options.plain)
    else:
        has_source = is_staged or options.has("-s", "--source")
        yield _threat((UNSTAGED, STAGED) if has_source else (UNSTAGED,), options.plain)


def _reset(_call: GitCall, options: Options) -> Iterator[Threat]:
    if options.has("-p", "--patch", "--soft"):
        return
    if options.has("--hard"):
        yield _threat((UNSTAGED, STAGED))
    elif options.has("--merge"):
        yield _threat((STAGED,))
    else:
        yield _threat((INDEX,), options.behind)


def _clean(call: GitCall, options: Options) -> Iterator[Threat]:
    is_forced = options.has("-f", "--force", "-i", "--interactive") or any(
        setting.lower() == "clean.requireforce=false" for setting in call.settings
    )
    if options.has("-n", "--dry-run") or not is_forced:
        return
    takes = (UNTRACKED, IGNORED) if options.has("-x") else (UNTRACKED,)
    takes = (IGNORED,) if options.has("-X") else takes
    flags = [f"-{letter}" for letter in "dxX" if options.has(f"-{letter}")]
    flags += ["-f"] * sum(given in ("-f", "--force") for given, _ in options.given)
    flags += [f"--exclude={pattern}" for pattern in options.values("-e", "--exclude")]
    paths = tuple(path for path in options.plain if UNKNOWN not in path)
    yield _threat(takes, paths, "removes")._replace(dry_run=("clean", "-n", *flags, "--", *paths))


def _stash(_call: GitCall, options: Options) -> Iterator[Threat]:
    verb, *names = options.before or ("",)
    if verb in ("drop", "clear", "pop"):
        entries = () if verb == "clear" else tuple(names[:1]) or ("0",)
        yield Threat(words=(), does="drops", scope=STASH, paths=entries)


def _branch(_call: GitCall, options: Options) -> Iterator[Threat]:
    is_forced = options.has("-f", "--force")
    if options.has("-r", "--remotes", "--list", "-l"):
        return
    if options.has("-D") or (is_forced and options.has("-d", "--delete")):
        yield _of_refs(options.plain, "deletes")
    elif options.has("-M", "-C") or (is_forced and options.has("-m", "--move", "-c", "--copy")):
        yield _of_refs(options.plain[-1:], "overwrites")
    elif is_forced:
        yield _of_refs(options.plain[:1], "moves")


def _tag(_call: GitCall, options: Options) -> Iterator[Threat]:
    if options.has("-d", "--delete"):
        yield _of_refs(options.plain, "deletes", "refs/tags/")


def _update_ref(_call: GitCall, options: Options) -> Iterator[Threat]:
    if options.has("--stdin"):
        yield _of_refs((), "deletes")
    elif options.plain:
        yield _of_refs(options.plain[:1], "deletes" if options.has("-d") else "moves", "")


def _from_input(stdin: str) -> tuple[str, ...]:
    """Return the refs that `update-ref --stdin` is told to delete."""
    lines = [line.split() for line in stdin.split("\n")]
    return tuple(line[1] for line in lines if line[:1] == ["delete"] and len(line) > 1) or ("",)


def _worktree(_call: GitCall, options: Options) -> Iterator[Threat]:
    verb, *paths = options.before or ("",)
    if verb == "remove" and options.has("-f", "--force"):
        yield Threat(words=(), does="removes", scope=WORKTREE, paths=(*paths, *options.behind)[:1])


def _rebase(_call: GitCall, options: Options) -> Iterator[Threat]:
    if options.has(*_ENDING):
        yield _threat((UNSTAGED, STAGED))
    elif not options.has("--continue", "--quit", "--edit-todo", "--show-current-patch"):
        yield Threat(words=(), does="rewrites", scope=COMMITS)


def _ends(_call: GitCall, options: Options) -> Iterator[Threat]:
    if options.has(*_ENDING):
        yield _threat((UNSTAGED, STAGED))


def _spares_nothing(date: str) -> bool:
    return date in _AFTER or UNKNOWN in date or date.startswith(("0.", "1.second"))


def _gc(call: GitCall, options: Options) -> Iterator[Threat]:
    dates = [*options.values("--prune")]
    dates += [x.partition("=")[2] for x in call.settings if x.lower().startswith("gc.pruneexpire=")]
    if any(map(_spares_nothing, dates)):
        yield Threat(words=(), does="removes", scope=OBJECTS)


def _prune(_call: GitCall, options: Options) -> Iterator[Threat]:
    dates = options.values("--expire") or ("now",)
    if not options.has("-n", "--dry-run") and any(map(_spares_nothing, dates)):
        yield Threat(words=(), does="removes", scope=OBJECTS)


def _reflog(_call: GitCall, options: Options) -> Iterator[Threat]:
    verb = options.before[:1]
    dates = options.values("--expire", "--expire-unreachable")
    is_dry = options.has("-n", "--dry-run")
    if not is_dry and (
        verb == ("delete",) or (verb == ("expire",) and any(map(_spares_nothing, dates)))
    ):
        yield Threat(words=(), does="forgets", scope=OBJECTS)


def _filter_branch(_call: GitCall, _options: Options) -> Iterator[Threat]:
    yield Threat(words=(), does="rewrites", scope=COMMITS)


def _filter_repo(_call: GitCall, options: Options) -> Iterator[Threat]:
    if not options.has("--analyze", "--dry-run"):
        yield Threat(words=(), does="rewrites", scope=HISTORY)


def _rm(_call: GitCall, options: Options) -> Iterator[Threat]:
    if options.has("-f", "--force") and not options.has("-n", "--dry-run"):
        takes = (INDEX,) if options.has("--cached") else (UNSTAGED, STAGED)
        yield _threat(takes, options.plain, "removes")


def _mv(_call: GitCall, options: Options) -> Iterator[Threat]:
    if options.has("-f", "--force") and not options.has("-n", "--dry-run"):
        yield _threat(FILES, options.plain[-1:], "overwrites")


def _checkout_index(_call: GitCall, options: Options) -> Iterator[Threat]:
    if options.has("-f", "--force") and (options.has("-a", "--all", "--stdin") or options.plain):
        yield _threat((UNSTAGED,), options.plain)


def _read_tree(_call: GitCall, options: Options) -> Iterator[Threat]:
    if options.has("--reset"):
        yield _threat((UNSTAGED, STAGED) if options.has("-u") else (INDEX,))


def _submodule(_call: GitCall, options: Options) -> Iterator[Threat]:
    verb, *paths = options.before or ("",)
    if verb in ("update", "deinit") and options.has("-f", "--force"):
        threat = _threat((), (*paths, *options.behind))
        yield threat._replace(with_submodules=True)


_VERBS: dict[str, Callable[[GitCall, Options], Iterator[Threat]]] = {
    "am": _ends,
    "branch": _branch,
    "checkout": _checkout,
    "checkout-index": _checkout_index,
    "cherry-pick": _ends,
    "clean": _clean,
    "filter-branch": _filter_branch,
    "filter-repo": _filter_repo,
    "gc": _gc,
    "merge": _ends,
    "mv": _mv,
    "prune": _prune,
    "read-tree": _read_tree,
    "rebase": _rebase,
    "reflog": _reflog,
    "reset": _reset,
    "restore": _restore,
    "revert": _ends,
    "rm": _rm,
    "stash": _stash,
    "submodule": _submodule,
    "switch": _switch,
    "tag": _tag,
    "update-ref": _update_ref,
    "worktree": _worktree,
}
# The usual ones that destroy nothing.
_OTHERS = (
    *("add", "apply", "archive", "bisect", "blame", "cat-file", "cherry", "clone", "commit"),
    *("config", "describe", "diff", "fetch", "for-each-ref", "format-patch", "fsck", "grep"),
    *("help", "init", "log", "ls-files", "ls-remote", "ls-tree", "merge-base", "notes", "pull"),
    *("push", "remote", "rev-list", "rev-parse", "shortlog", "show", "show-ref", "status"),
    *("symbolic-ref", "version"),
)
# Their options that take a value, where an operand may stand behind one.
_VALUED: dict[str, tuple[str, tuple[str, ...]]] = {
    "branch": ("u", ("--set-upstream-to", "--sort", "--format", "--points-at", "--contains")),
    "checkout": ("bBU", ("--orphan", "--conflict", "--unified", "--inter-hunk-situation")),
    "clean": ("e", ("--exclude",)),
    "prune": ("", ("--expire",)),
    "rebase": ("sXxCS", ("--onto", "--strategy", "--exec", "--strategy-option")),
    "restore": ("sU", ("--source", "--conflict", "--unified", "--inter-hunk-situation")),
    "switch": ("cC", ("--create", "--force-create", "--orphan", "--conflict")),
    "tag": ("muFn", ("--message", "--file", "--sort", "--format")),
    "update-ref": ("m", ()),
    "worktree": ("bB", ("--reason",)),
}
