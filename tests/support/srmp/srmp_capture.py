"""Makes tests/vectors/captures/srmp.pcapng of the samples in tests/vectors/srmp.

python -m tests.support.srmp.srmp_capture
"""

from pathlib import Path

from rpcqm.capture.file.writing import CaptureWriter, WrittenConnection

VECTORS = Path(__file__).parents[2] / "vectors"
SAMPLES, TARGET = VECTORS / "srmp", VECTORS / "captures" / "srmp.pcapng"
BEGIN = 1_181_320_000_000_000_000
"""June 2007, when the first sample was sent."""
MACHINE1, MACHINE2, BROWSER = "192.0.2.1", "192.0.2.2", "192.0.2.3"
OK = b"""\
HTTP/1.1 200 OK\r\nContent-Length: 0\r\nServer: Microsoft-IIS/7.0\r
Date: Thu, 19 Jul 2007 03:24:51 GMT\r\n\r\n"""
"""What section 4.3 answers."""
BAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
PAGE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot there"
PAIRS = ("4.1_simple", "4.2_msmq", "4.3_receipt_requests", "4.5_multicast")
STREAM = ("4.4_first", "4.4_second", "4.4_third")
RECEIPTS = (
    "4.3_delivery_receipt",
    "4.3_commitment_receipt",
    "4.4_first_receipt",
    "4.4_second_receipt",
    "4.4_third_receipt",
)


def sample(name: str) -> bytes:
    """A request of section 4 as it goes over the wire."""
    return (SAMPLES / f"{name}.http").read_bytes()


class _Clock:
    def __init__(self) -> None:
        self.now = BEGIN

    def tick(self) -> int:
        self.now += 1_000_000
        return self.now


def _keep_alive(to: WrittenConnection, clock: _Clock, *names: str) -> None:
    """One request after the other, the second of them in two segments."""
    for name in names:
        octets = sample(name)
        cut = len(octets) // 2 if name == names[1] else len(octets)
        for piece in (octets[:cut], octets[cut:]):
            to.client_sent(clock.tick(), piece)
        to.server_sent(clock.tick(), OK)


def write(path: Path) -> None:
    """The messages of machine1, a pipelined stream, the receipts, and what is no message."""
    clock = _Clock()
    with path.open("wb") as file:
        writer = CaptureWriter(file)
        messages = writer.connection(clock.tick(), (MACHINE1, 50001), (MACHINE2, 80))
        _keep_alive(messages, clock, *PAIRS)
        messages.client_sent(clock.tick(), b"".join(map(sample, STREAM)))
        messages.server_sent(clock.tick(), OK * len(STREAM))
        receipts = writer.connection(clock.tick(), (MACHINE2, 50002), (MACHINE1, 80))
        _keep_alive(receipts, clock, *RECEIPTS)
        page = writer.connection(clock.tick(), (BROWSER, 50003), (MACHINE2, 80))
        page.client_sent(clock.tick(), b"GET / HTTP/1.1\r\nHost: machine2\r\n\r\n")
        page.server_sent(clock.tick(), PAGE)
        wrong = writer.connection(clock.tick(), (BROWSER, 50004), (MACHINE2, 80))
        wrong.client_sent(
            clock.tick(), sample("4.1_simple").replace(b"</se:Header>", b"</se:Neader>")
        )
        wrong.server_sent(clock.tick(), BAD)
        for each in (messages, receipts, page, wrong):
            each.close(clock.tick())


if __name__ == "__main__":
    write(TARGET)
