"""Many cheap cases in one test: pytest takes longer for each of its cases than these take."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    Check: TypeAlias = Callable[..., None]

_LONGEST = 1000
_FAILED = pytest.fail.Exception


def each_case(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Check], Check]:
    """Try a check with each case, as `pytest.mark.parametrize` does; name all that fail.

    The fixtures are those of one test: no case may leave anything to the next.
    """
    known = (names,) if isinstance(names, str) else names
    rows = [(case,) if isinstance(names, str) else tuple(case) for case in cases]
    assert rows

    def decorate(check: Check) -> Check:
        def try_all(**fixtures: Any) -> None:
            errors: list[BaseException] = []
            for row in rows:
                try:
                    check(**dict(zip(known, row, strict=True)), **fixtures)
                except (Exception, _FAILED) as error:  # noqa: BLE001 - raised below
                    error.add_note(f"in the case {row!r}"[:_LONGEST])
                    errors.append(error)
            if len(errors) == 1:
                raise errors[0]
            if errors:
                raise BaseExceptionGroup(f"{len(errors)} of {len(rows)} cases", errors)

        signature = inspect.signature(check)
        others = [one for name, one in signature.parameters.items() if name not in known]
        vars(try_all).update(
            vars(check), __signature__=signature.replace(parameters=others), __doc__=check.__doc__
        )
        try_all.__name__, try_all.__qualname__ = check.__name__, check.__qualname__
        try_all.__module__ = check.__module__
        return try_all

    return decorate
