"""A web server of Python's own library that keeps what is posted to it, to post it on."""

import contextlib
import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

from tests.support.waiting import until


class HttpCatcher(HTTPServer):
    """`posts` are the paths, the headers and the bodies that came."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posts: list[tuple[str, dict[str, str], bytes]] = []

    @property
    def port(self) -> int:
        return self.server_port

    def post_on(self, port: int) -> bytes:
        """Post the first post to another port, as if it had been meant; its body."""
        until(lambda: self.posts != [])
        path, headers, body = self.posts[0]
        mine, other = f":{self.port}/".encode(), f":{port}/".encode()
        assert len(mine) == len(other), "lengths in the headers hold for ports of equal length"
        changed = body.replace(mine, other)
        headers |= {"Host": f"127.0.0.1:{port}"}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)  # a slow machine
        with contextlib.closing(connection):
            connection.request("POST", path, changed, headers)
            assert connection.getresponse().status == 200
        return changed


class _Handler(BaseHTTPRequestHandler):
    server: HttpCatcher
    protocol_version = "HTTP/1.1"
    timeout = 30  # the server has one thread, which must come back

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append((self.path, dict(self.headers), body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def http_catcher() -> Iterator[HttpCatcher]:
    with HttpCatcher() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
