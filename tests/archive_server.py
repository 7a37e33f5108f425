"""A local HTTP server of archives, which supports ranges and can break off its answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Server:
    """``files``: name → content. ``stops_after``: bytes after which an answer breaks off."""

    files: dict[str, bytes]
    stops_after: int | None = None
    kind: str = "application/zip"
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    address: str = ""


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            server.requests.append((self.path, wanted))
            content = server.files.get(self.path.rsplit("/", 1)[-1])
            if content is None:
                self.send_error(404, "Not Found")
                return
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
            if wanted and start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if wanted else 200)
            if wanted:
                place = f"bytes {start}-{len(content) - 1}/{len(content)}"
                self.send_header("Content-Range", place)
            self.send_header("Content-Type", server.kind)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            end = None if server.stops_after is None else start + server.stops_after
            self.wfile.write(content[start:end])

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        server.address = f"http://127.0.0.1:{http.server_port}/data"
        yield server
        http.shutdown()
