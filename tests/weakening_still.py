"""Tests that hold as much as they did, and look as if they held less: for `weakening_fine`."""

from __future__ import annotations

from weakening_samples import JS, PY, Files, but

T = "tests/test_sums.py"
ADD = "assert add(1, 2) == 3"
SUB = "    assert sub(3, 2) == 1\n"
ROWS = """\
@pytest.mark.parametrize(("a", "b"), [(1, 2), (2, 3), (3, 4)])
def test_next(a, b):
    assert next(a) == b
"""
EACH = """\
it.each([
  [1, 2],
  [2, 3],
])('%i', (a, b) => {
  expect(next(a)).toBe(b);
});
"""
TABLE = """\
it.each`
  a | b
  ${1} | ${2}
  ${2} | ${3}
`('next', ({ a, b }) => {
  expect(next(a)).toBe(b);
});
"""
GO_ROWS = """\
func TestNext(t *testing.T) {
	for _, c := range []struct{ a, b int }{
		{1, 2},
		{2, 3},
	} {
		require.Equal(t, c.b, Next(c.a))
	}
}
"""
UNIT = """\
class SumTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)
        with self.assertRaisesRegex(ValueError, "no"):
            add("a", 1)
"""
MOCK = "def test_sends():\n    send(post)\n    post.assert_called_once_with('x')\n"
RETRY = """\
def test_sub():
    for attempt in range(3):
        try:
            assert sub(3, 2) == 1
        except AssertionError:
            if attempt == 2:
                raise
"""

