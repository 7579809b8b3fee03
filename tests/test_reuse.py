"""A result stands for a later run only where gate and content are provably the same."""

from __future__ import annotations

from gitgates.engine.reuse import Blob, Content, ReuseKey, paths_key, whole_tree_key

TREE = Content(tree="1" * 40, provable=True)
A = Blob(path="a", mode="100644", id="a" * 40)
B = Blob(path="b", mode="100755", id="b" * 40)


def test_the_same_provable_tree_before_and_after_is_the_key() -> None:
    assert whole_tree_key("test", "d", (TREE, TREE)) == ReuseKey("test", "d", tree="1" * 40)


def test_a_tree_that_changed_meanwhile_is_no_key() -> None:
    assert whole_tree_key("test", "d", (TREE, TREE._replace(tree="2" * 40))) is None


def test_an_unprovable_tree_is_no_key() -> None:
    doubtful = TREE._replace(provable=False)
    assert whole_tree_key("test", "d", (doubtful, doubtful)) is None
    assert whole_tree_key("test", "d", (TREE, doubtful)) is None
    assert whole_tree_key("test", "d", (doubtful, TREE)) is None
    assert whole_tree_key("test", "d", (TREE._replace(tree=""),) * 2) is None


def test_gate_and_definition_are_part_of_it() -> None:
    keys = {whole_tree_key(gate, definition, (TREE, TREE)) for gate in "ab" for definition in "cd"}
    assert len(keys) == 4


def test_the_key_of_paths_is_their_blobs_in_any_order() -> None:
    expected = ReuseKey("lint", "d", blobs=(A, B))
    assert paths_key("lint", "d", ({"a": A, "b": B}, {"b": B, "a": A})) == expected


def test_paths_that_changed_meanwhile_are_no_key() -> None:
    assert paths_key("lint", "d", ({"a": A}, {"a": A._replace(mode="100755")})) is None
    assert paths_key("lint", "d", ({"a": A}, {"a": A, "b": B})) is None
    assert paths_key("lint", "d", ({}, {})) is None


def test_a_path_that_is_not_there_is_part_of_the_key() -> None:
    gone = {"a": A, "b": B._replace(mode="", id="")}
    key = paths_key("lint", "d", (gone, gone))
    assert key is not None
    assert key != paths_key("lint", "d", ({"a": A}, {"a": A}))
