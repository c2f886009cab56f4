"""`python -m benchmarks`: measure everything. With `--write`, the tables go into README.md."""

import pathlib
import sys

from rich.console import Console

from . import taylor
from .measure import machine
from .models import MODELS


README = pathlib.Path(__file__).with_name("README.md")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def main() -> None:
    """Print the tables as Markdown."""
    console = Console(stderr=True)
    sections = [f"Measured on: {machine()}."]
    for name in MODELS:
        results = taylor.measure_model(name, console)
        sections.append(f"### {name}, batch 100, float32\n\n{taylor.as_markdown(results)}")
    text = "\n\n".join(sections)
    print(text)
    if "--write" in sys.argv[1:]:
        before, rest = README.read_text().split(BEGIN)
        README.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
