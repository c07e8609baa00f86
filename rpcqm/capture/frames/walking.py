"""Through the layers of a frame to what it holds."""

from dataclasses import dataclass

from rpcqm.capture.frames import links, numbers, packets, tunnels
from rpcqm.capture.frames.ends import Damaged, End, Fragment, Segment, Unread
from rpcqm.capture.frames.octets import Cut, Octets, Read, TracedOctets
from rpcqm.capture.frames.steps import LAYERS, Place, step_to

__all__ = ["MOST_LAYERS", "Shape", "end_of_frame", "end_of_payload", "links", "shape_of", "tunnels"]

MOST_LAYERS = 32
"""Tunnels in one another, each of several layers; networks have two or three."""


def end_of_frame(link: int, frame: Octets) -> End:
    """What a frame of a link type holds."""
    first = step_to("link", link)
    if first is None:
        return Unread(_name_of_link(link))
    return _walked(frame, (first, 0))


def _name_of_link(link: int) -> str:
    if link >= numbers.NETMON_NETWORKS:
        return f"a network of type {link - numbers.NETMON_NETWORKS} of Network Monitor"
    name = numbers.UNREAD_LINKS.get(link)
    return f"{name} (link type {link})" if name else f"link type {link}"


def end_of_payload(frame: Octets, protocol: int, addresses: bytes) -> End:
    """What a packet holds that was put together of fragments."""
    try:
        found = packets.carried(frame, protocol, 0, len(frame.data), addresses)
    except Cut:
        return Damaged("a header of IP is cut short")
    return _walked(frame, found)


def _walked(frame: Octets, place: Place) -> End:
    for _ in range(MOST_LAYERS):
        if not isinstance(place, tuple):
            return place
        step, at = place
        try:
            place = step(frame, at)
        except Cut:
            return Damaged(f"a header of {LAYERS[step].name} is cut short")
    return place if not isinstance(place, tuple) else Unread(f"more than {MOST_LAYERS} layers")


@dataclass(frozen=True, slots=True)
class Shape:
    """What frames have in common that are read alike: numbers at places, up to an IP packet.

    `packet` is where that begins, -1 if there is none: then they hold nothing to be read. `size`
    is how many octets there must be.
    """

    reads: tuple[Read, ...]
    packet: int
    size: int
    version: int


def shape_of(link: int, data: bytes) -> Shape | None:
    """The shape of a frame that holds an IP packet in one piece, or nothing; None for others."""
    frame = TracedOctets(data)
    end = end_of_frame(link, frame)
    if isinstance(end, Damaged | Unread | Fragment):
        return None
    at, reads = frame.packet, frame.reads
    if at >= 0:
        reads = reads[: frame.before_packet]
    elif isinstance(end, Segment):
        return None
    size = max((read.at + read.size for read in reads), default=0)
    version = data[at] >> 4 if at >= 0 else 0
    return Shape(tuple(read for read in reads if read.mask), at, size, version)
