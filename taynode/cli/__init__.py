"""The command line: a thin skin, which imports nothing heavy before a command is chosen."""

import sys

from cyclopts import App

from .. import __version__
from .errors import explain


app = App(
    name="taynode",
    help="Neural ODEs that are cheap to solve.",
    version=__version__,
    help_format="markdown",
)
data = App(name="data", help="The data sets: what is here, and how to get the rest.")

# As strings: a command's module is imported when the command is chosen.
app.command("taynode.cli.demo:demo")
app.command("taynode.cli.train:train")
app.command("taynode.cli.evaluate:evaluate")
app.command("taynode.cli.compare:compare")
app.command("taynode.cli.report:report")
app.command(data)
data.command("taynode.cli.data:list_", name="list")
data.command("taynode.cli.data:fetch", name="fetch")
data.command("taynode.cli.data:verify", name="verify")


def main() -> None:
    """The entry point: runs a command, and turns errors into messages and exit codes."""
    try:
        app()
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        code, message = explain(error)
        if code is None:
            raise
        print(f"error: {message}", file=sys.stderr)
        sys.exit(code)
