"""What the frames of a capture hold: segments, with fragments put together, or what is not read."""

import ipaddress

from rpcqm.capture.file.problems import Problems
from rpcqm.capture.frames.ends import Damaged, End, Fragment, Segment, Unread
from rpcqm.capture.frames.fragments import Fragments
from rpcqm.capture.frames.octets import Octets
from rpcqm.capture.frames.walking import MOST_LAYERS, end_of_frame, end_of_payload

_MOST_KINDS = 64
"""How many kinds of frames that are not read are told apart; forged ones have 65,536 numbers."""
_INCOMPLETE = "an IP packet whose fragments are not all there"

Payload = tuple[bytes, bytes, int]
"""Both addresses, what was captured of a TCP segment, and how long it was on the wire."""


class Network:
    """Finds the TCP segments in frames, whatever carries them."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._fragments = Fragments()
        self._unread: dict[str, tuple[int, int]] = {}

    def segment(self, link: int, data: bytes, offset: int) -> Payload | None:
        """The segment in a frame, or in the packet that it completes; None without one."""
        frame = Octets(data)
        end = end_of_frame(link, frame)
        for _ in range(MOST_LAYERS):
            if not isinstance(end, Fragment):
                break
            whole = self._completed(end, frame.data, offset)
            if whole is None:
                return None
            frame = Octets(whole)
            end = end_of_payload(frame, end.protocol, end.addresses)
        if isinstance(end, Segment):
            return end.addresses, frame.data[end.at : end.at + end.length], end.length
        self._tell(end, offset)
        return None

    def _completed(self, part: Fragment, data: bytes, offset: int) -> bytes | None:
        """The packet that a fragment completes."""
        whole = self._fragments.add(part, data[part.at : part.at + part.length])
        if whole is None and self._fragments.given_up():
            self._problems.add("network", offset, _INCOMPLETE)
        return whole

    def _tell(self, end: End, offset: int) -> None:
        if isinstance(end, Damaged):
            self._problems.add("network", offset, end.reason)
        elif isinstance(end, Unread):
            many = len(self._unread) >= _MOST_KINDS and end.kind not in self._unread
            kind = "something else" if many else end.kind
            count, first = self._unread.get(kind, (0, offset))
            self._unread[kind] = count + 1, first

    def finish(self) -> None:
        """Tell what was never completed, and what was not read, each kind once."""
        for _ in range(self._fragments.finish()):
            self._problems.add("network", 0, _INCOMPLETE)
        for kind, (count, offset) in self._unread.items():
            self._problems.add_several("not read", count, offset, _unread(kind, count))
        self._unread.clear()


def _unread(kind: str, count: int) -> str:
    holds = "1 frame holds" if count == 1 else f"{count:,} frames hold"
    return f"{holds} {kind}, which is not read"


def address_text(address: bytes, port: int) -> str:
    """`192.0.2.1:1801` or `[2001:db8::1]:1801`."""
    if len(address) == 4:
        return f"{address[0]}.{address[1]}.{address[2]}.{address[3]}:{port}"
    found = ipaddress.IPv6Address(address)
    return f"{found.ipv4_mapped}:{port}" if found.ipv4_mapped else f"[{found}]:{port}"
