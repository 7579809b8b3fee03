"""What is done to each manager while its hook runs, and what is seen afterwards."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, NamedTuple

from bed import AT_ONCE_S, HUNK, THEIRS, Bed, Started, is_running, wait

if TYPE_CHECKING:
    from collections.abc import Callable

IN_PLACE = "in place"
GONE = "**gone**"
UNDONE = "**undone**, the file is back"


class Seen(NamedTuple):
    """What one manager left behind. Empty: there is no such thing in this scenario."""

    work: str = ""  # what became of the person's unstaged changes
    other: str = ""  # what became of the other process's edit, or what the gates saw
    gates: str = ""  # whether the hook's own processes are still there
    left: str = ""
    status: str = ""
    said: str = ""


class Scenario(NamedTuple):
    """One row of the table for each manager."""

    name: str
    play: Callable[[Bed], list[Seen]]  # one for each of `rows`
    rows: tuple[str, ...]


def _blow(target: str, number: signal.Signals) -> Scenario:
    name = f"{number.name} to the {target}"
    rows = (name, f"the next commit after {name}") if number is signal.SIGKILL else (name,)
    return Scenario(name, lambda bed: _strike(bed, target, number)[: len(rows)], rows)


def _strike(bed: Bed, target: str, number: signal.Signals) -> list[Seen]:
    commit = bed.start("git", "commit", "-qm", "x")
    gate = bed.wait_gates(1)[0]
    manager = bed.manager_pid(gate)
    if target == "process group":
        os.killpg(commit.pid, number)
    else:
        os.kill(manager, number)
    ended = commit.has_ended(AT_ONCE_S * 3)
    at_once = ended and wait(bed.is_back, AT_ONCE_S)
    wait(lambda: not is_running(manager), AT_ONCE_S)
    runs_on = not wait(lambda: not is_running(gate), AT_ONCE_S)
    wait(lambda: not bed.leftovers(), AT_ONCE_S / 3)
    left = bed.leftovers()
    bed.go()
    status, said = commit.end()
    when = "restored at once" if at_once else ""
    wait(lambda: not is_running(gate), AT_ONCE_S)
    if not when and wait(bed.is_back, AT_ONCE_S / 3):
        when = "restored when the hook ended"
    next_status, next_said = bed.start("git", "commit", "-qm", "next").end()
    if not when:
        when = "restored by the next commit" if bed.is_back() else "**not restored**"
    ran_on = "continue" if runs_on else "ended"
    first = Seen(when, "", ran_on, _list(left), str(status), said)
    back = "in place" if bed.is_back() else "**still missing**"
    after = Seen(back, "", "", _list(bed.leftovers()), str(next_status), next_said)
    return [first, after]


def _edit(
    name: str, edit: Callable[[Bed], None], looks: Callable[[Bed], bool], lost: str = ""
) -> Scenario:
    def play(bed: Bed) -> list[Seen]:
        commit = bed.start("git", "commit", "-qm", "x")
        bed.wait_gates(1)
        edit(bed)
        bed.go()
        status, said = commit.end()
        work = IN_PLACE if bed.has_ours() else GONE
        fate = IN_PLACE if looks(bed) else lost or _fate(bed, said)
        return [Seen(work, fate, "", _list(bed.leftovers()), str(status), said)]

    return Scenario(name, play, (name,))


def _fate(bed: Bed, said: str) -> str:
    """Tell where the other process's edit is, which is not in its file."""
    kept = bed.find(THEIRS)
    if any(str(path) in said for path in kept):
        return "kept in a file that the output names"
    return "**kept in a file that the output does not name**" if kept else GONE


def _same_lines(bed: Bed) -> None:
    path = bed.repo / "a.txt"
    lines = path.read_text().splitlines(keepends=True)
    lines[HUNK - 1] = THEIRS
    path.write_text("".join(lines))


def _other_lines(bed: Bed) -> None:
    path = bed.repo / "a.txt"
    lines = path.read_text().splitlines(keepends=True)
    lines[HUNK - 11] = THEIRS
    path.write_text("".join(lines))


def _other_file(bed: Bed) -> None:
    path = bed.repo / "c.txt"
    path.write_text(path.read_text() + THEIRS)


