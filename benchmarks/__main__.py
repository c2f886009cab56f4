"""`python -m benchmarks`: measure everything, on one core and on all of them.

With `--write`, the tables go into README.md. With `--cores N`, only N cores are measured.
"""

import argparse
import os
import pathlib
import subprocess
import sys


README = pathlib.Path(__file__).with_name("README.md")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def measure(num_cores: int) -> str:
    """The tables, as Markdown, measured in this process."""
    # JAX sizes its thread pools when it is imported.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:num_cores]))

    from rich.console import Console

    from . import taylor
    from .measure import machine
    from .models import MODELS

    console = Console(stderr=True)
    sections = [f"### On {num_cores} of {os.cpu_count()} cores\n\n{machine()}."]
    for name in MODELS:
        results = taylor.measure_model(name, console)
        sections.append(f"#### {name}, batch 100, float32\n\n{taylor.as_markdown(results)}")
    return "\n\n".join(sections)


def measure_apart(num_cores: int) -> str:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks", "--cores", str(num_cores)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def main() -> None:
    """Print the tables, and store them if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--cores", type=int, help="measure on this number of cores only")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {README.name}")
    options = parser.parse_args()
    if options.cores:
        text = measure(options.cores)
    else:
        text = "\n\n".join(measure_apart(n) for n in sorted({1, os.cpu_count() or 1}))
    print(text)
    if options.write:
        before, rest = README.read_text().split(BEGIN)
        README.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
