"""`taynode data`."""

import dataclasses
import sys
from typing import Annotated

from cyclopts import Parameter

from .tables import JsonOutput, print_rows


DataName = Annotated[str, Parameter(help="Name of the data set.")]


def list_(*, json_output: JsonOutput = False) -> None:
    """List the data sets, and where each of them is."""
    from ..data.manage import list_data

    print_rows([dataclasses.asdict(status) for status in list_data()], as_json=json_output)


def fetch(name: DataName) -> None:
    """Download a data set, or continue a download that was cut off."""
    from ..data.manage import fetch as fetch_data

    for path in fetch_data(name):
        print(path)


def verify(name: DataName, *, json_output: JsonOutput = False) -> None:
    """Compare the files of a data set with their checksums."""
    from ..data.manage import verify as verify_data

    rows = [dataclasses.asdict(status) for status in verify_data(name)]
    print_rows(rows, as_json=json_output)
    if any(row["state"] != "ok" for row in rows):
        sys.exit(1)