def _new_file(bed: Bed) -> None:
    (bed.repo / "new.txt").write_text(THEIRS)


def _both(bed: Bed) -> None:
    _same_lines(bed)
    _other_file(bed)


def _and_deletes(bed: Bed) -> None:
    _same_lines(bed)
    (bed.repo / "d.txt").unlink()


def _has(name: str) -> Callable[[Bed], bool]:
    def looks(bed: Bed) -> bool:
        path = bed.repo / name
        return path.exists() and THEIRS in path.read_text()

    return looks


def _is_gone(name: str) -> Callable[[Bed], bool]:
    return lambda bed: not (bed.repo / name).exists()


def _unlink(name: str) -> Callable[[Bed], None]:
    return lambda bed: (bed.repo / name).unlink()


def _linked(bed: Bed) -> list[Seen]:
    other = bed.folder / "linked"
    bed.git("worktree", "add", "-q", "-b", "linked", str(other))
    bed.change(other)
    commits = [bed.start("git", "commit", "-qm", "x", tree=tree) for tree in (bed.repo, other)]
    bed.wait_gates(2)
    bed.go()
    return [_together(bed, commits)]


def _two_runs(bed: Bed) -> list[Seen]:
    first = bed.start("git", "commit", "-qm", "x")
    gate = bed.wait_gates(1)[0]
    second = bed.start("git", "hook", "run", "pre-commit")
    wait(lambda: len(bed.gates()) > 1 or second.has_ended(0), AT_ONCE_S)
    bed.go(gate)
    first.end()
    bed.go()
    return [_together(bed, [first, second])]


def _together(bed: Bed, started: list[Started]) -> Seen:
    ends = [each.end() for each in started]
    trees = [bed.repo, bed.folder / "linked"]
    back = bed.is_back() and all(bed.has_ours(tree) for tree in trees if tree.is_dir())
    statuses = ", ".join(str(status) for status, _said in ends)
    said = "\n".join(said for _status, said in ends)
    return Seen(IN_PLACE if back else GONE, "", "", _list(bed.leftovers()), statuses, said)


def _push(bed: Bed) -> list[Seen]:
    bed.git("init", "-q", "--bare", str(bed.folder / "remote"))
    bed.git("remote", "add", "origin", str(bed.folder / "remote"))
    other = bed.folder / "other"
    bed.git("worktree", "add", "-q", "-b", "other", str(other))
    (other / "state.txt").write_text("other\n")
    bed.git("-C", str(other), "commit", "-qam", "other", "--no-verify")
    bed.git("worktree", "remove", str(other))
    bed.go()
    status, said = bed.start("git", "push", "-q", "origin", "other").end()
    path = bed.out / "seen"
    seen = path.read_text() if path.exists() else ""
    words = {"main\n": "**the checkout**", "other\n": "the pushed commit", "": "**nothing ran**"}
    work = IN_PLACE if bed.is_back() else GONE
    return [Seen(work, words[seen], "", _list(bed.leftovers()), str(status), said)]


def _list(things: list[str]) -> str:
    return ", ".join(things) or "nothing"


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
SCENARIOS = (
    *(_blow("hook manager", number) for number in SIGNALS),
    *(_blow("process group", number) for number in SIGNALS),
    _edit("another process edits the same lines", _same_lines, _has("a.txt")),
    _edit("another process edits other lines of a stashed file", _other_lines, _has("a.txt")),
    _edit("another process edits another tracked file", _other_file, _has("c.txt")),
    _edit("another process edits the same lines and another tracked file", _both, _has("c.txt")),
    _edit("another process creates a new file", _new_file, _has("new.txt")),
    _edit(
        "another process edits the same lines and deletes another file",
        _and_deletes,
        _is_gone("d.txt"),
        UNDONE,
    ),
    _edit(
        "another process deletes another tracked file", _unlink("d.txt"), _is_gone("d.txt"), UNDONE
    ),
    _edit("another process deletes a stashed file", _unlink("a.txt"), _is_gone("a.txt"), UNDONE),
    *(
        Scenario(name, play, (name,))
        for name, play in (
            ("two linked worktrees commit at once", _linked),
            ("two runs in one worktree", _two_runs),
            ("push of a branch that is not checked out", _push),
        )
    ),
)
