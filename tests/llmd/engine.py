"""Stands for an engine: answers as one does, but with what it was asked. Run as: engine.py ADDRESS PORT NAME.

A fake, for what matters here is what reaches an engine. Real ones, with KV, are behind the path in tests/node.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESS, PORT, NAME = sys.argv[1], int(sys.argv[2]), sys.argv[3]


class Engine(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer({"data": [{"id": "a-model"}], "engine": NAME, "headers": dict(self.headers)})

    def do_POST(self) -> None:
        asked = json.loads(b"".join(self.body()))
        if self.path.endswith("/render"):
            self.answer([{"token_ids": list(asked["prompt"].encode())}])
        elif asked.get("stream"):
            self.stream(int(asked["max_tokens"]))
        else:
            self.answer({"engine": NAME, "headers": dict(self.headers), "asked": asked})

    def body(self) -> Iterator[bytes]:
        """The body, which Envoy sends in chunks once a picker has seen it."""
        if length := self.headers["Content-Length"]:
            yield self.rfile.read(int(length))
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def answer(self, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, tokens: int) -> None:
        """Ten tokens a second, each an event, and the end that clients wait for."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in [*map(str, range(tokens)), "[DONE]"]:
            data = f"data: {event}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            time.sleep(0.1)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


ThreadingHTTPServer((ADDRESS, PORT), Engine).serve_forever()
