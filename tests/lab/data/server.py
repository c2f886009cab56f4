"""A small web server on this machine that misbehaves on request."""

import http.server
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Site:
    """What is served, how, and what was asked for."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    # After how many bytes the next answers break off; then all goes well.
    drops: list[int] = field(default_factory=list)
    # Status codes of the next answers; then all goes well.
    statuses: list[int] = field(default_factory=list)
    knows_ranges: bool = True
    # A server that answers every range with this `Content-Range`.
    wrong_range: str | None = None
    tells_length: bool = True
    requests: list[tuple[str, str | None]] = field(default_factory=list)

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"


@contextmanager
def serve() -> Iterator[Site]:
    site = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self):
            wanted = self.headers.get("Range")
            path = self.path.removeprefix("/")
            site.requests.append((path, wanted))
            content = site.files.get(path)
            if site.statuses:
                return self.send_error(site.statuses.pop(0))
            if content is None:
                return self.send_error(404)
            start = 0
            if wanted and site.knows_ranges:
                match = re.fullmatch(r"bytes=(\d+)-", wanted)
                assert match is not None
                start = int(match[1])
                if start >= len(content):
                    return self.send_error(416)
                self.send_response(206)
                whole = f"bytes {start}-{len(content) - 1}/{len(content)}"
                self.send_header("Content-Range", site.wrong_range or whole)
            else:
                self.send_response(200)
            body = content[start:]
            if site.tells_length:
                self.send_header("Content-Length", str(len(body)))
            # As some servers do for .gz files; the stored bytes are wanted all the same.
            self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            drop = site.drops.pop(0) if site.drops else len(body)
            self.wfile.write(body[:drop])
            if drop < len(body):
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, format, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join(timeout=5)
