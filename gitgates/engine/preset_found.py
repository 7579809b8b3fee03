"""What a preset finds."""

from __future__ import annotations

from gitgates.record import Record


class Found(Record):
    """One failure in an output. Only the message is normalised; what names it is taken as it is."""

    title: str
    message: str = ""
    identity: str = ""  # a test's name; a file and a rule
    place: str = ""  # tells two alike apart within one output, and is not part of a fingerprint
