"""Targets of the process that asks a directory: what it passes on was said by a controller."""

from collections.abc import Hashable, Iterator

from rpcqm.base.errors import DecodeError
from rpcqm.directory.frames import LENGTH, decode_reply, encode_frame
from rpcqm.directory.objects import Objects
from tests.fuzz.target import Target
from tests.fuzz.targets_codec import fed_by

_GUID = "0123456789abcdef"
_MACHINE = "CN=msmq,CN=QM2,DC=corp,DC=test"


def _seeds() -> Iterator[bytes]:
    """What a round brings: machines, queues with every kind of value, links, lists, results."""
    several: list[tuple[str, dict[str, list[str]]]] = [
        (_MACHINE, {"objectclass": ["top", "mSMQConfiguration"], "msmqsites": [_GUID]}),
        (f"CN=a\\2cb,{_MACHINE}", {"objectclass": ["mSMQQueue"], "msmqjournal": ["TRUE"]}),
        ("CN=l,CN=x", {"objectclass": ["mSMQSiteLink"], "msmqcost": ["7"], "msmqsite1": ["CN=s"]}),
        ("CN=g,CN=x", {"objectclass": ["group"], "member": [f"CN=a\\2cb,{_MACHINE}"]}),
        ("CN=s,CN=x", {"objectclass": ["site"], "cn": ["s"], "msmqinterval1": ["-1"]}),
    ]
    for name, values in several:
        frame = encode_frame({"entries": [(name, {"objectguid": [_GUID], **values})]})
        yield frame[LENGTH:]
    yield encode_frame({"code": 32, "text": "none", "step": "bind", "more": {"x": []}})[LENGTH:]


def _take(octets: bytes) -> Hashable:
    """Whatever a frame says, what is wrong is left out, and the rest is a directory."""
    reply = decode_reply(octets)
    if not isinstance(reply, list):
        return reply.code != 0
    objects = Objects(10)
    for entry in reply:
        if objects.matters(entry):
            objects.take(entry)
    objects.make_machines()
    objects.make_queues()
    made = objects.contents()
    return len(made.queue_managers), len(made.queues), len(objects.skipped)


TARGETS = (Target("directory-frame", _seeds, fed_by(_take), (DecodeError,), share=4),)
