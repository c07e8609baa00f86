"""Where impacket 0.13 departs from [C706] and [MS-RPCE], and what our classes of its do.

Each case first shows impacket's own classes at it, then that those made from the IDL write the
octets that the specification asks for, computed by hand.  A case of which the first part fails
with a later impacket has become unnecessary in `impacket_classes`.
"""

import struct
from typing import Any

import pytest
from impacket.dcerpc.v5 import ndr

from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.ndr.impacket_classes import impacket_module, module_of
from tests.support.codec.idl_text import interface_of

SMALL_UNION = "typedef union { [case(1)] unsigned char tiny; [case(2)] ; } U;"
SMALL_CALL = (
    SMALL_UNION + "void f([in] unsigned short tag, [in, switch_is(tag)] U* value, [in] byte next);"
)
HYPERS = (
    "typedef struct { ULARGE_INTEGER x[1]; } ONE;"
    "void f([in] long n, [in, size_is(n)] ULARGE_INTEGER x[]);"
)


def made(base: Any, **members: Any) -> Any:
    return type("Made", (base,), members)


def ours(body: str) -> Any:
    """The module of an interface with some body, and a method f."""
    return module_of(interface_of(body), "tests.impacket_departures")


def union_of(**members: Any) -> Any:
    arms = {1: ("tiny", ndr.NDRUSMALL), 2: None}
    return made(ndr.NDRUNION, commonHdr=(("tag", ndr.NDRUSHORT),), union=arms, **members)


def test_an_arm_is_aligned_to_itself_and_not_to_four() -> None:
    theirs = union_of()()
    theirs["tag"], theirs["tiny"] = 1, 7
    assert len(theirs.getData()) == 5
    request = ours(SMALL_CALL).f()
    request["tag"], request["value"]["tag"], request["value"]["tiny"] = 1, 1, 7
    request["next"] = 8
    assert request.getData() == bytes.fromhex("0100 0100 07 08")


def test_an_arm_is_read_where_four_octets_or_fewer_are_left() -> None:
    assert "tiny" not in union_of(notAlign=True)(bytes.fromhex("0100 07")).fields
    request = ours(SMALL_CALL).f(bytes.fromhex("0100 0100 07 08"))
    assert request["value"]["tiny"] == 7


def test_an_arm_can_be_empty() -> None:
    with pytest.raises(TypeError):
        union_of()()["tag"] = 2
    request = ours(SMALL_CALL).f()
    request["tag"], request["value"]["tag"], request["next"] = 2, 2, 8
    assert request.getData() == bytes.fromhex("0200 0200 08")


def test_a_structure_is_aligned_to_the_arms_of_its_union() -> None:
    """[C706] 14.2.2; of unions impacket counts the tag alone."""
    arms = {1: ("value", ndr.NDRULONG)}
    union = made(ndr.NDRUNION, commonHdr=(("tag", ndr.NDRUSMALL),), union=arms, notAlign=True)
    structure = made(ndr.NDRSTRUCT, structure=(("kind", ndr.NDRUSMALL), ("u", union)))
    assert structure().getAlignment() == 1
    request = ours(
        "typedef struct { unsigned char kind;"
        " [switch_is(kind)] union { [case(1)] unsigned long value; } u; } S;"
        "void f([in] unsigned char first, [in] S* s);"
    ).f()
    request["first"], request["s"]["kind"] = 9, 1
    request["s"]["u"]["tag"], request["s"]["u"]["value"] = 1, 5
    data = request.getData()
    assert (len(data), data[0], data[4:6], data[8:]) == (12, 9, b"\1\1", struct.pack("<I", 5))


def test_ndr64_ends_a_structure_with_a_gap() -> None:
    """[MS-RPCE] 2.2.5.3.4.1, with the structure of its example 4.8."""
    structure = made(ndr.NDRSTRUCT, structure=(("l", ndr.NDRLONG), ("s", ndr.NDRSHORT)))
    call = made(ndr.NDRCALL, structure=(("value", structure), ("next", ndr.NDRSHORT)))
    assert len(call(isNDR64=True).getData()) == 8
    module = ours("typedef struct { long l; short s; } S; void f([in] S* value, [in] short next);")
    request = module.f(isNDR64=True)
    request["value"]["l"], request["value"]["s"], request["next"] = 1, 2, 3
    octets = bytes.fromhex("01000000 0200 0000 0300")
    assert request.getData() == octets
    assert module.f(octets, isNDR64=True)["next"] == 3


