"""Tutorials: scripts in cells, executed, as pages.

A script in `examples/tutorials/` is in the percent format of jupytext, so editors and Jupyter open
it as a notebook. `# %% [markdown]` begins a cell of text, `# %%` one of code. The site shows what
the cells print, and their figures. `.cache` keeps pages until the script or the library changes.
"""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from website.blocks import execute
from website.outside import ROOT


SOURCES = ROOT / "examples" / "tutorials"
CACHE = ROOT / ".cache" / "tutorials"
CELL = re.compile(r"^# %%(?P<text> \[markdown\])?[^\n]*\n", re.M)


def cells(script: str) -> list[tuple[bool, str]]:
    """The cells of a script: whether each is text, and what is in it."""
    marks = [*CELL.finditer(script)]
    ends = [mark.start() for mark in marks[1:]] + [len(script)]
    found = []
    for mark, end in zip(marks, ends, strict=True):
        body = script[mark.end() : end].strip("\n")
        if mark["text"]:
            body = re.sub(r"^# ?", "", body, flags=re.M)
        found.append((bool(mark["text"]), body))
    return found


def render(path: Path) -> dict[str, str]:
    """Execute a script. The page as Markdown, and its figures, by their names."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams |= {"figure.figsize": (7, 3.5), "svg.fonttype": "none"}
    matplotlib.rcParams |= {"font.family": "sans-serif", "svg.hashsalt": path.stem}
    parts, out, names = [], {}, {"__name__": "__main__"}
    for is_text, body in cells(path.read_text()):
        if is_text:
            parts.append(body)
            continue
        parts.append(f"```python\n{body}\n```")
        if printed := execute(body, names, str(path)).rstrip():
            parts.append(f"```text\n{printed}\n```")
        for number in plt.get_fignums():
            name = f"{path.stem}-{len(out)}.svg"
            with io.StringIO() as file:
                plt.figure(number).savefig(
                    file, transparent=True, bbox_inches="tight", metadata={"Date": None}
                )
                out[name] = file.getvalue()
            parts.append(f"![Figure of the code above]({name}){{ .chart }}")
        plt.close("all")
    source = f"*This page is [{path.name}](../../examples/tutorials/{path.name}), executed.*"
    return {f"{path.stem}.md": "\n\n".join([*parts, source, ""]), **out}


def key(path: Path) -> str:
    """What a page depends on: the script, the library, and what executes it."""
    found = hashlib.sha256(path.read_bytes())
    library = (ROOT / "taynode").rglob("*.py")
    for file in sorted([*library, *(ROOT / "website").glob("*.py")]):
        if "lab" not in file.relative_to(ROOT).parts:
            found.update(file.read_bytes())
    return found.hexdigest()[:24]


def rendered(path: Path) -> dict[str, str]:
    """The page of a script and its figures: those in the cache, or new ones by a new process."""
    kept = CACHE / f"{path.stem}-{key(path)}.json"
    if not kept.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        for old in CACHE.glob(f"{path.stem}-*"):
            old.unlink()
        command = [sys.executable, "-m", "website.tutorials", str(path), str(kept)]
        subprocess.run(command, check=True, cwd=ROOT, stdout=sys.stderr)
    return json.loads(kept.read_text())


def all_rendered() -> dict[str, str]:
    """All pages and figures by their places on the site; as many at a time as there are cores."""
    paths = sorted(SOURCES.glob("*.py"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(rendered, paths)
        return {f"tutorials/{name}": text for pages in done for name, text in pages.items()}


def main(script: str, out: str) -> None:
    """Execute a script, and write what it gives to a file."""
    done = json.dumps(render(Path(script)))
    draft = Path(out).with_suffix(".draft")
    draft.write_text(done)
    draft.replace(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
