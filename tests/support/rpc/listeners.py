"""A listener in a thread that says what it is told to, whatever it is asked."""

import contextlib
import socket
import threading
from collections.abc import Iterator


class Listener:
    """`say` gives the answers of the next requests; an empty one closes the connection.

    `heard` is everything that was asked, `ended` counts the connections that are over. While
    `reading` is not set, nothing is read behind an answer.
    """

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}/"
        self.heard = b""
        self.connections = self.ended = 0
        self.reading = threading.Event()
        self.reading.set()
        self._accepted: list[socket.socket] = []
        self._answers: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def say(self, *answers: bytes) -> None:
        """Answer the next requests so."""
        self._answers += answers

    def speak(self, unasked: bytes) -> None:
        """Say something on the newest connection that nobody has asked for."""
        self._accepted[-1].sendall(unasked)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # it is closed when the test ends
            while True:
                accepted, _ = self._listening.accept()
                self.connections += 1
                self._accepted.append(accepted)
                threading.Thread(target=self._answer, args=(accepted,), daemon=True).start()

    def _answer(self, accepted: socket.socket) -> None:
        self._converse(accepted)
        self.ended += 1

    def _converse(self, accepted: socket.socket) -> None:
        with accepted, contextlib.suppress(ConnectionError):  # the client has heard enough
            while part := accepted.recv(1 << 16):
                self.heard += part
                answer = self._answers.pop(0) if self._answers else b""
                if not answer:
                    return
                accepted.sendall(answer)
                self.reading.wait()

    def close(self) -> None:
        """Listen no more."""
        self.reading.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10)


@contextlib.contextmanager
def listening() -> Iterator[Listener]:
    """A listener on loopback."""
    listener = Listener()
    try:
        yield listener
    finally:
        listener.close()
