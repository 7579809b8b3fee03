"""Ids and times of messages, as they are written and read.

An id counts hundredths of a second since the epoch: short, sortable, and with no letter that looks
like a digit (Crockford's base 32).
"""

from __future__ import annotations

import time

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_PYTHONS = "0123456789abcdefghijklmnopqrstuv"  # as `int` reads the same numbers
_READ = str.maketrans(_DIGITS, _PYTHONS)
_MISTYPED = str.maketrans("oil", "011")
_EPOCH = 719469  # days that `_days` counts until then
_END_S = 253402300800.0  # of the year 9999
_MARCH = 3


def id_of(number: int) -> str:
    """Return the id that a number makes."""
    digits = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits


def number_of(message_id: str) -> int:
    """Return the number that an id was made from; 0 where it is none of ours."""
    if not message_id or not set(message_id) <= set(_DIGITS):
        return 0
    return int(message_id.translate(_READ), len(_DIGITS))


def as_meant(typed: str) -> str:
    """Return the id that somebody has typed: `O` for `0`, `l` for `1`, in capitals."""
    return typed.strip().lower().translate(_MISTYPED)


def when(stamp: float) -> str:
    """Return a time as ISO 8601 has it, in UTC, with milliseconds."""
    seconds, thousandths = divmod(round(stamp * 1000), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{thousandths:03d}Z"


def stamp_of(moment: str) -> float | None:
    """Return the time that `when` has written; None where it is none.

    What the library has for this costs a hook more than all else that it does with a message.
    """
    day, _, clock = moment.removesuffix("Z").partition("T")
    try:
        year, month, date = (int(part) for part in day.split("-"))
        hours, minutes, seconds = clock.split(":")
        of_day = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    except ValueError:
        return None
    stamp = _days(year, month, date) * 86400.0 + of_day
    return stamp if 0 <= stamp < _END_S else None


def _days(year: int, month: int, date: int) -> int:
    if month < _MARCH:  # a year begins in March here, so that a leap day is its last
        year, month = year - 1, month + 12
    leap_days = year // 4 - year // 100 + year // 400
    return 365 * year + leap_days + (153 * month - 457) // 5 + date - _EPOCH
