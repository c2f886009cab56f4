"""The contents of a checkpoint file: a line of JSON, the bytes of all arrays, a SHA-256 of both.

The first line and the checksum are the same in every format, so that files of a later version are
recognized.
"""

import hashlib
import json
from typing import Any


# Format 1 was a directory.
FORMAT = 2
DIGEST_SIZE = hashlib.sha256().digest_size


class Damaged(Exception):
    """A checkpoint file cannot be used."""


def encode(header: dict[str, Any], data: bytes) -> bytes:
    """The contents of a file. `header` must be something that JSON can hold."""
    body = json.dumps({"format": FORMAT, **header}).encode() + b"\n" + data
    return body + hashlib.sha256(body).digest()


def decode(content: bytes) -> tuple[dict[str, Any], memoryview]:
    """The inverse of `encode`. Raises `Damaged` if any bit of the contents has changed."""
    body = memoryview(content)[:-DIGEST_SIZE]
    if hashlib.sha256(body).digest() != content[-DIGEST_SIZE:]:
        raise Damaged("it is truncated or its contents have changed: the SHA-256 does not match")
    size = content.index(b"\n") + 1
    header = json.loads(content[:size])
    if header["format"] != FORMAT:
        raise Damaged(f"it has format {header['format']}, but only format {FORMAT} is supported")
    return header, body[size:]
