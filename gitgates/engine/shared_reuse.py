"""Reuse passes of others, too: those that somebody trusted has signed. Cold.

What a gate can see is identified by SHA-256 here, and everything else as on any machine: see
portable.py. A pass of another machine is never written to the log as one of this machine, so it
counts only as long as its signer is trusted.
"""

from __future__ import annotations

import time

from gitgates.core.errors import GitgatesError
from gitgates.core.record import Record
from gitgates.core.types import AUTO
from gitgates.engine.plan import is_reusable
from gitgates.engine.portable import Description, definition_sha256, digest, maker_of, tools_of
from gitgates.engine.reuse import TOO_FEW, Candidate, Reuse, is_by_file
from gitgates.engine.visible_content import VisibleContent
from gitgates.store.proofs import BELIEVED, age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from gitgates.core.types import Command, Decision, Gate, GateResult, Plan, Step
    from gitgates.engine.portable import FoundPass
    from gitgates.git.repo import Repo

_MOST_FILES = 100  # of a step, that have keys of their own
_MAKERS = ("ci", "agent", "")


class Keys(Record):
    """The keys of a step on any machine."""

    whole: str = ""  # empty: it has none
    files: Mapping[str, str] = {}  # path → key of a pass on that file alone
    why_not: str = ""

    @property
    def text(self) -> str:
        """All of them, as in a Proof."""
        return " ".join(filter(None, (self.whole, *self.files.values())))


