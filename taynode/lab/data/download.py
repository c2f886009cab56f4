"""Downloads that resume where they broke off, and change nothing unless they succeed."""

import time
from pathlib import Path
from typing import Any

from .check import sha256
from .errors import DataError
from .lock import exclusive
from .progress import Progress, silent
from .registry import RemoteFile


# Every mirror gets a turn in each round; after a round, the pause doubles.
ROUNDS = 4
PAUSE = 0.5
# Seconds to connect, and between two pieces of the answer.
TIMEOUT = (10, 30)
PIECE = 1 << 16


class _Temporary(Exception):
    """Worth another try."""


class _Permanent(Exception):
    """Trying the same URL again is of no use."""


def download(file: RemoteFile, target: Path, *, progress: Progress = silent) -> Path:
    """Make `target` the published file.

    The target appears, or is replaced, all at once and only if its checksum is right. What was
    received of an unfinished download is kept beside it for the next try, in a file ending in
    `.part`.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(target.with_name(f".{target.name}.lock")):
            failures = _try_mirrors(file, target, progress)
    except OSError as error:
        raise DataError(f"{file.name}: cannot write to {target.parent}: {error}.") from error
    if failures is None:
        return target
    reasons = "; ".join(f"{url}: {reason}" for url, reason in failures.items())
    raise DataError(f"{file.name} could not be downloaded. {reasons}.")


def _try_mirrors(file: RemoteFile, target: Path, progress: Progress) -> dict[str, str] | None:
    """The reasons why each mirror failed, or nothing if one did not."""
    failures: dict[str, str] = {}
    mirrors = list(file.urls)
    for i in range(ROUNDS):
        for url in tuple(mirrors):
            try:
                _retrieve(url, file, target, progress)
            except _Temporary as error:
                failures[url] = str(error)
            except _Permanent as error:
                failures[url] = str(error)
                mirrors.remove(url)
            else:
                return None
        if not mirrors:
            break
        if i + 1 < ROUNDS:
            time.sleep(PAUSE * 2**i)
    return failures


def _retrieve(url: str, file: RemoteFile, target: Path, progress: Progress) -> None:
    """One download from one mirror, through pooch: checksum, then rename."""
    import pooch

    def resume(url: str, output_file: Any, _: Any) -> None:
        part = target.with_name(f"{target.name}.part")
        resumed = _complete(url, part, file, progress)
        got = sha256(part)
        # pooch checks this too, but tells it in a sentence of its own.
        if got != file.sha256:
            part.unlink()
            reason = f"corrupt: expected SHA-256 {file.sha256}, got {got}"
            # The fault may lie in what was there before, from another mirror or another day.
            raise _Temporary(reason) if resumed else _Permanent(reason)
        part.replace(output_file)

    # It announces every download on the terminal, where the progress bar is.
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")
    try:
        pooch.retrieve(
            url,
            known_hash=f"sha256:{file.sha256}",
            fname=target.name,
            path=target.parent,
            # pooch 1.9.0 annotates it as a processor.
            downloader=resume,  # pyright: ignore[reportArgumentType]
        )
    finally:
        logger.setLevel(level)


def _complete(url: str, part: Path, file: RemoteFile, progress: Progress) -> bool:
    """Receive what is lacking of `part`. Returns whether its beginning was there before."""
    import requests
    import urllib3

    start = part.stat().st_size if part.exists() else 0
    if start == file.size:
        return True
    if start > file.size:
        part.unlink()
        start = 0
    # The bytes as they are stored: a server or client that unpacks .gz would change the checksum.
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            start = _first_byte(response, part, start, file)
            done = start
            with part.open("ab" if start else "wb") as sink:
                for piece in response.raw.stream(PIECE, decode_content=False):
                    done += len(piece)
                    if done > file.size:
                        break
                    sink.write(piece)
                    progress(file.name, done, file.size)
    except requests.exceptions.SSLError as error:
        raise _Permanent(f"the connection is not secure: {error}") from error
    except requests.ConnectionError as error:
        raise _Temporary("no network, or the server does not answer") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        size = part.stat().st_size if part.exists() else 0
        reason = f"the connection broke: expected {file.size} bytes, got {size}"
        raise _Temporary(reason) from error
    if done > file.size:
        part.unlink()
        raise _Permanent(f"corrupt: expected {file.size} bytes, got more")
    if done < file.size:
        raise _Temporary(f"truncated: expected {file.size} bytes, got {done}")
    return start > 0


def _first_byte(response: Any, part: Path, start: int, file: RemoteFile) -> int:
    """Where the answer begins in the file; raises if it is not an answer to use."""
    status, headers = response.status_code, response.headers
    wanted = f"bytes {start}-{file.size - 1}/"
    offered = headers.get("Content-Range", "nothing")
    if status == 206 and offered.startswith(wanted):
        return start
    if status in (206, 416):
        # There is no going on from here, with this server; so begin anew.
        part.unlink(missing_ok=True)
        raise _Temporary(f"corrupt: expected {wanted}{file.size}, was offered {offered}")
    if status == 200:
        length = headers.get("Content-Length")
        # A page of the network's operator, or a new edition: seen before it harms what is there.
        if length is not None and length != str(file.size):
            raise _Permanent(f"corrupt: expected {file.size} bytes, was offered {length}")
        return 0
    reason = f"HTTP status {status} {response.reason}"
    raise _Temporary(reason) if status in (408, 425, 429) or status >= 500 else _Permanent(reason)
