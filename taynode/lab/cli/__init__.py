"""The command line: a thin skin, which imports nothing heavy before a command is chosen."""

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
    suppress_keyboard_interrupt=False,  # it knows more than cyclopts would say
)
data = App(name="data", help="The data sets: what is here, and how to get the rest.")

# As strings: a command's module is imported when the command is chosen.
app.command(
    f"{__name__}.demo:demo",
    help="Train digits without and with regularization, and compare: two minutes.",
)
app.command(f"{__name__}.train:train", help="Train a model, and record the run to a directory.")
app.command(
    f"{__name__}.evaluate:evaluate",
    help="Evaluate a trained model under any solver and tolerance.",
)
app.command(f"{__name__}.compare:compare", help="A table of some runs, and the page about them.")
app.command(f"{__name__}.report:report", help="One HTML page about some runs, which opens offline.")
app.command(f"{__name__}.sample:sample", help="Draw samples from a trained flow.")
app.command(f"{__name__}.sample:density", help="Draw the density of a trained flow in the plane.")
app.command(data)
data.command(
    f"{__name__}.data:list_",
    name="list",
    help="What data sets there are, and which of them are here.",
)
data.command(f"{__name__}.data:fetch", name="fetch", help="Download a data set.")
data.command(
    f"{__name__}.data:verify",
    name="verify",
    help="Check the files of a data set against their checksums.",
)

paper = App(name="paper", help="The paper, reproduced: its figures and tables, and its claims.")
app.command(paper)
paper.command(f"{__name__}.paper:list_", name="list", help="What studies there are.")
paper.command(f"{__name__}.paper:run", name="run", help="Do some studies.")
paper.command(f"{__name__}.paper:all_", name="all", help="Do all studies, and the page about them.")


def main(words: Sequence[str] | None = None) -> None:
    """The entry point: runs a command, and turns errors into messages and exit codes.

    The command is that of the process, unless its words are given.
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
