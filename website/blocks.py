"""The code of pages: found, executed, and compared with the output that the page shows.

Blocks of a page share their names, as the cells of a notebook do. A block of `text` right after a
block of `python` is what that block prints; the last line of a block is printed, too, if it is an
expression. The tests execute the blocks of all pages, and the tutorials are executed by the same
function when the site is built.

`python -m website.blocks PAGE...` executes pages and writes what they print into them.
"""

import ast
import contextlib
import io
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple


FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^(?P=indent)```$", re.M | re.S
)
SHOWN = re.compile(r"\n*^ *```text\n(?P<text>.*?)^ *```$", re.M | re.S)
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w)")
# Times and digits differ between machines, and evaluations by a step of the solver.
RTOL, ATOL = 0.1, 1e-3


class Block(NamedTuple):
    """A block of code, its language, its line on the page, and the output that is shown."""

    language: str
    code: str
    line: int
    shown: str | None
    end: int


def blocks(page: str, language: str = "python") -> list[Block]:
    """The blocks of a language on a page."""
    found = []
    for fence in FENCE.finditer(page):
        if fence["language"] == language:
            after = SHOWN.match(page, fence.end())
            shown = textwrap.dedent(after["text"]) if after else None
            line = page.count("\n", 0, fence.start()) + 2
            code = textwrap.dedent(fence["code"])
            found.append(Block(language, code, line, shown, fence.end()))
    return found


def execute(code: str, names: dict[str, Any], file: str = "<page>", line: int = 1) -> str:
    """Execute code as a cell of a notebook, and return what it prints."""
    tree = ast.parse("\n" * (line - 1) + code, file)
    *body, last = tree.body
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        if not isinstance(last, ast.Expr):
            exec(compile(tree, file, "exec"), names)
        else:
            exec(compile(ast.Module(body, []), file, "exec"), names)
            value = eval(compile(ast.Expression(last.value), file, "eval"), names)
        # Figures are shown, and their parts are not.
        if value is not None and not type(value).__module__.startswith("matplotlib"):
            out.write(f"{value}\n")
    return out.getvalue()


def differs(printed: str, shown: str) -> str | None:
    """How an output differs from the one that is shown; `None` if it does not."""
    words, expected = (" ".join(NUMBER.sub("#", text).split()) for text in (printed, shown))
    if words != expected:
        return f"the page shows\n{shown}\nbut the code prints\n{printed}"
    for new, old in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        if abs(float(new) - float(old)) > ATOL + RTOL * abs(float(old)):
            return f"the page shows {old}, but the code prints {new}:\n{printed}"
    return None


def run(page: str, file: str = "<page>") -> dict[str, Any]:
    """Execute the blocks of a page and compare their outputs; return the names they define."""
    # Classes that a page defines find their module, and so their annotations.
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        printed = execute(block.code, names, file, block.line)
        if block.shown is not None and (difference := differs(printed, block.shown)):
            raise AssertionError(f"{file}:{block.line}: {difference}")
    return names


def rewrite(page: str, file: str) -> str:
    """The page with the outputs that its blocks have now."""
    names: dict[str, Any] = {"__name__": "__main__"}
    parts, start = [], 0
    for block in blocks(page):
        printed = execute(block.code, names, file, block.line).rstrip("\n")
        parts.append(page[start : block.end])
        start = block.end
        if after := SHOWN.match(page, block.end):
            start = after.end()
        if printed:
            parts.append(f"\n\n```text\n{printed}\n```")
    return "".join([*parts, page[start:]])


def main(files: list[str]) -> None:
    """Execute pages, and write what they print into them."""
    for file in files:
        path = Path(file)
        path.write_text(rewrite(path.read_text(), file))
        sys.stderr.write(f"{file}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
