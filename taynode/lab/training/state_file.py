"""A pytree and a JSON header as the contents of one file, protected by a checksum.

The contents are a line of JSON, the bytes of all arrays, and the SHA-256 of both. The JSON holds
the header, the number of the format and the table of leaves.
"""

import hashlib
import json

from jaxtyping import PyTree

from ..files import Json
from .leaves import pack


# Format 1 was a directory. A later format must keep the first line and the checksum.
FORMAT = 2
DIGEST_SIZE = hashlib.sha256().digest_size


class Damaged(Exception):
    """The contents of a file cannot be used."""


def encode(header: Json, state: PyTree) -> bytes:
    """The contents of a file."""
    table, data = pack(state)
    header = {"format": FORMAT, **header, "leaves": table}
    body = json.dumps(header).encode() + b"\n" + data
    return body + hashlib.sha256(body).digest()


def decode(content: bytes) -> tuple[Json, memoryview]:
    """The header and the data for `unpack`. Raises `Damaged` if any bit has changed."""
    body = memoryview(content)[:-DIGEST_SIZE]
    if hashlib.sha256(body).digest() != content[-DIGEST_SIZE:]:
        raise Damaged("it is truncated or its contents have changed: the SHA-256 does not match")
    size = content.index(b"\n") + 1
    header = json.loads(content[:size])
    if header["format"] != FORMAT:
        raise Damaged(f"it has format {header['format']}, but only format {FORMAT} is supported")
    return header, body[size:]
