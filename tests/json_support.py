"""Any JSON, for properties. Few signs, but the odd ones: no tables of Unicode have to be made."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TEXTS = st.text("ab1 \n\0/é\ud800\udcff😀", max_size=12)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([1e999, -1e999, float("nan"), 0.5, 10**400, "passed", "blocked"]),
    TEXTS,
)
JSON: st.SearchStrategy[Any] = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
