"""Files as projects have them, for the tables of what weakens the checks."""

from __future__ import annotations

Files = tuple[tuple[str, str | None, str | None], ...]
Wanted = tuple[tuple[str, str, str], ...]
Case = tuple[str, Files, Wanted]

PY = """\
import pytest
from shop import add, sub


def test_add():
    assert add(1, 2) == 3
    assert add(0, 0) == 0


def test_sub():
    assert sub(3, 2) == 1


def test_raises():
    with pytest.raises(ValueError):
        add("a", 1)
"""
JS = """\
describe('sums', () => {
  it('adds', () => {
    expect(add(1, 2)).toBe(3);
    expect(add(0, 0)).toBe(0);
  });

  it('subtracts', async () => {
    expect(await sub(3, 2)).toBe(1);
  });
});
"""
GO = """\
package shop

func TestAdd(t *testing.T) {
	if Add(1, 2) != 3 {
		t.Fatal("wrong")
	}
}

func TestSub(t *testing.T) {
	require.Equal(t, 1, Sub(3, 2))
}
"""
RUST = """\
pub fn add(a: i32, b: i32) -> i32 { a + b }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(1, 2), 3);
    }

    #[tokio::test]
    async fn adds_nothing() {
        assert_eq!(add(0, 0), 0);
    }
}
"""
JAVA = """\
class SumTest {
    @Test
    void adds() {
        assertEquals(3, add(1, 2));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void subtracts(int n) {
        assertEquals(0, sub(n, n));
    }
}
"""
CSHARP = """\
public class SumTests
{
    [Fact]
    public void Adds()
    {
        Assert.Equal(3, Add(1, 2));
    }

    [Theory]
    [InlineData(1)]
    public async Task Subtracts(int n)
    {
        Assert.Equal(0, Sub(n, n));
    }
}
"""
RUBY = """\
RSpec.describe Sum do
  it "adds" do
    expect(add(1, 2)).to eq(3)
  end

  it "subtracts" do
    expect(sub(3, 2)).to eq(1)
  end
end
"""
PHP = """\
<?php
final class SumTest extends TestCase
{
    public function testAdds(): void
    {
        $this->assertSame(3, add(1, 2));
    }

    #[Test]
    public function subtracts(): void
    {
        $this->assertSame(1, sub(3, 2));
    }
}
"""
BATS = """\
@test "adds" {
  run add 1 2
  [ "$output" = 3 ]
}

@test "subtracts" {
  run sub 3 2
  [ "$output" = 1 ]
}
"""
CI = """\
on:
  push:
  pull_request:
jobs:
  check:
    steps:
      - uses: actions/checkout@v3
      - run: pip install ruff pytest
      - name: Test
        run: pytest -q --cov
      - run: |
          ruff check
          mypy
"""
PROJECT = """\
[project]
name = "shop"
dependencies = ["click"]

[tool.ruff]
line-length = 100

[tool.ruff.lint]
select = ["E", "F", "S"]
ignore = ["E203"]

[tool.mypy]
strict = true

[tool.pytest.ini_options]
testpaths = ["tests"]

[tool.coverage.report]
fail_under = 90
"""
HOOKS = """\
repos:
  - repo: https://github.com/astral-sh/ruff-pre-commit
    rev: v0.6.0
    hooks:
      - id: ruff
      - id: ruff-format
  - repo: local
    hooks:
      - id: mypy
        entry: mypy
        language: system
"""


def but(text: str, *changes: tuple[str, str]) -> str:
    """Return a text with each of these replaced; each must be there."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def up_to(text: str, mark: str) -> str:
    """Return the text before a mark."""
    assert mark in text, mark
    return text[: text.index(mark)]


def one(name: str, path: str, text: str, change: tuple[str, str], what: str, detail: str) -> Case:
    """Return a case of one file with one change, and one finding."""
    return name, ((path, text, but(text, change)),), ((path, what, detail),)
