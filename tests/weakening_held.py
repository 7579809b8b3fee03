"""Tests that hold less than they did: a part of the table in `weakening_cases`."""

from __future__ import annotations

from weakening_samples import CSHARP, GO, JAVA, JS, PHP, PY, RUBY, RUST, Case, but, one

from gitgates.weakening import finding as F  # noqa: N812 - one letter in a long table

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

HELD_LESS: tuple[Case, ...] = (
    # claims
    one(
        "== gone",
        T,
        PY,
        (ADD, "assert add(1, 2)"),
        F.WEAKER_ASSERTION,
        "in test_add: `assert add(1, 2) == 3` is now `assert add(1, 2)`",
    ),
    one(
        "is not None",
        T,
        PY,
        (ADD, "assert add(1, 2) is not None"),
        F.WEAKER_ASSERTION,
        "is not None",
    ),
    one(">= 0", T, PY, (ADD, "assert add(1, 2) >= 0"), F.WEAKER_ASSERTION, ">= 0"),
    one(
        "isinstance",
        T,
        PY,
        (ADD, "assert isinstance(add(1, 2), int)"),
        F.WEAKER_ASSERTION,
        "isinst",
    ),
    one(
        "in one of two",
        T,
        PY,
        (ADD, "assert add(1, 2) in (3, 4)"),
        F.WEAKER_ASSERTION,
        "in (3, 4)",
    ),
    one("or", T, PY, (ADD, "assert add(1, 2) == 3 or add(1, 2) == 4"), F.WEAKER_ASSERTION, "or"),
    one(
        "a whole text, then a part of it",
        T,
        PY,
        (ADD, 'assert "3" in add(1, 2)'),
        F.WEAKER_ASSERTION,
        '"3" in',
    ),
    one(
        "of a name",
        T,
        "def test_a():\n    x = f()\n    assert len(x) == 3\n",
        ("len(x) == 3", "len(x) >= 0"),
        F.WEAKER_ASSERTION,
        "`assert len(x) == 3` is now `assert len(x) >= 0`",
    ),
    one(
        "of an attribute",
        T,
        "def test_a():\n    x = f()\n    assert x.size == 3\n",
        ("x.size == 3", "x"),
        F.WEAKER_ASSERTION,
        "is now `assert x`",
    ),
    one(
        "the same on both sides",
        T,
        PY,
        (ADD, "assert add(1, 2) == add(1, 2)"),
        F.EMPTY_ASSERTION,
        "is now `assert add(1, 2) == add(1, 2)`",
    ),
    one(
        "on several lines",
        T,
        PY,
        (ADD, "assert (\n        add(1, 2)\n    )"),
        F.WEAKER_ASSERTION,
        "`assert add(1, 2) == 3` is now `assert ( add(1, 2) )`",
    ),
    one(
        "assertEqual to assertTrue",
        "test_a.py",
        UNIT,
        ("assertEqual(add(1, 2), 3)", "assertTrue(add(1, 2))"),
        F.WEAKER_ASSERTION,
        "assertTrue",
    ),
    one(
        "assertEqual to assertIsNotNone",
        "test_a.py",
        UNIT,
        ("assertEqual(add(1, 2), 3)", "assertIsNotNone(add(1, 2))"),
        F.WEAKER_ASSERTION,
        "NotNone",
    ),
    one(
        "assertEqual of the same",
        "test_a.py",
        UNIT,
        ("assertEqual(add(1, 2), 3)", "assertEqual(x, x)"),
        F.EMPTY_ASSERTION,
        "assertEqual(x, x)",
    ),
    one(
        "a call with anything",
        T,
        MOCK,
        ("assert_called_once_with('x')", "assert_called()"),
        F.WEAKER_ASSERTION,
        "assert_called()",
    ),
    one(
        "toBeDefined",
        "a.test.ts",
        JS,
        ("expect(add(1, 2)).toBe(3)", "expect(add(1, 2)).toBeDefined()"),
        F.WEAKER_ASSERTION,
        "in adds: `expect(add(1, 2)).toBe(3);` is now",
    ),
    one(
        "toBeTruthy, after await",
        "a.test.ts",
        JS,
        (".toBe(1)", ".toBeTruthy()"),
        F.WEAKER_ASSERTION,
        "Truthy",
    ),
    one(
        "not.toBeNull",
        "a.test.ts",
        JS,
        (".toBe(1)", ".not.toBeNull()"),
        F.WEAKER_ASSERTION,
        "not.toBeN",
    ),
    one(
        "a chain on several lines",
        "a.test.ts",
        JS,
        (".toBe(1)", "\n      .toBeDefined()"),
        F.WEAKER_ASSERTION,
        "is now `expect(await sub(3, 2))`",
    ),
    one(
        "anything",
        "a.test.ts",
        JS,
        (".toBe(1)", ".toEqual(expect.anything())"),
        F.WEAKER_ASSERTION,
        "any",
    ),
    one(
        "NotNil",
        "s_test.go",
        GO,
        ("Equal(t, 1, Sub(3, 2))", "NotNil(t, Sub(3, 2))"),
        F.WEAKER_ASSERTION,
        "NotNil",
    ),
    one(
        "assert! of a part",
        "src/lib.rs",
        RUST,
        ("assert_eq!(add(1, 2), 3)", "assert!(add(1, 2) > 0)"),
        F.WEAKER_ASSERTION,
        "assert!(add(1, 2) > 0);",
    ),
    one(
        "assert_eq! of the same",
        "src/lib.rs",
        RUST,
        ("assert_eq!(add(1, 2), 3)", "assert_eq!(add(1, 2), add(1, 2))"),
        F.EMPTY_ASSERTION,
        "add(1, 2), add(1, 2)",
    ),
    one(
        "assertNotNull",
        "SumTest.java",
        JAVA,
        ("assertEquals(3, add(1, 2))", "assertNotNull(add(1, 2))"),
        F.WEAKER_ASSERTION,
        "assertNotNull",
    ),
    one(
        "isNotNull",
        "SumTest.java",
        but(JAVA, ("assertEquals(3, add(1, 2))", "assertThat(add(1, 2)).isEqualTo(3)")),
        ("isEqualTo(3)", "isNotNull()"),
        F.WEAKER_ASSERTION,
        "isNotNull",
    ),
    one(
        "Assert.NotNull",
        "SumTests.cs",
        CSHARP,
        ("Equal(3, Add(1, 2))", "NotNull(Add(1, 2))"),
        F.WEAKER_ASSERTION,
        "NotNull",
    ),
    one(
        "Should().NotBeNull",
        "SumTests.cs",
        but(CSHARP, ("Assert.Equal(3, Add(1, 2))", "Add(1, 2).Should().Be(3)")),
        (".Be(3)", ".NotBeNull()"),
        F.WEAKER_ASSERTION,
        "NotBeNull",
    ),
    one(
        "be_truthy",
        "sum_spec.rb",
        RUBY,
        ("to eq(3)", "to be_truthy"),
        F.WEAKER_ASSERTION,
        "be_truthy",
    ),
    one(
        "not_to be_nil",
        "sum_spec.rb",
        RUBY,
        ("to eq(3)", "not_to be_nil"),
        F.WEAKER_ASSERTION,
        "be_nil",
    ),
    one(
        "assertNotEmpty",
        "tests/SumTest.php",
        PHP,
        ("assertSame(3, add(1, 2))", "assertNotEmpty(add(1, 2))"),
        F.WEAKER_ASSERTION,
        "assertNotEmpty",
    ),
    # errors
    one(
        "any error",
        T,
        PY,
        ("ValueError", "Exception"),
        F.WEAKER_ASSERTION,
        "in test_raises: expects `ValueError`, now any `Exception`",
    ),
    one(
        "one error more",
        T,
        PY,
        ("ValueError", "(ValueError, TypeError)"),
        F.WEAKER_ASSERTION,
        "TypeError",
    ),
    one(
        "any message",
        T,
        but(PY, ("(ValueError)", '(ValueError, match="no")')),
        (', match="no"', ""),
        F.WEAKER_ASSERTION,
        "now with any message",
    ),
    one(
        "assertRaises for assertRaisesRegex",
        "test_a.py",
        UNIT,
        ('Regex(ValueError, "no")', "(ValueError)"),
        F.WEAKER_ASSERTION,
        "now with any message",
    ),
    one(
        "toThrow of anything",
        "a.test.ts",
        but(JS, ("expect(add(1, 2)).toBe(3)", "expect(() => f(1)).toThrow(TypeError)")),
        ("TypeError", ""),
        F.WEAKER_ASSERTION,
        "toThrow()",
    ),
    one(
        "assertThrows",
        "SumTest.java",
        but(JAVA, ("assertEquals(3, ", "assertThrows(IOException.class, () -> ")),
        ("IOException", "Exception"),
        F.WEAKER_ASSERTION,
        "now any `Exception`",
    ),
    one(
        "Throws<>",
        "SumTests.cs",
        but(CSHARP, ("Assert.Equal(3, ", "Assert.Throws<IOException>(() => ")),
        ("IOException", "Exception"),
        F.WEAKER_ASSERTION,
        "now any `Exception`",
    ),
    one(
        "raise_error",
        "sum_spec.rb",
        but(RUBY, ("expect(add(1, 2)).to eq(3)", "expect { add }.to raise_error(IOError)")),
        ("(IOError)", ""),
        F.WEAKER_ASSERTION,
        "raise_error",
    ),
    one(
        "expectException",
        "tests/SumTest.php",
        but(PHP, ("assertSame(3, ", "expectException(IOError::class); f(")),
        ("IOError", "\\Throwable"),
        F.WEAKER_ASSERTION,
        "Throwable",
    ),
    # what is not reached, and what is caught
    one(
        "return",
        T,
        PY,
        ("    " + ADD, "    return\n    " + ADD),
        F.NOT_REACHED,
        "in test_add: `return` before them",
    ),
    one(
        "return in an if",
        T,
        PY,
        ("    " + ADD, '    if os.getenv("CI"):\n        return\n    ' + ADD),
        F.NOT_REACHED,
        'if os.getenv(" "): return',
    ),
    one(
        "return between assertions",
        T,
        PY,
        ("    assert add(0", "    return\n    assert add(0"),
        F.NOT_REACHED,
        "return",
    ),
    one(
        "return;",
        "a.test.ts",
        JS,
        ("    expect(add(1", "    return;\n    expect(add(1"),
        F.NOT_REACHED,
        "return;",
    ),
    one(
        "if (...) return;",
        "a.test.ts",
        JS,
        ("    expect(add(1", "    if (isCI()) return;\n    expect(add(1"),
        F.NOT_REACHED,
        "if (isCI()) return;",
    ),
    one(
        "return of Go",
        "s_test.go",
        GO,
        ("\trequire", "\tif testing.Short() {\n\t\treturn\n\t}\n\trequire"),
        F.NOT_REACHED,
        "testing.Short()",
    ),
    one(
        "return; of Rust",
        "src/lib.rs",
        RUST,
        ("        assert_eq!(add(1", "        return;\n        assert_eq!(add(1"),
        F.NOT_REACHED,
        "return;",
    ),
    one(
        "return; of Java",
        "SumTest.java",
        JAVA,
        ("        assertEquals(3", "        if (true) return;\n        assertEquals(3"),
        F.NOT_REACHED,
        "return;",
    ),
    one(
        "except AssertionError",
        T,
        PY,
        (SUB, f"    try:\n    {SUB}    except AssertionError:\n        pass\n"),
        F.SWALLOWED,
        "in test_sub: `except AssertionError:`",
    ),
    one(
        "except",
        T,
        PY,
        (SUB, f"    try:\n    {SUB}    except:\n        print('no')\n"),
        F.SWALLOWED,
        "except:",
    ),
    one(
        "except Exception as",
        T,
        PY,
        (SUB, f"    try:\n    {SUB}    except Exception as e: log(e)\n"),
        F.SWALLOWED,
        "except Exception as e: log(e)",
    ),
    one(
        "suppress",
        T,
        PY,
        (SUB, f"    with contextlib.suppress(AssertionError):\n    {SUB}"),
        F.SWALLOWED,
        "suppress",
    ),
    one(
        "catch {}",
        "a.test.ts",
        JS,
        (
            "    expect(add(1, 2)).toBe(3);\n",
            "    try {\n      expect(add(1, 2)).toBe(3);\n    } catch (e) {}\n",
        ),
        F.SWALLOWED,
        "catch (e)",
    ),
    one(
        "catch of Java",
        "SumTest.java",
        JAVA,
        (
            "        assertEquals(3, add(1, 2));\n",
            (
                "        try {\n            assertEquals(3, add(1, 2));\n"
                "        } catch (Throwable e) {\n            log(e);\n        }\n"
            ),
        ),
        F.SWALLOWED,
        "catch (Throwable e)",
    ),
    # cases
    one(
        "rows of parametrize",
        T,
        ROWS,
        ("[(1, 2), (2, 3), (3, 4)]", "[(1, 2)]"),
        F.CASES_GONE,
        "of test_next: 3 → 1, without `(2,3)`, `(3,4)`",
    ),
    one(
        "a row put into a comment",
        T,
        but(ROWS, ("[(1, 2), ", "[\n    (1, 2),\n    "), ("(3, 4)]", "(3, 4),\n]")),
        ("    (2, 3), (3", "    (2, 3),\n    # (3"),
        F.CASES_GONE,
        "3 → 2, without `(3,4)`",
    ),
    one(
        "rows of a constant",
        T,
        "ROWS = [1, 2, 3]\n" + but(ROWS, ("[(1, 2), (2, 3), (3, 4)]", "ROWS")),
        ("[1, 2, 3]", "[1]"),
        F.CASES_GONE,
        "3 → 1, without `2`, `3`",
    ),
    one(
        "rows of each",
        "a.test.ts",
        EACH,
        ("  [2, 3],\n", ""),
        F.CASES_GONE,
        "of %i: 2 → 1, without `[2,3]`",
    ),
    one("rows of a table", "a.test.ts", TABLE, ("  ${2} | ${3}\n", ""), F.CASES_GONE, "${2}|${3}"),
    one(
        "rows of Go",
        "s_test.go",
        GO_ROWS,
        ("\t\t{2, 3},\n", ""),
        F.CASES_GONE,
        "of TestNext: 2 → 1, without `{2,3}`",
    ),
    one(
        "values of Java",
        "SumTest.java",
        JAVA,
        ("{1, 2}", "{1}"),
        F.CASES_GONE,
        "of subtracts: 2 → 1",
    ),
    one(
        "InlineData",
        "SumTests.cs",
        but(CSHARP, ("    [InlineData(1)]\n", "    [InlineData(1)]\n    [InlineData(2)]\n")),
        ("    [InlineData(2)]\n", ""),
        F.CASES_GONE,
        "without `(2)`",
    ),
)
