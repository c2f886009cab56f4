"""The command line. Nothing heavy is imported before a command is chosen."""

import sys
from collections.abc import Sequence

from cyclopts import App

from ... import __version__
from .errors import explain


app = App(
    name="taynode",
    help="Neural ODEs that are cheap to solve.",
    version=__version__,
    help_format="markdown",
    suppress_keyboard_interrupt=False,  # `main` prints the message of `Interrupted`
)
data = App(name="data", help="List, download and verify data sets.")

paper = App(name="paper", help="Reproduce the figures, tables and claims of the paper.")


def _add(group: App, commands: dict[str, str]) -> None:
    """Add commands by their places. A module is imported only when its command is chosen."""
    for place, text in commands.items():
        name = place.partition(":")[2].rstrip("_")
        group.command(f"{__name__}.{place}", name=name, help=text)


_add(
    app,
    {
        "demo:demo": "Train digits without and with a budget, and compare: two minutes.",
        "train:train": "Train a model, and record the run in a directory.",
        "launch:launch": "Train in several processes, on one machine or many.",
        "evaluate:evaluate": "Evaluate a trained model under any solver and tolerance.",
        "advise:advise": "Find the cheapest solver and tolerance for a trained model.",
        "ease:ease": "Make a trained model cheap to solve.",
        "sweep:sweep": "Train over a grid of settings, or search for the best ones.",
        "compare:compare": "Compare runs in a table and on a page.",
        "report:report": "Write an HTML page about runs, which opens offline.",
        "sample:sample": "Draw samples from a trained flow.",
        "sample:density": "Draw the density of a trained flow in the plane.",
    },
)
_add(
    data,
    {
        "data:list_": "List the data sets, and where each of them is.",
        "data:fetch": "Download a data set.",
        "data:verify": "Compare the files of a data set with their checksums.",
    },
)
_add(
    paper,
    {
        "paper:list_": "List the studies.",
        "paper:run": "Run some studies.",
        "paper:all_": "Run all studies, and write the page about them.",
    },
)
app.command(data)
app.command(paper)


def main(words: Sequence[str] | None = None) -> None:
    """Run a command, and turn errors into messages and exit codes.

    `words` are the words of the command; those of the process by default.
    """
    try:
        app(words)
    except KeyboardInterrupt as stop:
        print(str(stop) or "Stopped.", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        code, message = explain(error)
        if code is None:
            raise
        print(f"error: {message}", file=sys.stderr)
        sys.exit(code)
