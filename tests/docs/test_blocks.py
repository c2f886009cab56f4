"""Finding, executing and comparing the code of pages."""

import pytest

from website import blocks, formulas, outside, references, tutorials


PAGE = """
```python
x = 2
```

!!! note

    ```python
    print(x, 0.5)
    x + 1
    ```

    ```text
    2 0.501
    3
    ```

```sh
ls
```
"""


def test_blocks_share_names_and_are_compared():
    found = blocks.blocks(PAGE)
    assert [block.line for block in found] == [3, 9]
    assert found[0].shown is None
    assert found[1].shown == "2 0.501\n3\n"
    assert blocks.run(PAGE)["x"] == 2
    assert [block.code for block in blocks.blocks(PAGE, "sh")] == ["ls\n"]


@pytest.mark.parametrize(
    ("old", "new"), [("0.501", "0.7"), ("2 0.501", "2 0.501 more"), ("3\n    ```", "4\n    ```")]
)
def test_another_output_is_an_error(old, new):
    with pytest.raises(AssertionError, match=r"page.md:9: the page shows"):
        blocks.run(PAGE.replace(old, new), "page.md")


def test_an_error_names_the_line_of_the_page():
    with pytest.raises(ZeroDivisionError) as caught:
        blocks.run("\n```python\n1 / 0\n```\n", "page.md")
    last = caught.traceback[-1]
    assert (str(last.path).rpartition("/")[2], last.lineno + 1) == ("page.md", 3)


def test_outputs_are_written_once():
    page = "```python\nprint(1)\n```\n\nText.\n"
    once = blocks.rewrite(page, "page.md")
    assert once == "```python\nprint(1)\n```\n\n```text\n1\n```\n\nText.\n"
    assert blocks.rewrite(once, "page.md") == once


def test_formulas_are_drawn_by_the_browser():
    page = r'<p><span class="arithmatex">\(a &lt; b\)</span></p>'
    drawn = formulas.as_mathml(page)
    assert "<math" in drawn
    assert "arithmatex" not in drawn


def test_links_to_the_repository_become_links_of_the_site():
    text = "[a](../benchmarks/README.md#adams) [b](../CHANGELOG.md) [c](faq.md) `[d](../LICENSE)`"
    expected = "[a](benchmarks.md#adams) [b](changelog.md) [c](faq.md) `[d](../LICENSE)`"
    assert outside.relinked(text, "choosing.md") == expected
    text = "[e](../../examples/cde.py) [f](https://example.org) [g](#here)"
    expected = "[e](../files/examples/cde.py) [f](https://example.org) [g](#here)"
    assert outside.relinked(text, "guides/cde.md") == expected
    assert outside.relinked("[h](docs/sweeps.md)", "changelog.md") == "[h](sweeps.md)"
    assert (
        outside.relinked("[i](fig1-toy.png)", "results.md")
        == "[i](files/results/laptop/fig1-toy.png)"
    )


def test_names_in_code_are_references():
    page = references.linked("<p><code>tn.Budget(nfe=40)</code> <code>x.y</code></p>")
    assert page.startswith('<p><autoref identifier="taynode.Budget" optional><code>tn.Budget(')
    assert page.count("autoref ") == 1
    for kept in ("<h2><code>tn.Budget</code></h2>", "<a href='x'><code>tn.Budget</code></a>"):
        assert references.linked(kept) == kept


def test_tutorials_are_scripts_in_cells():
    script = "# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nx = 1\n\n\n# %%\nprint(x)\n"
    expected = [(True, "# Title\n\nText."), (False, "x = 1"), (False, "print(x)")]
    assert tutorials.cells(script) == expected
    for path in tutorials.SOURCES.glob("*.py"):
        is_text, first = tutorials.cells(path.read_text())[0]
        assert is_text
        assert first.startswith("# ")