class SharedReuse(Reuse):
    """The passes, also of others, that one run may reuse, and those that it proves for others.

    `signed` finds and publishes passes: see `signed_passes` in the table of policies.
    """

    def __init__(
        self,
        plan: Plan,
        repo: Repo,
        checkout: Repo | None,
        say: Callable[[str], None],
        *,
        signed: Any,  # noqa: ANN401 - of a feature, which is above
    ) -> None:
        self._plan, self._signed = plan, signed
        self._maker = maker_of(plan.event, repo.env)
        self._makers = (*(maker for maker in _MAKERS if maker != self._maker), self._maker)
        self._described = Description(repo, checkout)
        self._keys: dict[tuple[str, tuple[str, ...], bool], Keys] = {}  # as long as nothing has run
        self._found: dict[str, FoundPass | None] = {}  # by key
        self._has_asked = False  # for all steps at once
        self._proved: dict[str, tuple[str, str]] = {}  # gate → keys of its pass, and who made it
        self._new: dict[str, str] = {}  # gate → key of a pass of this run
        super().__init__(plan, repo, checkout, say)

    def finished(self, decision: Decision) -> Decision:
        """Return the decision with the keys of passes, and publish those of this run."""
        self._described.keep()
        visits = tuple(
            visit._replace(result=self._with_keys(visit.result)) for visit in decision.visits
        )
        if self._signed.writes:
            self._publish({visit.result.gate: visit.result for visit in visits})
        self._signed.close()
        return decision._replace(visits=visits)

    def _publish(self, results: Mapping[str, GateResult]) -> None:
        new = {gate: key for gate, key in self._new.items() if results[gate].shared}
        if not new:
            return
        gates = {step.gate.name: step.gate for step in self._plan.steps}
        tools = tools_of(self._plan, self._repo)
        try:
            content = self._content.identity_of(self._content.states)
        except (GitgatesError, OSError):
            return
        self._signed.put(
            self._plan.event.name,
            content,
            {key: (gates[name], results[name], tools.get(name, "")) for name, key in new.items()},
        )

    def preview(self, step: Step, make_commands: Callable[[Step], list[Command]]) -> str:
        """Return what a look-up finds now, and why no pass of others is believed."""
        text = super().preview(step, make_commands)
        if text == TOO_FEW or step.gate.name in self._proved:
            return text
        keys = self._keys_of(step, make_commands)
        refusals = (self._signed.refusals.get(key) for key in keys.text.split())
        why_not = keys.why_not or next(filter(None, refusals), "")
        return f"{text}; of others: {why_not}" if why_not else text

    def _with_keys(self, result: GateResult) -> GateResult:
        keys, maker = self._proved.get(result.gate, ("", self._maker))
        return result._replace(shared=keys if result.status == "passed" else "", maker=maker)

    def _look(self, earlier: VisibleContent | None = None) -> VisibleContent:
        self._keys, self._described.packages = {}, {}
        return VisibleContent(self._repo, self._checkout, earlier, sha256=digest)

    def _write(self, candidate: Candidate, rest: Step, result: GateResult) -> None:
        if result.action_digest:  # the programs there are not those that its keys are about
            candidate = candidate._replace(shared="")
        super()._write(candidate, rest, result)
        self._proved[result.gate] = candidate.shared, candidate.maker
        if candidate.shared:
            self._new[result.gate] = candidate.shared.partition(" ")[0]

    def _find(self, step: Step, make_commands: Callable[[Step], list[Command]]) -> Candidate:
        candidate = super()._find(step, make_commands)
        if candidate.why_not:
            return candidate
        self._proved.pop(step.gate.name, None)
        if candidate.rest is None:  # it has passed here
            keys = "" if candidate.action_digest else self._keys_of(step, make_commands).text
            shared = candidate.shared or keys
            self._proved[step.gate.name] = shared, candidate.maker
            return candidate._replace(shared=shared)
        if self._is_audit and candidate.reused:
            return candidate
        if passes := self._believed(step, candidate.rest, make_commands):
            who = ", ".join(dict.fromkeys(each.signer for each in passes))
            reused = f"{who}, {age(min(each.time_s for each in passes))}"
            if self._is_audit:
                return Candidate(rest=step, reused=reused)
            # A believed pass has no keys of this machine.
            self._proved[step.gate.name] = self._signed.trust.digest, f"{BELIEVED}{who}"
            return Candidate(reused=reused)
        maker = candidate.maker if candidate.maker == "agent" else self._maker
        return candidate._replace(shared=self._keys_of(step, make_commands).text, maker=maker)

    def _believed(
        self, step: Step, rest: Step, make_commands: Callable[[Step], list[Command]]
    ) -> list[FoundPass]:
        """Return passes of others that prove what is left of a step; none if they do not."""
        if not self._has_asked:
            self._has_asked = True
            self._ask([each for each in self._plan.steps if self._may_share(each)], make_commands)
        self._ask([step, rest], make_commands)
        keys, max_age_s = self._users_keys(step, make_commands), step.gate.max_age_s
        files = self._users_keys(rest, make_commands).files
        for needed in ([keys.whole], [files.get(path, "") for path in rest.paths]):
            passes = [each for key in needed if (each := self._found.get(key))]
            is_new = not max_age_s or all(
                0 <= time.time() - each.time_s <= max_age_s for each in passes
            )
            if passes and is_new and len(passes) == len(needed):
                return passes
        return []

    def _ask(self, steps: list[Step], make_commands: Callable[[Step], list[Command]]) -> None:
        """Ask for the passes of steps at once, except those that were asked for before."""
        whole: dict[str, Gate] = {}
        files: dict[str, Gate] = {}
        for step in steps:
            keys = self._users_keys(step, make_commands)
            whole |= {keys.whole: step.gate} if keys.whole else {}
            files |= dict.fromkeys(keys.files.values(), step.gate)
        whole, files = (
            {key: gate for key, gate in many.items() if key not in self._found}
            for many in (whole, files)
        )
        if whole or files:
            self._found |= dict.fromkeys((*whole, *files))
            self._found |= self._signed.find(whole, files)

    def _may_share(self, step: Step) -> bool:
        is_due = not (step.skip or step.fault) and is_reusable(step.gate)
        return is_due and (step.gate.reuse != AUTO or self._is_worthwhile(step))

    def _users_keys(self, step: Step, make_commands: Callable[[Step], list[Command]]) -> Keys:
        """Return the keys in the working tree: what has passed there counts in a checkout, too."""
        return self._keys_of(step, make_commands, as_users=bool(self._checkout))

    def _keys_of(
        self,
        step: Step,
        make_commands: Callable[[Step], list[Command]],
        *,
        as_users: bool = False,
    ) -> Keys:
        """Return the keys of a step on any machine; none, with the reason, if one is not known."""
        at = step.gate.name, step.paths, as_users
        if at not in self._keys:
            try:
                self._keys[at] = self._make_keys(step, make_commands, as_users=as_users)
            except (GitgatesError, OSError) as error:
                why_not = error.message if isinstance(error, GitgatesError) else str(error)
                self._keys[at] = Keys(why_not=why_not)
        return self._keys[at]

    def _make_keys(
        self, step: Step, make_commands: Callable[[Step], list[Command]], *, as_users: bool
    ) -> Keys:
        gate, content = step.gate, self._content
        by_file = is_by_file(step)
        commands = make_commands(step._replace(paths=()) if by_file else step)
        if as_users:
            commands = [*map(self._as_for_users, commands)]
        lines = self._conditions(gate, commands, self._described)
        conditions = digest("pass", gate.name, definition_sha256(gate), *lines)
        names = content.names if by_file else ""
        visible = content.identity_of(self._seen_paths(step, content))
        whole = digest(conditions, "content", names, visible)
        if not by_file or len(step.paths) > _MOST_FILES:
            return Keys(whole)
        configuration = content.identity_of(self._configuration(gate, content))
        files = {
            path: digest(conditions, "file", names, configuration, content.states[path][1])
            for path in self._file_digests(step.paths)
        }
        return Keys(whole, files)
