"""Where the IP packets of many frames are, found by the shapes of a few of them."""

from dataclasses import dataclass

import numpy as np

from rpcqm.capture.columnar.record_batch import Array, Buffer, RecordBatch, gather
from rpcqm.capture.frames.octets import Read
from rpcqm.capture.frames.walking import Shape, shape_of

_MOST_PROBES = 16
"""How many frames of a batch are looked at for shapes; frames of no shape go one by one."""


@dataclass(slots=True)
class PacketPlaces:
    """Of each record: the version of the last IP packet in it and where in the frame it begins.

    The version is 0 where that is not known. `empty` frames certainly hold nothing to be read.
    """

    version: Array
    at: Array
    empty: Array


def packet_places(records: RecordBatch) -> PacketPlaces:
    """Look at frames one by one, and for each at which others have its shape."""
    count = len(records)
    found = PacketPlaces(np.zeros(count, np.int8), np.zeros(count, np.int64), np.zeros(count, bool))
    left = np.arange(count)
    for number in range(_MOST_PROBES):
        if not len(left):
            break
        probe = int(left[len(left) * number // _MOST_PROBES])
        _, link, data, _, _ = records.record(probe)
        shape = shape_of(link, data)
        if shape is None:
            left = left[left != probe]
            continue
        alike = _alike(records, left, link, shape)
        _note(found, left[alike], shape)
        left = left[~alike]
    return found


def _note(found: PacketPlaces, rows: Array, shape: Shape) -> None:
    if shape.packet < 0:
        found.empty[rows] = True
    else:
        found.version[rows], found.at[rows] = shape.version, shape.packet


def _alike(records: RecordBatch, rows: Array, link: int, shape: Shape) -> Array:
    """Which of some records have a shape."""
    begin, size = records.begin[rows], max(shape.size, shape.packet + 1)
    alike = (records.link[rows] == link) & (records.captured[rows] >= size)
    alike &= begin <= len(records.buffer) - size
    begin = np.where(alike, begin, 0)
    for read in shape.reads:
        alike &= _equal(records.buffer, begin + read.at, read)
    if shape.packet >= 0:
        version = gather(records.buffer, begin + shape.packet, 1).view("u1") >> 4
        alike &= version == shape.version
    return np.asarray(alike)


def _equal(buffer: Buffer, places: Array, read: Read) -> Array:
    """Where a number is as it was read."""
    octets = gather(buffer, places, read.size)
    if read.size <= 2:
        return np.asarray(octets.view(f">u{read.size}") & read.mask == read.value)
    mask, value = (n.to_bytes(read.size, "big") for n in (read.mask, read.value))
    each = octets.view("u1").reshape(-1, read.size) & np.frombuffer(mask, "u1")
    return np.asarray((each == np.frombuffer(value, "u1")).all(axis=1))