HELD_STILL: tuple[tuple[str, Files], ...] = (
    # merged, split, or said otherwise
    (
        "two assertions merged into a table",
        (
            (
                T,
                PY,
                but(
                    PY,
                    (
                        "def test_add():\n",
                        (
                            '@pytest.mark.parametrize(("a", "b", "c"), [(1, 2, 3), (0, 0, 0)])\n'
                            "def test_add(a, b, c):\n"
                        ),
                    ),
                    ("    assert add(0, 0) == 0\n", ""),
                    ("add(1, 2) == 3", "add(a, b) == c"),
                ),
            ),
        ),
    ),
    (
        "two assertions merged into a loop",
        (
            (
                T,
                PY,
                but(
                    PY,
                    (
                        "    assert add(1, 2) == 3\n    assert add(0, 0) == 0\n",
                        (
                            "    for a, b, c in [(1, 2, 3), (0, 0, 0)]:\n"
                            "        assert add(a, b) == c\n"
                        ),
                    ),
                ),
            ),
        ),
    ),
    (
        "two assertions merged into one of a tuple",
        (
            (
                T,
                PY,
                but(
                    PY,
                    (
                        "    assert add(1, 2) == 3\n    assert add(0, 0) == 0\n",
                        "    assert (add(1, 2), add(0, 0)) == (3, 0)\n",
                    ),
                ),
            ),
        ),
    ),
    (
        "two assertions joined by and",
        (
            (
                T,
                PY,
                but(
                    PY,
                    (
                        "    assert add(1, 2) == 3\n    assert add(0, 0) == 0\n",
                        "    assert add(1, 2) == 3 and add(0, 0) == 0\n",
                    ),
                ),
            ),
        ),
    ),
    (
        "two assertions without values joined by and",
        (
            (
                T,
                "def test_a():\n    x = f()\n    assert x.ok\n    assert x.done\n",
                "def test_a():\n    x = f()\n    assert x.ok and x.done\n",
            ),
        ),
    ),
    (
        "two assertions merged into one of a dict",
        (
            (
                T,
                'def test_a():\n    x = f()\n    assert x["a"] == 1\n    assert x["b"] == 2\n',
                'def test_a():\n    x = f()\n    assert x == {"a": 1, "b": 2}\n',
            ),
        ),
    ),
    (
        "two assertions merged into one of a list",
        (
            (
                "a.test.ts",
                JS,
                but(
                    JS,
                    (
                        "    expect(add(1, 2)).toBe(3);\n    expect(add(0, 0)).toBe(0);\n",
                        "    expect([add(1, 2), add(0, 0)]).toEqual([3, 0]);\n",
                    ),
                ),
            ),
        ),
    ),
    (
        "two tests merged into a table",
        (
            (
                T,
                (
                    "def test_one():\n    assert add(1, 2) == 3\n\n"
                    "\ndef test_two():\n    assert add(2, 3) == 5\n"
                ),
                (
                    '@pytest.mark.parametrize(("a", "b", "c"), [(1, 2, 3), (2, 3, 5)])\n'
                    "def test_add(a, b, c):\n    assert add(a, b) == c\n"
                ),
            ),
        ),
    ),
    (
        "a table split into tests",
        (
            (
                T,
                ROWS,
                but(ROWS, (", (2, 3), (3, 4)", "")) + "\ndef test_two():\n    assert next(2) == 3\n"
                "\ndef test_three():\n    assert next(3) == 4\n",
            ),
        ),
    ),
    (
        "a row moved to another test",
        (
            (
                T,
                ROWS + but(ROWS, ("_next", "_other"), ("(1, 2), (2, 3), (3, 4)", "(5, 6)")),
                but(ROWS, (", (3, 4)", ""))
                + but(ROWS, ("_next", "_other"), ("(1, 2), (2, 3), (3, 4)", "(5, 6), (3, 4)")),
            ),
        ),
    ),
    ("rows with names", ((T, ROWS, but(ROWS, ("(1, 2),", 'pytest.param(1, 2, id="one"),'))),)),
    (
        "rows on lines of their own",
        ((T, ROWS, but(ROWS, ("[(1, 2), ", "[\n    (1, 2),\n    "), ("(3, 4)]", "(3, 4),\n]"))),),
    ),
    ("rows that are others", ((T, ROWS, but(ROWS, ("(3, 4)", "(9, 10)"))),)),
    (
        "rows that are computed now",
        ((T, ROWS, but(ROWS, ("[(1, 2), (2, 3), (3, 4)]", "load_rows()"))),),
    ),
    (
        "rows put into a constant",
        (
            (
                T,
                ROWS,
                "ROWS = [(1, 2), (2, 3), (3, 4)]\n"
                + but(ROWS, ("[(1, 2), (2, 3), (3, 4)]", "ROWS")),
            ),
        ),
    ),
    (
        "a loop that makes less",
        (
            (
                T,
                "def test_a():\n    for x in (1, 2):\n        make(x)\n    assert f() == 2\n",
                "def test_a():\n    for x in (1,):\n        make(x)\n    assert f() == 1\n",
            ),
        ),
    ),
    (
        "a row more of Go",
        (("s_test.go", GO_ROWS, but(GO_ROWS, ("\t\t{2, 3},\n", "\t\t{2, 3},\n\t\t{3, 4},\n"))),),
    ),
    # what is claimed
    (
        "the result has a name",
        ((T, PY, but(PY, (ADD, "result = add(1, 2)\n    assert result == 3"))),),
    ),
    (
        "a check more",
        (
            (
                T,
                PY,
                but(
                    PY, (ADD, "result = add(1, 2)\n    assert result\n    assert result.value == 3")
                ),
            ),
        ),
    ),
    (
        "first that it is there, then what it is",
        ((T, PY, but(PY, (ADD, "assert add(1, 2) is not None\n    " + ADD))),),
    ),
    (
        "a loose one, and the exact one in another test",
        ((T, PY, but(PY, (ADD, "assert add(1, 2)")) + f"\n\ndef test_exact():\n    {ADD}\n"),),
    ),
    (
        "== True",
        ((T, "def test_a():\n    assert f(1) == True\n", "def test_a():\n    assert f(1)\n"),),
    ),
    (
        "toBe(true)",
        (("a.test.ts", but(JS, ("toBe(1)", "toBe(true)")), but(JS, ("toBe(1)", "toBeTruthy()"))),),
    ),
    ("stricter", ((T, but(PY, (ADD, "assert add(1, 2)")), PY),)),
    ("the sides changed", ((T, PY, but(PY, (ADD, "assert 3 == add(1, 2)"))),)),
    ("approximately", ((T, PY, but(PY, (ADD, "assert add(1, 2) == pytest.approx(3)"))),)),
    ("toEqual for toBe", (("a.test.ts", JS, but(JS, ("toBe(3)", "toEqual(3)"))),)),
    (
        "from unittest to pytest",
        (("test_a.py", UNIT, but(UNIT, ("self.assertEqual(add(1, 2), 3)", ADD))),),
    ),
    (
        "equal to itself, in a new test",
        ((T, PY, PY + "\n\ndef test_eq():\n    assert Sum(1) == Sum(1)\n"),),
    ),
    (
        "a test that was loose before",
        ((T, "def test_a():\n    assert f(1)\n", "def test_a():\n    assert f(2)\n"),),
    ),
    ("an argument more", ((T, PY, but(PY, ("add(1, 2) == 3", "add(1, 2, base=10) == 3"))),)),
    (
        "what was called, and with what",
        ((T, MOCK, but(MOCK, ("assert_called_once_with('x')", "assert_called_once_with('y')"))),),
    ),
    (
        "what was called, asked otherwise",
        (
            (
                T,
                MOCK,
                but(
                    MOCK,
                    (
                        "post.assert_called_once_with('x')",
                        "post.assert_called_once()\n    assert post.call_args == call('x')",
                    ),
                ),
            ),
        ),
    ),
    # what is raised
    ("another error", ((T, PY, but(PY, ("ValueError", "TypeError"))),)),
    ("a narrower error", ((T, but(PY, ("ValueError", "Exception")), PY),)),
    (
        "the message, by an assertion",
        (
            (
                T,
                but(PY, ("(ValueError)", '(ValueError, match="no")')),
                but(PY, ("(ValueError):", "(ValueError) as caught:"))
                + '    assert "no" in str(caught.value)\n',
            ),
        ),
    ),
    # what comes back, and what is caught
    ("return after them", ((T, PY, but(PY, (SUB, SUB + "    return\n"))),)),
    (
        "a function in a test",
        (
            (
                T,
                PY,
                but(
                    PY,
                    (
                        SUB,
                        "    def fake(x):\n        if x:\n            return\n        go()\n\n"
                        + SUB,
                    ),
                ),
            ),
        ),
    ),
    ("a value is returned", (("a.test.ts", JS, but(JS, ("expect(add(1", "return expect(add(1"))),)),
    (
        "a callback",
        (
            (
                "a.test.ts",
                JS,
                but(
                    JS,
                    (
                        "    expect(add(1",
                        "    on(() => {\n      return;\n    });\n    expect(add(1",
                    ),
                ),
            ),
        ),
    ),
    (
        "a try that is closed",
        ((T, PY, but(PY, (SUB, f"    try:\n    {SUB}    finally:\n        close()\n"))),),
    ),
    (
        "a try around what is no assertion",
        (
            (
                T,
                PY,
                but(
                    PY, (SUB, f"    try:\n        go()\n    except Exception:\n        pass\n{SUB}")
                ),
            ),
        ),
    ),
    (
        "raised again",
        (
            (
                T,
                PY,
                but(
                    PY,
                    (
                        SUB,
                        (
                            f"    try:\n    {SUB}    except AssertionError:\n"
                            f"        show()\n        raise\n"
                        ),
                    ),
                ),
            ),
        ),
    ),
    ("tried again", ((T, "def test_sub():\n" + SUB, RETRY),)),
    (
        "a narrow handler",
        ((T, PY, but(PY, (SUB, f"    try:\n    {SUB}    except KeyError:\n        pass\n"))),),
    ),
    (
        "it must not be reached",
        (
            (
                T,
                PY,
                but(
                    PY,
                    (
                        SUB,
                        "    try:\n        sub('a', 1)\n"
                        "        pytest.fail('no error')\n    except Exception:\n        pass\n"
                        + SUB,
                    ),
                ),
            ),
        ),
    ),
    (
        "a catch that looks",
        (
            (
                "a.test.ts",
                JS,
                but(
                    JS,
                    (
                        "    expect(add(1, 2)).toBe(3);\n",
                        (
                            "    try {\n      expect(add(1, 2)).toBe(3);\n"
                            "    } catch (e) {\n      expect(e).toBe(1);\n    }\n"
                        ),
                    ),
                ),
            ),
        ),
    ),
    (
        "a test with a loose one more",
        ((T, PY, but(PY, (SUB, SUB + "    assert sub(1, 1) >= 0\n"))),),
    ),
    (
        "an exact one of the same, told otherwise",
        ((T, PY, but(PY, (ADD, "assert str(add(1, 2)) == '3'"))),),
    ),
    ("all of a list", ((T, PY, but(PY, (ADD, "assert all(x == 3 for x in add(1, 2))"))),)),
    ("a helper of ours", ((T, PY, but(PY, (ADD, "assert_sum(add, (1, 2), 3)"))),)),
    ("a flag for a comparison", ((T, PY, but(PY, (ADD, "assert add(1, 2).is_integer()"))),)),
    ("a table of other values", (("a.test.ts", EACH, but(EACH, ("[2, 3]", "[4, 5]"))),)),
    (
        "describe.each with a row more",
        (("a.test.ts", EACH, but(EACH, ("  [2, 3],", "  [2, 3],\n  [4, 5],"))),),
    ),
    (
        "toThrow with an error more",
        (
            (
                "a.test.ts",
                "it('a', () => {\n  expect(f).toThrow();\n});\n",
                "it('a', () => {\n  expect(f).toThrow(E);\n});\n",
            ),
        ),
    ),
    (
        "an if for a type checker",
        (
            (
                "a.test.ts",
                JS,
                but(
                    JS,
                    ("    expect(add(0", "    if (!x) {\n      return;\n    }\n    expect(add(0"),
                ),
            ),
        ),
    ),
    (
        "next to a return of a fixture",
        ((T, PY, "@pytest.fixture\ndef shop():\n    return\n\n\n" + PY),),
    ),
    (
        "a return of a generator in a test",
        ((T, PY, but(PY, (SUB, "    def feed():\n        return\n        yield\n\n" + SUB))),),
    ),
)