def hyper() -> tuple[Any, Any]:
    structure = made(ndr.NDRSTRUCT, structure=(("QuadPart", ndr.NDRUHYPER),))
    element = structure()
    element["QuadPart"] = 5
    return structure, element


def test_a_call_counts_the_count_of_an_array_before_it_aligns_the_elements() -> None:
    """What impacket writes here it cannot read itself."""
    structure, element = hyper()
    array = made(ndr.NDRUniConformantArray, item=structure)
    call = made(ndr.NDRCALL, structure=(("n", ndr.NDRULONG), ("x", array)))
    theirs = call()
    theirs["n"], theirs["x"] = 1, [element]
    assert call(theirs.getData())["x"][0]["QuadPart"] != 5
    module = ours(HYPERS)
    request = module.f()
    item = module.ULARGE_INTEGER()
    item["QuadPart"] = 5
    request["n"], request["x"] = 1, [item]
    octets = struct.pack("<IIQ", 1, 1, 5)
    assert request.getData() == octets
    assert module.f(octets)["x"][0]["QuadPart"] == 5


def test_an_empty_array_is_aligned_as_one_with_elements() -> None:
    structure, _ = hyper()
    array = made(ndr.NDRUniConformantArray, item=structure)
    pointer = made(ndr.NDRPOINTER, referent=(("Data", array),))
    theirs = made(ndr.NDRCALL, structure=(("x", pointer), ("next", ndr.NDRULONG)))()
    theirs["x"] = []
    assert len(theirs.getData()) == 12
    module = ours(
        "void f([in] long n, [in, unique, size_is(n)] ULARGE_INTEGER x[], [in] long next);"
    )
    request = module.f()
    request["n"], request["x"], request["next"] = 0, [], 7
    data = request.getData()
    assert (len(data), data[8:12], data[16:]) == (20, bytes(4), struct.pack("<I", 7))


def test_an_array_is_aligned_by_the_ndr64_form_of_its_elements() -> None:
    pointer = made(ndr.NDRPOINTER, referent=(("Data", ndr.NDRULONG),))
    array = made(ndr.NDRUniConformantArray, item=pointer)
    vector = made(ndr.NDRSTRUCT, structure=(("Count", ndr.NDRULONG), ("IfId", array)))
    assert vector(isNDR64=True).getAlignment() == 4
    assert impacket_module("mgmt").rpc_if_id_vector_t(isNDR64=True).getAlignment() == 8


@pytest.mark.parametrize("syntax", TransferSyntax)
def test_a_call_can_change_its_transfer_syntax(syntax: TransferSyntax) -> None:
    """impacket's client makes a request in NDR and changes it once it knows what was bound."""
    module = impacket_module("remoteread")
    request = module.R_OpenQueue()
    request["pQueueFormat"]["m_qft"] = 3
    request["pQueueFormat"]["u"]["tag"] = 3
    request["pQueueFormat"]["u"]["m_pDirectID"] = "OS:pc\\q\0"
    request["pClientId"] = b"g" * 16
    request["fWorkgroup"] = 1
    if syntax is TransferSyntax.NDR64:
        request.changeTransferSyntax(
            bytes.fromhex("33057171babe37498319b5dbef9ccc36") + struct.pack("<HH", 1, 0)
        )
    read = load("remoteread").operation("R_OpenQueue").decode_request(syntax, request.getData())
    assert (read.pQueueFormat.u.value, read.fWorkgroup) == ("OS:pc\\q", 1)


def test_a_session_error_names_its_status() -> None:
    module = impacket_module("remoteread")
    error = module.DCERPCSessionError(error_code=0xC00E0007)
    assert "MQ_ERROR_INVALID_HANDLE" in str(error)
    assert "0x12345678" in str(module.DCERPCSessionError(error_code=0x12345678))


def test_responses_are_where_impacket_looks_for_them() -> None:
    for name in ("remoteread", "qm2qm", "qmcomm", "qmcomm2", "qmmgmt", "epm", "mgmt"):
        module = impacket_module(name)
        interface = load(name)
        assert set(module.OPNUMS) == {o.opnum for o in interface.operations if o}
        for opnum, (request, response) in module.OPNUMS.items():
            assert request.opnum == opnum
            assert getattr(module, request.__name__ + "Response") is response
            assert request.__module__ == module.__name__
