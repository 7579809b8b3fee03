"""Our block in the text of `.pre-commit-config.yaml`: put in, brought up to date, taken out. Pure.

Only the block's own bytes change. What comes out is parsed again and compared, so that a file whose
shape was not understood is refused instead of being spoilt.
"""

from __future__ import annotations

import re

import yaml

from gitgates.errors import ConfigError
from gitgates.record import Record

FILE = ".pre-commit-config.yaml"
_BEGIN = "# gitgates: this block is written by `gitgates install-hooks --pre-commit`"
_END = "# gitgates: the block ends here"
_HEAD = "# made by `gitgates install-hooks --pre-commit`\nrepos:\n"
_EMPTY_LIST = re.compile(r"^repos: \[\](\r?\n)", re.MULTILINE)
# Where the framework knows no files, being given none would mean that none has changed.
_WITHOUT_FILES = ("post-checkout", "post-commit", "post-merge", "post-rewrite", "pre-rebase")
_HOOK = """\
  - id: gitgates-{stage}
    name: gitgates {stage}
    entry: gitgates pre-commit-hook {stage}
    language: system
    stages: [{stage}]
    always_run: true
    pass_filenames: {files}
    require_serial: true
"""


class _Span(Record):
    """Where the list of repositories ends, and how far it is indented."""

    end: int  # an offset in the text: just behind the last line of the list
    column: int


def put(text: str | None, stages: tuple[str, ...]) -> str:
    """Return the text with our block for these stages at the end of `repos`. None: no file.

    Raises: ConfigError where the text is no YAML, or its `repos` is no list of lines.
    """
    if text is None:
        return _HEAD + _block(stages, 0)
    before = without(text) if _BEGIN in text else text
    if before is None:
        return put(None, stages)
    opened, span = _open_list(before)
    newline = "\r\n" if "\r\n" in before else "\n"
    block = _block(stages, span.column).replace("\n", newline)
    if span.end == len(opened) and not opened.endswith("\n"):
        block = newline + block.removesuffix(newline)
    after = opened[: span.end] + block + opened[span.end :]
    _require_appended(before, after, stages)
    return after


def without(text: str) -> str | None:
    """Return the text without our block; None where nothing else was in it.

    Raises: ConfigError where the block's end is missing.
    """
    if _BEGIN not in text:
        return text
    start = text.rfind("\n", 0, text.index(_BEGIN)) + 1
    end = text.find(_END, start)
    if end < 0:
        raise ConfigError(
            f"{FILE}: the line `{_END}` is gone, so that nobody knows where our block ends",
            f"Take the block out by hand; it begins with the line `{_BEGIN}`.",
        )
    line_end = text.find("\n", end)
    if line_end < 0:  # the file had no newline at its end
        start -= 2 if text[:start].endswith("\r\n") else 1
        return text[: max(start, 0)]
    rest = text[:start] + text[line_end + 1 :]
    if rest == _HEAD:
        return None
    return _with_empty_list(rest)


def stages_in(text: str) -> tuple[str, ...]:
    """Return the stages that our block in the text has hooks for."""
    ours = text.partition(_BEGIN)[2].partition(_END)[0]
    return tuple(re.findall(r"gitgates pre-commit-hook ([a-z-]+)", ours))


def _block(stages: tuple[str, ...], column: int) -> str:
    hooks = "".join(
        _HOOK.format(stage=stage, files=str(stage not in _WITHOUT_FILES).lower())
        for stage in stages
    )
    lines = f"{_BEGIN}\n- repo: local\n  hooks:\n{hooks}{_END}\n"
    return "".join(" " * column + line for line in lines.splitlines(keepends=True))


def _with_empty_list(text: str) -> str:
    """Write `repos: []` where our block was all that the list held, because it may not be empty."""
    try:
        if yaml.safe_load(text).get("repos", ()) is not None:
            return text
    except (yaml.YAMLError, AttributeError):
        return text
    lines = text.splitlines(keepends=True)
    return "".join(f"repos: []{x[6:]}" if x.startswith("repos:") else x for x in lines)


def _open_list(text: str) -> tuple[str, _Span]:
    """Return the text with a list that lines can be added to, and where they go."""
    empty = _EMPTY_LIST.search(text)
    if empty is None:
        return text, _find_list(text)
    key = f"repos:{empty[1]}"
    opened = text[: empty.start()] + key + text[empty.end() :]
    return opened, _Span(empty.start() + len(key), 0)


def _find_list(text: str) -> _Span:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        tokens = list(yaml.scan(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ConfigError(
            f"{FILE}: is no valid YAML: {error}", "Mend it first; nothing was changed."
        ) from error
    pairs = root.value if isinstance(root, yaml.MappingNode) else ()
    node = next((value for key, value in pairs if key.value == "repos"), None)
    if not isinstance(node, yaml.SequenceNode):
        raise ConfigError(
            f"{FILE}: there is no list `repos`, which is where our hooks go",
            "Write the line `repos: []`, or remove the file; nothing was changed.",
        )
    if node.flow_style:
        raise ConfigError(
            f"{FILE}: the list `repos` stands in brackets, where no block of lines can go",
            "Write each repository on lines of its own, after a `-`; nothing was changed.",
        )
    # A list ends where the next thing begins; its last line is that of its last token.
    ends = [
        token.end_mark.index
        for token in tokens
        if node.start_mark.index <= token.start_mark.index < node.end_mark.index
        and not isinstance(token, yaml.BlockEndToken)
    ]
    return _Span(_line_end(text, max(ends)), node.start_mark.column)


def _line_end(text: str, offset: int) -> int:
    """Return the offset of the next line, or `offset` itself where a line begins there."""
    if text[:offset].endswith("\n"):
        return offset
    return text.find("\n", offset) + 1 or len(text)


def _require_appended(before: str, after: str, stages: tuple[str, ...]) -> None:
    try:
        wanted = yaml.safe_load(before)
    except yaml.YAMLError as error:  # well formed, and yet nothing that can be built
        raise ConfigError(f"{FILE}: is no valid YAML: {error}") from error
    wanted["repos"] = [
        *(wanted["repos"] or ()),
        *yaml.safe_load(_HEAD + _block(stages, 0))["repos"],
    ]
    try:
        if yaml.safe_load(after) == wanted:
            return
    except yaml.YAMLError:
        pass
    raise ConfigError(
        f"{FILE}: our hooks could not be added without changing what the file says",
        f"Add them by hand, at the end of `repos`:\n{_block(stages, 2)}",
    )
