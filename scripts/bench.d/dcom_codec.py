"""The reply of an activation: our codecs against impacket's classes, from the same values.

impacket's objects are made and filled on the way, as they must be for every reply; what finished
objects alone cost is shown beside it. Property gets and VARIANTs are shown in microseconds.
"""

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parents[2]))

from figures import Figure, attempt, figure
from harness import pairs, per_second

from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.types.dcom import (
    COMVERSION,
    DUALSTRINGARRAY,
    ORPCTHAT,
    ORPCTHIS,
    PropsOutInfo,
    RemoteCreateInstanceResponse,
    ScmReplyInfoData,
    customREMOTE_REPLY_SCM_INFO,
)
from rpcqm.codec.types.oautvalues import VT_ARRAY, VT_UI1
from rpcqm.dcom.activation_properties import pack_reply
from tests.support.dcom.impacket_dcom import create_instance_reply, props_out, scm_reply

NDR = TransferSyntax.NDR
IID = UUID("eba96b21-2168-11d3-898c-00e02c074f6b")
IPID = UUID("00001400-0dd4-0000-a5a5-9d6d2b4b0a11")
VERSION = COMVERSION(MajorVersion=5, MinorVersion=7)
THAT = ORPCTHAT(flags=0, extensions=None)
BINDINGS = [7, *map(ord, "192.0.2.7[5000]"), 0, 7, *map(ord, "orders.example.com[5000]"), 0, 0]
BINDINGS += [10, 0xFFFF, 0, 9, 0xFFFF, 0, 0]
OBJREF = bytes(range(200))
PARTS = (
    "get_Label request, decode",
    "get_Label response, encode",
    "put_Body request of 1 KiB, decode",
)


def encoded() -> bytes:
    """A whole reply, as the activator makes it."""
    bindings = DUALSTRINGARRAY(wNumEntries=len(BINDINGS), wSecurityOffset=43, aStringArray=BINDINGS)
    outcome = PropsOutInfo(cIfs=1, piid=[IID], phresults=[0], ppIntfData=[OBJREF])
    reply = customREMOTE_REPLY_SCM_INFO(
        Oxid=1 << 40,
        pdsaOxidBindings=bindings,
        ipidRemUnknown=IPID,
        authnHint=6,
        serverVersion=VERSION,
    )
    octets = pack_reply(outcome, ScmReplyInfoData(pdwReserved=None, remoteReply=reply))
    response = RemoteCreateInstanceResponse(orpcthat=THAT, ppActProperties=octets, result=0)
    operation = load("dcom.IRemoteSCMActivator").operation("RemoteCreateInstance")
    return operation.encode_response(NDR, response)


def filled() -> bytes:
    """The same, made by impacket of the same values."""
    return create_instance_reply(props_out(IID, OBJREF), scm_reply(1 << 40, IPID, BINDINGS, 43))


def reply(name: str, theirs: Callable[[], object]) -> Figure:
    """Replies from values, and what impacket makes of its own."""
    assert len(encoded()) == len(filled())
    ours = partial(per_second, encoded, 0.1)
    both = pairs(ours, partial(per_second, theirs, 0.2))
    note = f"{1e6 / both.ours:.0f} against {1e6 / both.theirs:.0f} microseconds"
    return figure(name, both.ratio, note).explained(os.getpid(), partial(per_second, encoded, 1))


def calls() -> list[Figure]:
    """What a call of an object adds to a null call."""
    this = ORPCTHIS(version=VERSION, flags=0, reserved1=0, cid=IPID, extensions=None)
    message = load("mqac.IMSMQMessage4")
    get, put = message.operation("get_Label"), message.operation("put_Body")
    asked = get.codec(NDR).request.encode(get.request_class(orpcthis=this))
    label = get.response_class(orpcthat=THAT, pbstrLabel="a label of the usual size", result=0)
    body = Variant(VT_ARRAY | VT_UI1, SafeArray(VT_UI1, bytes(1024)))
    octets = put.codec(NDR).request.encode(put.request_class(orpcthis=this, varBody=body))
    functions: dict[str, Callable[[], object]] = {
        "get_Label request, decode": partial(get.codec(NDR).request.decode, asked),
        "get_Label response, encode": partial(get.codec(NDR).response.encode, label),
        "put_Body request of 1 KiB, decode": partial(put.codec(NDR).request.decode, octets),
    }
    return [figure(name, 1e6 / per_second(each, 0.1)) for name, each in functions.items()]


def run() -> Iterator[Figure]:
    name = "RemoteCreateInstance response, encode"
    finished = props_out(IID, OBJREF), scm_reply(1 << 40, IPID, BINDINGS, 43)
    yield from attempt(name, partial(reply, name, filled))
    name = f"{name}, impacket's properties finished"
    yield from attempt(name, partial(reply, name, partial(create_instance_reply, *finished)))
    yield from attempt(PARTS, calls)
