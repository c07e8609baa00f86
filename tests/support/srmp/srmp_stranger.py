"""A stranger who speaks HTTP: raw octets, from an address of loopback that can be chosen."""

import json
import socket
from contextlib import suppress
from threading import Thread
from typing import Any

from rpcqm.testing import PrivateQueueManager
from tests.support.srmp.srmp_text import Post
from tests.support.waiting import PATIENCE


class Stranger:
    """One connection to the HTTP door of a queue manager."""

    def __init__(self, queue_manager: PrivateQueueManager, source: str = "127.0.0.1") -> None:
        address = queue_manager.endpoint("http")
        self._line = socket.create_connection(address, PATIENCE, (source, 0))
        self._answers = self._line.makefile("rb")

    def __enter__(self) -> "Stranger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._answers.close()
        self._line.close()

    def post(self, post: Post) -> int:
        """The status of the answer."""
        return self.say(post.wire())

    def say(self, octets: bytes) -> int:
        """The same for whatever is sent; 0 when the connection ends without an answer."""
        with suppress(ConnectionError):
            self._line.sendall(octets)
        return self.answer()

    def answer(self) -> int:
        """The status of the next answer."""
        with suppress(ConnectionError):
            if line := self._answers.readline():
                length = 0
                while (header := self._answers.readline()) not in (b"\r\n", b""):
                    name, _, value = header.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                self._answers.read(length)
                return int(line.split()[1])
        return 0


class Trap:
    """A place that nobody should connect to: it takes connections, and answers with `answer`."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.listener = socket.create_server((address, 0))
        self.port: int = self.listener.getsockname()[1]
        self.requests: list[bytes] = []
        self.called = 0
        self.answer = b"HTTP/1.1 200 OK\r\n"
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.called += 1
            Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rwb") as stream:
            while line := stream.readline():
                head, length = [line], 0
                while (header := stream.readline()) not in (b"\r\n", b""):
                    name, _, value = header.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                    head.append(header)
                self.requests.append(b"".join(head) + stream.read(length))
                stream.write(self.answer + b"Content-Length: 0\r\n\r\n")
                stream.flush()

    def close(self) -> None:
        self.listener.close()


def outgoing(queue_manager: PrivateQueueManager) -> dict[str, Any]:
    """How many messages wait in each outgoing queue."""
    said = queue_manager.run("queue", "list", "--outgoing", "--json").stdout
    return {queue["format_name"]: queue["messages"] for queue in json.loads(said)}
