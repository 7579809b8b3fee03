"""Commits of the realistic set: cold, after an agent's Stop, again, elsewhere, in part."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import project
from clock import Case, Clock, Scenario, Wrong
from peers import GITGATES, NO_HOOK, Peer
from shop import Shop, tell_agent

if TYPE_CHECKING:
    from collections.abc import Iterator

COLD, STOPPED, AGAIN = "cold", "after-stop", "again"
ONE_CHANGED, ALL_FILES, WORKTREE, PARTIAL = "one-changed", "all-files", "worktree", "partial"
_COMMIT = "git commit -m"


def scenarios(clock: Clock, peers: list[Peer], rounds: int) -> Iterator[Scenario]:
    """Return each scenario when the one before is over: they follow each other."""
    shops = [Shop(clock, peer, clock.folder / "set" / peer.slug, project.SET) for peer in peers]
    shops[0].warm()
    for shop in shops:
        shop.take_caches_of(shops[0])
        shop.must_refuse()
    for key, title, kind, more in (
        (COLD, "cold: nothing is remembered, and the tools have no caches", _Cold, 0),
        (STOPPED, "committed after an agent's Stop proved it", _Stopped, 1),
        (AGAIN, "the hook again, unchanged", _Again, 1),
        (ONE_CHANGED, "committed after one file of 200 changed", _OneChanged, 0),
        (PARTIAL, "a partially staged commit", _Partial, 0),
        (WORKTREE, "committed in a second worktree, with the content of the first", _Second, 0),
    ):
        if key == STOPPED:
            for shop in shops:  # with caches that the cold runs have not just written
                shop.stage(next(_Commit.numbers))
                shop.run_hook()
                shop.git("commit", "-qnm", "settled")
        yield Scenario(key, title, [kind(shop).case() for shop in shops], rounds + more)
    linted = [
        Shop(clock, peer, clock.folder / "linters" / peer.slug, project.LINTERS) for peer in peers
    ]
    title = "linters on all 200 files, after one changed"
    cases = [_AllFiles(shop).case() for shop in linted if shop.peer.name != NO_HOOK]
    yield Scenario(ALL_FILES, title, cases, rounds, warm_up=True)


class _Commit:
    """A commit of one changed file."""

    numbers = itertools.count(1)
    reused: tuple[str, ...] = ()  # those that gitgates must not run again

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.number = 0

    def case(self) -> Case:
        """Return what is measured."""
        shop = self.shop
        return Case(shop.peer.name, shop.folder, self.command(), self.prepare, self.check)

    def command(self) -> str:
        """Return what is timed."""
        return f"{_COMMIT} measured"

    def prepare(self, turn: int) -> None:
        """Stage a content that was never there."""
        self.number = next(self.numbers)
        self.before(turn)

    def before(self, _turn: int) -> None:
        """Change and stage."""
        self.shop.stage(self.number)

    def check(self, _turn: int, said: str) -> None:
        """See that it is committed, and what ran."""
        self.shop.must_be_committed("measured")
        self.must_pass(said)

    def must_pass(self, said: str) -> None:
        """See that the gates have run, or were reused."""
        is_ours = self.shop.peer.name == GITGATES
        self.shop.peer.must_pass(self.shop.gates, said, self.reused if is_ours else ())


class _Cold(_Commit):
    def before(self, turn: int) -> None:
        super().before(turn)
        self.shop.forget()


class _Stopped(_Commit):
    reused = tuple(gate.name for gate in project.SET)

    def before(self, turn: int) -> None:
        if self.shop.peer.name == GITGATES:
            tell_agent(self.shop.clock, self.shop.folder, "SessionStart", f"s{turn}")
        project.change(self.shop.folder, self.number)
        self.shop.stop(f"s{turn}")
        self.shop.git("add", ".")


class _Again(_Commit):
    reused = tuple(gate.name for gate in project.SET)

    def command(self) -> str:
        return self.shop.peer.hook()

    def before(self, turn: int) -> None:
        super().before(turn)
        self.shop.run_hook()

    def check(self, _turn: int, said: str) -> None:
        self.must_pass(said)
        self.shop.git("commit", "-qnm", "not measured")


class _OneChanged(_Commit):
    """What is committed already has been seen by all, so this is a change of one file."""


class _Partial(_Commit):
    LATER = "\n# not staged\n"

    def before(self, turn: int) -> None:
        super().before(turn)
        with (self.shop.folder / project.CHANGED).open("a") as file:
            file.write(self.LATER)

    def check(self, turn: int, said: str) -> None:
        super().check(turn, said)
        left = (self.shop.folder / project.CHANGED).read_text()
        if not left.endswith(self.LATER) or self.LATER in self.shop.git(
            "show", f"HEAD:{project.CHANGED}"
        ):
            raise Wrong(f"{self.shop.peer.name}: what was not staged is lost, or committed")
        self.shop.git("checkout", "-q", project.CHANGED)


class _AllFiles(_Commit):
    def command(self) -> str:
        return self.shop.peer.all_files()

    def before(self, turn: int) -> None:
        super().before(turn)
        self.shop.git("commit", "-qnm", "not measured")

    def check(self, turn: int, said: str) -> None:
        self.must_pass(said)  # as which a gate is shown that ran on a part of the files
        gates = len(self.shop.gates)
        if turn and self.shop.peer.name == GITGATES and said.count(" 199 of 200 files") != gates:
            raise Wrong(f"{GITGATES}: not one file of 200 was checked:\n{said}")


class _Second(_Commit):
    """The same content in a second worktree, which was in use before."""

    reused = tuple(gate.name for gate in project.SET)

    def __init__(self, shop: Shop) -> None:
        super().__init__(shop.second())
        self.first = shop

    def before(self, turn: int) -> None:
        self.first.stage(self.number)
        if self.shop.peer.name == GITGATES:
            self.first.run_hook()
        self.shop.git("reset", "-q", "--hard", self.first.git("rev-parse", "HEAD"))
        super().before(turn)
        if self.shop.peer.name not in (GITGATES, NO_HOOK):
            self.shop.warm()

    def check(self, turn: int, said: str) -> None:
        super().check(turn, said)
        self.first.git("commit", "-qnm", "not measured")
