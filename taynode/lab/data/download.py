"""Downloads that resume, and that change nothing unless they succeed."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..files import exclusive
from .check import sha256
from .errors import DataError
from .progress import OnProgress, silent
from .registry import RemoteFile


if TYPE_CHECKING:
    import requests

# A round tries every mirror. The pause doubles after each round.
ROUNDS = 4
PAUSE = 0.5
# Seconds to connect, and between two pieces of the response.
TIMEOUT = (10, 30)
PIECE = 1 << 16


class _Temporary(Exception):
    """An error after which the same URL may be tried again."""


class _Permanent(Exception):
    """An error after which the same URL is not tried again."""


def download(file: RemoteFile, target: Path, *, progress: OnProgress = silent) -> Path:
    """Download the published file to `target`.

    The target is created or replaced in one step, and only if its checksum is right. The bytes of
    an unfinished download are kept for the next try, in a file next to it that ends in `.part`.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Where there are no locks, the checksum shows whether two processes disturbed each other.
        with exclusive(target.with_name(f".{target.name}.lock"), needed=False):
            failures = _try_mirrors(file, target, progress)
    except OSError as error:
        raise DataError(f"{file.name}: cannot write to {target.parent}: {error}.") from error
    if failures is None:
        return target
    reasons = "; ".join(f"{url}: {reason}" for url, reason in failures.items())
    raise DataError(f"{file.name} could not be downloaded. {reasons}.")


def _try_mirrors(file: RemoteFile, target: Path, progress: OnProgress) -> dict[str, str] | None:
    """The reason why each mirror failed, or `None` if one succeeded."""
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


def _retrieve(url: str, file: RemoteFile, target: Path, progress: OnProgress) -> None:
    """Download from one mirror with pooch, which checks the checksum and renames the file."""
    import pooch

    def resume(url: str, output_file: str, _: pooch.Pooch | None) -> None:
        part = target.with_name(f"{target.name}.part")
        resumed = _complete(url, part, file, progress)
        got = sha256(part)
        # pooch checks this, too, but without saying whether to try again.
        if got != file.sha256:
            part.unlink()
            reason = f"corrupt: expected SHA-256 {file.sha256}, got {got}"
            # The earlier part may be at fault, which another mirror may have served.
            raise _Temporary(reason) if resumed else _Permanent(reason)
        part.replace(output_file)

    # pooch logs every download to the terminal, which would break the progress bar.
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


def _complete(url: str, part: Path, file: RemoteFile, progress: OnProgress) -> bool:
    """Receive the missing bytes of `part`, and return whether there were earlier ones."""
    import requests
    import urllib3

    start = part.stat().st_size if part.exists() else 0
    if start == file.size:
        return True
    if start > file.size:
        part.unlink()
        start = 0
    # A server or client that unpacks .gz would change the checksum.
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


def _first_byte(response: "requests.Response", part: Path, start: int, file: RemoteFile) -> int:
    """The position in the file where the response begins. Raises if it cannot be used."""
    status, headers = response.status_code, response.headers
    wanted = f"bytes {start}-{file.size - 1}/"
    offered = headers.get("Content-Range", "nothing")
    if status == 206 and offered.startswith(wanted):
        return start
    if status in (206, 416):
        # This server cannot resume the download, so the next try starts from the beginning.
        part.unlink(missing_ok=True)
        raise _Temporary(f"corrupt: expected {wanted}{file.size}, was offered {offered}")
    if status == 200:
        length = headers.get("Content-Length")
        # A login page of the network, or a new edition. The earlier part stays as it is.
        if length is not None and length != str(file.size):
            raise _Permanent(f"corrupt: expected {file.size} bytes, was offered {length}")
        return 0
    reason = f"HTTP status {status} {response.reason}"
    raise _Temporary(reason) if status in (408, 425, 429) or status >= 500 else _Permanent(reason)
