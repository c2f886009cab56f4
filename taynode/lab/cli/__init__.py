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

# As strings: a command's module is imported when the command is chosen.
app.command(
    f"{__name__}.demo:demo",
    help="Train digits without and with regularization, and compare: two minutes.",
)
app.command(f"{__name__}.train:train", help="Train a model, and record the run in a directory.")
app.command(
    f"{__name__}.evaluate:evaluate",
    help="Evaluate a trained model under any solver and tolerance.",
)
app.command(f"{__name__}.compare:compare", help="Compare runs in a table and on a page.")
app.command(f"{__name__}.report:report", help="Write an HTML page about runs, which opens offline.")
app.command(f"{__name__}.sample:sample", help="Draw samples from a trained flow.")
app.command(f"{__name__}.sample:density", help="Draw the density of a trained flow in the plane.")
app.command(data)
data.command(
    f"{__name__}.data:list_",
    name="list",
    help="List the data sets, and where each of them is.",
)
data.command(f"{__name__}.data:fetch", name="fetch", help="Download a data set.")
data.command(
    f"{__name__}.data:verify",
    name="verify",
    help="Compare the files of a data set with their checksums.",
)

paper = App(name="paper", help="Reproduce the figures, tables and claims of the paper.")
app.command(paper)
paper.command(f"{__name__}.paper:list_", name="list", help="List the studies.")
paper.command(f"{__name__}.paper:run", name="run", help="Run some studies.")
paper.command(
    f"{__name__}.paper:all_", name="all", help="Run all studies, and write the page about them."
)


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
