"""Targets of messages over HTTP: requests with their parts, and envelopes by themselves."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rpcqm.base.errors import DecodeError
from rpcqm.fast.formats.envelope_read import EnvelopeTemplates
from rpcqm.http.exchange import HttpRequest
from rpcqm.srmp.bunch import MOST, split_bunch, write_bunch
from rpcqm.srmp.elements import Envelope, Reference, Signature
from rpcqm.srmp.message_types import identify
from rpcqm.srmp.reading import ReadEnvelope, parse_envelope, read_envelope, read_request
from rpcqm.srmp.signature import DSA_METHOD, check
from rpcqm.srmp.writing import write_envelope
from rpcqm.srmp.xml import SIGNATURE
from tests.fuzz.target import Run, Target, Violation
from tests.fuzz.targets_codec import fed_by
from tests.support.srmp.srmp_samples import DIRECTORY, NAMES, full_envelope, sample


def _requests() -> Iterable[bytes]:
    return [DIRECTORY.joinpath(f"{name}.http").read_bytes() for name in NAMES]


def _envelopes() -> Iterable[bytes]:
    signature = Signature(
        DSA_METHOD, (Reference("cid:body@x", f"{SIGNATURE}sha1", bytes(20)),), bytes(40)
    )
    yield write_envelope(replace(full_envelope(), signature=signature))
    for name in NAMES:
        yield read_request(sample(name)).envelope_text.encode()


def _read_request(octets: bytes) -> Hashable:
    """A request as a server hands it on, whatever its Content-Length."""
    head, _, content = octets.partition(b"\r\n\r\n")
    line, *fields = head.decode("utf-8", "surrogateescape").split("\r\n")
    method, _, target = line.partition(" ")
    pairs = (field.partition(": ") for field in fields)
    headers = tuple((name, value) for name, _, value in pairs)
    read = read_request(HttpRequest(method, target, headers, content))
    if read.body is not None:
        end = read.body_offset + len(read.body)
        if read.compound[read.body_offset : end] != read.body:
            raise Violation("the body is elsewhere in the compound message")
    return (*_judged(read.envelope, read.body, read.extension), read.body is None)


def _read_envelope(octets: bytes) -> Hashable:
    return _judged(read_envelope(octets), b"body", None)


def _judged(envelope: Envelope, body: bytes | None, extension: bytes | None) -> tuple[Any, ...]:
    """What was read is written so that it is read again; its signature can be looked at."""
    if read_envelope(write_envelope(envelope)) != envelope:
        raise Violation("an envelope is read otherwise than it was written")
    return identify(envelope), check(envelope, body, extension)


@contextmanager
def _templates() -> Iterator[Run]:
    """One receiver for many: what it has learned of some must not change what others say."""
    known = EnvelopeTemplates(64)
    for octets in (*_envelopes(), *_envelopes()):
        known.read(octets)

    def run(octets: bytes) -> Hashable:
        careful = _outcome(parse_envelope, octets)
        if _outcome(known.read, octets) != careful:
            raise Violation("a template tells something else than the careful reading")
        return isinstance(careful, str) or identify(careful[1])

    yield run


def _outcome(parse: Callable[[bytes], ReadEnvelope], octets: bytes) -> tuple[str, Envelope] | str:
    try:
        return parse(octets)[:2]
    except DecodeError as error:
        return str(error)


def _bunches() -> Iterable[bytes]:
    """Requests with one message of the samples, and with three."""
    for name in NAMES:
        request = sample(name)
        for count in (1, 3):
            yield write_bunch([(request.headers[-2:], request.body)] * count)[1]


def _read_bunch(octets: bytes) -> Hashable:
    """Each message of a bunch, whose octets are all accounted for."""
    found = split_bunch(HttpRequest("POST", "/msmq/q", (), octets))
    held = sum(len(each.body) for each in found)
    if held > len(octets) or len(found) > MOST:
        raise Violation("a bunch holds more than its octets")
    return len(found), held


TARGETS = (
    Target("srmp-bunch", _bunches, fed_by(_read_bunch), (DecodeError,), share=5),
    Target("srmp-request", _requests, fed_by(_read_request), (DecodeError,), share=15),
    Target("srmp-envelope", _envelopes, fed_by(_read_envelope), (DecodeError,), share=15),
    Target("srmp-templates", _envelopes, _templates, share=10),
)
