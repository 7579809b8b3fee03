"""Reuse others' passes, too: those signed by somebody who is trusted. Cold.

Another machine's pass is never written to the log as this machine's, so it counts only as long as
its signer is trusted.
"""

from __future__ import annotations

import time

from gitgates.core.errors import GitgatesError
from gitgates.engine.plan.plan import is_reusable
from gitgates.engine.reuse.declared import Declarations
from gitgates.engine.reuse.reuse import Candidate, Reuse
from gitgates.engine.reuse.signed_keys import key_of, maker_of
from gitgates.store.proofs import BELIEVED, age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from gitgates.core.types import Command, Decision, GateResult, Plan, Step
    from gitgates.engine.reuse.signed_keys import FoundPass
    from gitgates.engine.reuse.visible_content import VisibleContent
    from gitgates.git.repo import Repo

    MakeCommands: TypeAlias = Callable[[Step], list[Command]]


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
        self._keys: dict[tuple[str, tuple[str, ...]], str] = {}  # as long as nothing has run
        self._found: dict[str, FoundPass | None] = {}  # by key
        self._has_asked = False  # for all steps at once
        self._proved: dict[str, tuple[str, str]] = {}  # gate → key of its pass, and who made it
        self._why_no_key: dict[str, str] = {}  # gate → reason
        self._new: set[str] = set()  # gates that have passed in this run
        super().__init__(plan, repo, checkout, say)

    def finished(self, decision: Decision) -> Decision:
        """Return the decision with the keys of passes, and publish those of this run."""
        visits = tuple(
            visit._replace(result=self._with_key(visit.result)) for visit in decision.visits
        )
        if self._signed.writes:
            self._publish([visit.result for visit in visits])
        self._signed.close()
        return decision._replace(visits=visits)

    def _publish(self, results: list[GateResult]) -> None:
        gates = {step.gate.name: step.gate for step in self._plan.steps}
        new = {
            result.origin.shared: (gates[result.gate], result)
            for result in results
            if result.origin.shared and result.gate in self._new
        }
        if not new:
            return
        try:
            content = self._content.identity_of(self._content.states)
        except (GitgatesError, OSError):
            return
        self._signed.put(self._plan.event.name, content, new)

    def preview(self, step: Step, make_commands: MakeCommands) -> str:
        """Return what a look-up finds now, and why no pass of others is believed."""
        text = super().preview(step, make_commands)
        if step.gate.name in self._proved:
            return text
        key = self._key_of(step, make_commands)
        why_not = self._signed.refusals.get(key) if key else self._why_no_key[step.gate.name]
        return f"{text}; of others: {why_not}" if why_not else text

    def _with_key(self, result: GateResult) -> GateResult:
        key, maker = self._proved.get(result.gate, ("", self._maker))
        return result.from_origin(shared=key if result.status == "passed" else "", maker=maker)

    def _look(self, earlier: VisibleContent | None = None) -> VisibleContent:
        self._keys = {}
        return super()._look(earlier)

    def _write(self, candidate: Candidate, rest: Step, result: GateResult) -> None:
        if result.origin.action_digest:  # who signs has not run it
            candidate = candidate._replace(shared="")
        super()._write(candidate, rest, result)
        self._proved[result.gate] = candidate.shared, candidate.maker
        self._new.add(result.gate)

    def _find(self, step: Step, make_commands: MakeCommands) -> Candidate:
        candidate = super()._find(step, make_commands)
        key = self._key_of(step, make_commands)
        self._proved.pop(step.gate.name, None)
        if candidate.rest is None:  # it has passed here
            key = "" if candidate.action_digest else key
            self._proved[step.gate.name] = key, candidate.maker
            return candidate._replace(shared=key)
        if self._is_audit and candidate.reused:
            return candidate
        if found := self._believed(step, make_commands):
            reused = f"{found.signer}, {age(found.time_s)}"
            if self._is_audit:
                return Candidate(rest=step, reused=reused)
            # A believed pass has no key of this machine.
            self._proved[step.gate.name] = self._signed.trust.digest, f"{BELIEVED}{found.signer}"
            return Candidate(reused=reused)
        is_agents = candidate.reused and candidate.maker == "agent"  # some of the files
        declared = candidate.declared
        if key and not declared:
            declared = Declarations.of_content(step, self._content)
        maker = candidate.maker if is_agents else self._maker
        return candidate._replace(shared=key, maker=maker, declared=declared)

    def _believed(self, step: Step, make_commands: MakeCommands) -> FoundPass | None:
        """Return somebody else's pass on a step; the first time, ask for those of all steps."""
        due = [] if self._has_asked else [*filter(_may_share, self._plan.steps)]
        self._has_asked = True
        gates = {self._key_of(each, make_commands): each.gate for each in (*due, step)}
        if new := {key: gate for key, gate in gates.items() if key and key not in self._found}:
            self._found |= {**dict.fromkeys(new), **self._signed.find(new)}
        found, max_age_s = (
            self._found.get(self._key_of(step, make_commands)),
            step.gate.reuse.max_age_s,
        )
        is_old = found and max_age_s and not 0 <= time.time() - found.time_s <= max_age_s
        return None if is_old else found

    def _key_of(self, step: Step, make_commands: MakeCommands) -> str:
        """Return the key of a pass on any machine; empty, and note why, if the content has none."""
        at = step.gate.name, step.paths
        if at not in self._keys:
            try:
                # The number of commands that the paths are split into differs between machines.
                commands = make_commands(step._replace(paths=()))
                root_abs = (self._checkout or self._repo).root_abs
                self._keys[at] = key_of(step, commands, root_abs, self._content)
            except (GitgatesError, OSError) as error:
                self._keys[at] = ""
                self._why_no_key[step.gate.name] = str(error)
        return self._keys[at]


def _may_share(step: Step) -> bool:
    return not (step.skip or step.fault) and is_reusable(step.gate)
