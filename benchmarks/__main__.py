"""`python -m benchmarks`: measure everything, on one core and on all of them.

With `--write`, the tables go into README.md. With `--cores N`, only N cores are measured; with
`--only PART`, only that part.
"""

import argparse
import importlib
import os
import pathlib
import subprocess
import sys


README = pathlib.Path(__file__).with_name("README.md")
PARTS = ("taylor", "solve", "reverse", "training", "snippet", "flows", "latent", "loop", "peers")


def measure(part: str, num_cores: int) -> str:
    """The tables of one part, as Markdown, measured in this process."""
    # JAX sizes its thread pools when it is imported.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:num_cores]))

    from rich.console import Console

    from .measure import machine

    sections = importlib.import_module(f".{part}", __package__).sections(Console(stderr=True))
    return "\n\n".join([f"### On {num_cores} of {os.cpu_count()} cores\n\n{machine()}.", *sections])


def measure_apart(part: str, num_cores: int) -> str:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks", "--only", part, "--cores", str(num_cores)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def write(part: str, text: str) -> None:
    """Replace the tables of one part in README.md."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    before, rest = README.read_text().split(begin)
    README.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}")


def main() -> None:
    """Print the tables, and store them if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--cores", type=int, help="measure on this number of cores only")
    parser.add_argument("--only", choices=PARTS, help="measure this part only")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {README.name}")
    options = parser.parse_args()
    for part in [options.only] if options.only else PARTS:
        if options.cores:
            text = measure(part, options.cores)
        else:
            text = "\n\n".join(measure_apart(part, n) for n in sorted({1, os.cpu_count() or 1}))
        print(text)
        if options.write:
            write(part, text)


if __name__ == "__main__":
    main()
