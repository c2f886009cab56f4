"""`taynode data`."""

import json
import sys
from typing import Annotated

from cyclopts import Parameter

from .tables import print_rows


def list_(*, json_output: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """What data sets there are, and which of them are here.

    Parameters
    ----------
    json_output
        Print JSON, and nothing else.

    """
    import dataclasses

    from ..data.manage import list_data

    rows = [dataclasses.asdict(status) for status in list_data()]
    if json_output:
        print(json.dumps(rows, default=str))
        return
    print_rows(rows)


def fetch(name: str) -> None:
    """Download a data set, or go on with a download that was cut off.

    Parameters
    ----------
    name
        Of the data set.

    """
    from ..data.manage import fetch as fetch_data

    for path in fetch_data(name):
        print(path)


def verify(name: str, *, json_output: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """Check the files of a data set against their checksums.

    Parameters
    ----------
    name
        Of the data set.
    json_output
        Print JSON, and nothing else.

    """
    import dataclasses

    from ..data.manage import verify as verify_data

    rows = [dataclasses.asdict(status) for status in verify_data(name)]
    if json_output:
        print(json.dumps(rows, default=str))
    else:
        print_rows(rows)
    if any(row["state"] != "ok" for row in rows):
        sys.exit(1)
