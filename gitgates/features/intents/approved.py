"""The intents that agents may work on in a session: those that a person approved.

These are the intents in HEAD at session start; or those that a person has approved since then, or
before if the file is unchanged. Any other text in the working tree does not apply.
"""

from __future__ import annotations

from gitgates.drivers.rules import (
    APPROVE,
    approvals,
    approve,
    begin,
    first_rules,
    plain,
    rules_now,
    rules_of,
    unplain,
    with_approvals,
)
from gitgates.features.intents.file import load, parse_intents
from gitgates.features.intents.intent import (
    Intent,
    Intents,
    IntentsError,
    find_settings,
    settings_of,
)
from gitgates.store.log import FOLDER, Journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config
    from gitgates.drivers.call import Call
    from gitgates.git.repo import Repo
    from gitgates.store.log import Fact


def intents_in_force(call: Call) -> Intents:
    """Return the intents that apply in an event's session.

    Raises: IntentsError if the approved file has problems.
    """
    rules = rules_of(call)
    return _read(call.config, rules if "intents" in rules else begin(call))


def intents_of_session(repo: Repo, config: Config, session: str) -> Intents:
    """Return the intents of a session, by its journal's name; without one, those in HEAD.

    Raises: IntentsError if the approved file has problems; OSError.
    """
    states_abs = repo.states_abs if session else ()
    journals = [Journal(f"{state_abs}/{FOLDER}/{session}.jsonl") for state_abs in states_abs]
    first = first_rules([fact for journal in journals for fact in journal.read()])
    rules = with_approvals(first, repo.states_abs) if first else {}
    return _read(config, rules if "intents" in rules else rules_now(repo, config, head="HEAD"))


def rules_at(repo: Repo, config: Config, head: str) -> Fact:
    """Return the intents with which a session begins at a commit, in a journal's form.

    The working tree's are returned if a person has approved exactly these.
    """
    rules = [fact["rules"] for fact in approvals(repo.state_abs)]
    approved = [parts["intents"] for parts in rules if "intents" in parts]
    try:
        if approved and _plain(load(repo, config).intents) == approved[-1]:
            return {"intents": approved[-1]}
    except IntentsError:
        pass  # HEAD's may be valid
    file = settings_of(config).file
    blob = repo.git.ask("cat-file", "blob", f"{head}:{file}")
    try:
        return {"intents": [] if blob.exit_status else _plain(parse_intents(file, blob.stdout))}
    except IntentsError as error:
        return {"intents": [], "problem": error.message}


def is_unapproved(repo: Repo, config: Config, intents: Intents) -> bool:
    """Return whether the file in the working tree differs from `intents`."""
    try:
        return load(repo, config).intents != intents.intents
    except IntentsError:
        return True


def describe_unapproved(file: str) -> str:
    """Return the message for the person about an intents file that does not apply."""
    return (
        f"gitgates: {file} differs from HEAD at session start, so it does not apply "
        f"to agents; to apply it, run in a terminal: {APPROVE}"
    )


def approve_intents(repo: Repo, config: Config) -> None:
    """Make the file's current intents apply. Raises: IntentsError, StateError."""
    approve(repo, {"intents": _plain(load(repo, config).intents)})


def _read(config: Config, rules: Fact) -> Intents:
    settings = find_settings(config)
    if settings is None:
        return Intents(file="")
    if why := rules.get("problem"):
        raise IntentsError(str(why), f"Fix it; then, to apply it, run in a terminal: {APPROVE}")
    return Intents(file=settings.file, intents=tuple(map(_intent, rules["intents"])))


def _intent(fields: Fact) -> Intent:
    """Return the intent from fields written by `plain`; unknown ones are ignored."""
    values = {name: value for name, value in unplain(fields).items() if name in Intent._fields}
    return Intent(**values)


def _plain(intents: tuple[Intent, ...]) -> list[Fact]:
    return [plain(intent._asdict()) for intent in intents]
