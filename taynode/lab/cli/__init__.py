"""The command line. Nothing heavy is imported before a command is chosen."""

import sys
from collections.abc import Sequence


try:
    from cyclopts import App, Group
except ModuleNotFoundError as error:
    if error.name != "cyclopts":
        raise
    sys.exit("error: the command line is not installed. Do so with `pip install 'taynode[all]'`.")

from ... import __version__
from .errors import explain


app = App(
    name="taynode",
    help="Neural ODEs that are cheap to solve.",
    version=__version__,
    help_format="markdown",
    suppress_keyboard_interrupt=False,  # `main` prints the message of `Interrupted`
)
# The help has groups by what one wants to do.
app["--help"].group = app["--version"].group = "Others"
app.register_install_completion_command(
    help="Let the shell complete commands and flags: bash, zsh or fish.", group="Others"
)
# In the order of the help.
FIRST = Group("Start here", sort_key=1)
RUNS = Group("Train and look", sort_key=2)
CHEAP = Group("Make a trained model cheap", sort_key=3)
MANY = Group("Many runs", sort_key=4)
OTHERS = Group("Others", sort_key=5)
data = App(name="data", help="List, download and verify data sets.", group=OTHERS)
paper = App(name="paper", help="Reproduce the figures, tables and claims of the paper.", group=MANY)


def _add(group: App, commands: dict[str, str], heading: Group | None = None) -> None:
    """Add commands by their places. A module is imported only when its command is chosen."""
    for place, text in commands.items():
        name = place.partition(":")[2].rstrip("_")
        group.command(f"{__name__}.{place}", name=name, help=text, group=heading)


_add(
    app,
    {
        "demo:demo": "Train digits without and with a budget, and compare: two minutes.",
        "doctor:doctor": "Say what is found on this machine, for bug reports.",
    },
    FIRST,
)
_add(
    app,
    {
        "train:train": "Train a model, and record the run in a directory.",
        "launch:launch": "Train in several processes, on one machine or many.",
        "evaluate:evaluate": "Evaluate a trained model under any solver and tolerance.",
        "compare:compare": "Compare runs in a table and on a page.",
        "report:report": "Write an HTML page about runs, which opens offline.",
        "sample:sample": "Draw samples from a trained flow.",
        "sample:density": "Draw the density of a trained flow in the plane.",
    },
    RUNS,
)
_add(
    app,
    {
        "advise:advise": "Find the cheapest solver and tolerance for a trained model.",
        "ease:ease": "Make a trained model cheap to solve.",
    },
    CHEAP,
)
_add(
    app,
    {"sweep:sweep": "Train over a grid of settings, or search for the best ones."},
    MANY,
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
app.command(paper)
app.command(data)


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
