"""The IDX format of MNIST: a magic number, the dimensions and the values, all big-endian."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from .errors import DataError


# The type of the values by the third byte of a file.
DTYPES = {
    0x08: np.dtype("u1"),
    0x09: np.dtype("i1"),
    0x0B: np.dtype(">i2"),
    0x0C: np.dtype(">i4"),
    0x0D: np.dtype(">f4"),
    0x0E: np.dtype(">f8"),
}


def read_idx(path: Path) -> np.ndarray:
    """The array in an IDX file, in the byte order of the machine. The file may be compressed.

    Raises `DataError` unless the file holds exactly one array.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except EOFError as error:
            raise DataError(f"{path} is truncated: it ends amid the compressed data.") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"{path} is corrupt: {error}.") from error
    return _parse(data, path)


def _parse(data: bytes, path: Path) -> np.ndarray:
    if len(data) < 4:
        raise DataError(f"{path} is truncated: expected at least 4 bytes, got {len(data)}.")
    zeros, code, num_axes = struct.unpack(">HBB", data[:4])
    if zeros != 0 or code not in DTYPES:
        raise DataError(f"{path} is no IDX file: its magic number is 0x{data[:4].hex()}.")
    begin = 4 + 4 * num_axes
    if len(data) < begin:
        expected = f"expected {num_axes} dimensions, got {(len(data) - 4) // 4}"
        raise DataError(f"{path} is truncated: {expected}.")
    shape = struct.unpack(f">{num_axes}I", data[4:begin])
    dtype = DTYPES[code]
    # Python's integers do not overflow if a dimension is wrong.
    expected, got = math.prod(shape) * dtype.itemsize, len(data) - begin
    if expected != got:
        problem = "truncated" if got < expected else "corrupt"
        message = f"shape {shape} takes {expected} bytes, got {got}"
        raise DataError(f"{path} is {problem}: {message}.")
    values = np.frombuffer(data, dtype, offset=begin).reshape(shape)
    return values.astype(dtype.newbyteorder("="))
