"""Envelopes of messages over HTTP: ours encoded and decoded, against lxml alone reading the same.

lxml parses with the same protections and gives the name, the text and the attributes of each
element; we make of them values that were checked, and write the envelope of these values too.
The careful reading is what counts; beside it stands how fast envelopes of a known form are read.
"""

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from figures import Figure, attempt, figure
from harness import few, pairs
from lxml import etree

from rpcqm.fast.formats.envelope_read import EnvelopeTemplates
from rpcqm.srmp.reading import read_envelope, read_request
from rpcqm.srmp.writing import write_envelope
from tests.support.srmp.srmp_samples import sample

CALLS = 50
ROUNDS = 200
SAMPLE = "4.5_multicast"


def rate(function: Callable[[], object]) -> float:
    """Calls per second of processor time: the best of some rounds, without collections."""
    best = float("inf")
    gc.disable()
    try:
        for _ in range(few(ROUNDS)):
            began = time.process_time()
            for _ in range(CALLS):
                function()
            best = min(best, time.process_time() - began)
    finally:
        gc.enable()
    return CALLS / best


def lxml_alone(octets: bytes) -> Callable[[], object]:
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    return lambda: [
        (each.tag, each.text, each.items()) for each in etree.fromstring(octets, parser).iter()
    ]


def like_one_before(octets: bytes) -> float:
    """Envelopes with a number and a time of their own each, read by what knows their form."""
    numbered = [
        octets.replace(b"<id>uuid:", b"<id>uuid:%d" % number).replace(
            b"<sentAt>2007", b"<sentAt>2%03d" % number
        )
        for number in range(1, CALLS)
    ]
    known = EnvelopeTemplates(1)
    known.read(octets)
    known.read(octets)
    taken = cycle(numbered)
    return rate(lambda: known.read(next(taken)))


def over_lxml(octets: bytes) -> Figure:
    """Both ways, against lxml alone."""
    envelope = read_envelope(octets)

    def both() -> None:
        read_envelope(octets)
        write_envelope(envelope)

    measured = pairs(partial(rate, both), partial(rate, lxml_alone(octets)))
    return measured.figure("envelope, encoded and decoded", os.getpid())


def run() -> Iterator[Figure]:
    octets = read_request(sample(SAMPLE)).envelope_text.encode()
    envelope = read_envelope(octets)
    yield from attempt("envelope, encoded and decoded", partial(over_lxml, octets))
    parts: dict[str, Callable[[], float]] = {
        "envelope, encoded": lambda: rate(lambda: write_envelope(envelope)),
        "envelope, decoded": lambda: rate(lambda: read_envelope(octets)),
        "envelope like one before, decoded": lambda: like_one_before(octets),
    }
    for name, part in parts.items():
        yield from attempt(name, lambda name=name, part=part: figure(name, part()))  # type: ignore[misc]
