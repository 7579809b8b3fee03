"""Record what gates that write have made of files, for those who weigh what a session has changed.

What a formatter of ours rewrites is neither the agent's work nor the person's.
"""

from __future__ import annotations

from gitgates.core.errors import GitgatesError
from gitgates.session.needs import are_writers_followed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Decision, Plan
    from gitgates.session.call import Call


class FilesBefore:
    """What there was before gates run that may write."""

    def __init__(self, call: Call, plan: Plan) -> None:
        self._repo = call.repo
        steps = [step for step in plan.steps if step.gate.writes and not step.skip]
        self._writing = {step.gate.name for step in steps}
        is_followed = self._writing and are_writers_followed(call)
        self._tree = call.snapshot.tree if is_followed else ""

    def writes_in(self, decision: Decision) -> list[list[str]]:
        """Return each file that those gates have changed, with its ids before and after."""
        results = [v.result for v in decision.visits if v.result.gate in self._writing]
        if not (self._tree and any(result.duration_s for result in results)):
            return []
        from gitgates.files.changes import changes  # only after a gate that writes
        from gitgates.files.stored import look_as_stored

        named_paths = {path for result in results for path in result.changed_paths}
        try:
            by_path = changes(self._repo, self._tree, look_as_stored(self._repo).tree)
        except GitgatesError:
            return []  # then the changes count, as unknown ones do
        return [
            [
                path,
                change.before.blob if change.before else "",
                change.after.blob if change.after else "",
            ]
            for path, change in sorted(by_path.items())
            if path in named_paths or not change.before
        ]
