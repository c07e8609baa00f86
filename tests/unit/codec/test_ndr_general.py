"""What IDL can say and MSMQ's interfaces do not (yet): every construct, there and back."""

import random
import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.codec.idl.tree import OperationDeclaration, StructureType, Union
from rpcqm.codec.interface import NULL, Interface, TransferSyntax
from rpcqm.codec.ndr.classes import class_of
from rpcqm.codec.ndr.compile import Wire
from tests.support.codec.idl_text import file_of
from tests.support.codec.idl_values import messages

NDR, NDR64 = TransferSyntax.NDR, TransferSyntax.NDR64
WIRES = [Wire(), Wire(ndr64=True), Wire(big_endian=True), Wire(ms_union=True)]

FILE = file_of(
    """
    typedef enum { RED, GREEN } colour;
    typedef [v1_enum] enum { SMALL_ONE, BIG_ONE } size;
    typedef [context_handle] void* HANDLE_A;
    interface IThing;

    typedef struct { long a; byte b; } point;
    typedef struct { hyper h; boolean b; } wide;
    typedef struct { unsigned long n; [size_is(n)] short values[]; } conformant;
    typedef struct { unsigned long n; byte gap; [size_is(n)] point* points[]; } vector;
    typedef struct {
        unsigned short Length;
        unsigned short MaximumLength;
        [size_is(MaximumLength / 2), length_is(Length / 2)] wchar_t* Buffer;
    } UNICODE_STRING;
    typedef union switch (short kind) value {
        case 1: case 2: long number;
        case 3: [string] char* text;
        case 4: ;
        default: wide w;
    } choice;
    typedef struct _node { long value; struct _node* next; } node;
    typedef [switch_type(long)] union { [case(1)] hyper h; [case(2)] point p; } loose;

    void scalars([in] float f, [in] double d, [in] boolean b, [in] __int3264 i, [in] small s,
                 [in] colour c, [in] size z, [out] colour* oc);
    void fixed([in] long a[3], [in] point p[2], [in] wide w[2], [in] byte octets[5],
               [in] wchar_t text[4], [in] GUID g[2], [in] colour c[3]);
    void varying([in] long n, [in, length_is(n)] short a[6], [in, string] char s[9],
                 [in] long m, [in, length_is(m)] wide w[4]);
    void arrays([in] long n, [in, size_is(n)] colour c[], [in, size_is(n)] size z[],
                [in, size_is(n)] wide* w, [in, size_is(n)] double d[],
                [in, size_is(n)] loose_box b[]);
    void pointers([in, unique] point* p, [in, ref] wide* r, [in, unique] long** pp,
                  [in, ptr] point* f, [in, ptr] point* g);
    void structures([in] conformant* c, [in, unique] vector* v, [in] ref_box* b);
    void strings([in, string] char* a, [in, unique, string] wchar_t* b, [in] UNICODE_STRING* u);
    void unions([in] choice* c, [in] long tag, [in, switch_is(tag)] loose* l);
    void lists([in] long n, [in, size_is(n)] choice c[], [in] node* list);
    void late([in, size_is(n)] byte a[], [in, unique, size_is(n)] short* b, [in] long n);
    void handles([in] long n, [in, size_is(n)] HANDLE_A h[], [in, out] HANDLE_A* one);
    void things([in] GUID* riid, [out, iid_is(riid)] IThing** thing, [in] IThing* other);
    typedef struct { byte b; [ref] long* r; [ref] point* p; } ref_box;
    typedef struct { long tag; [switch_is(tag)] loose l; [ptr] point* shared; } loose_box;
    """
)
EVERYTHING = Interface(FILE.interfaces["example"])
OPERATIONS = [o for o in EVERYTHING.declaration.operations if o is not None]


@pytest.mark.parametrize("wire", WIRES, ids=["ndr", "ndr64", "big-endian", "ms_union"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), seed=st.integers(0, 1 << 32))
def test_every_construct_is_read_as_it_was_written(
    data: st.DataObject, seed: int, operation: OperationDeclaration, wire: Wire
) -> None:
    interface = Interface(EVERYTHING.declaration, wire.ms_union)
    chance = random.Random(seed)
    for response in (False, True):
        codec = interface.compiler(wire).codec(operation, response)
        value = data.draw(messages(operation, response))
        stub = codec.encode(value)
        assert codec.decode(stub) == value
        for size in range(len(stub)):
            try:
                assert codec.decode(stub[:size]) == value
            except DecodeError:
                continue
        damaged = bytearray(stub)
        for _ in range(8 if stub else 0):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            try:
                codec.decode(bytes(damaged))
            except DecodeError:
                continue


def operation(name: str) -> Any:
    return EVERYTHING.operation(name)


def structure(name: str) -> Any:
    """The class of a structure or a union of the interface above."""
    found = FILE.types[name]
    assert isinstance(found, StructureType | Union)
    return class_of(found)


def test_scalars_are_aligned_to_themselves() -> None:
    scalars = operation("scalars")
    request = scalars.request_class(f=1.5, d=-2.5, b=1, i=-3, s=-4, c=1, z=1)
    ndr = struct.pack("<f4xdB3xib1xHI", 1.5, -2.5, 1, -3, -4, 1, 1)
    assert scalars.encode_request(NDR, request) == ndr
    ndr64 = struct.pack("<f4xdB7xqb3xII", 1.5, -2.5, 1, -3, -4, 1, 1)
    assert scalars.encode_request(NDR64, request) == ndr64
    assert scalars.decode_request(NDR, ndr) == request
    assert scalars.decode_request(NDR64, ndr64) == request


def test_a_count_is_checked_also_where_it_comes_later() -> None:
    late = operation("late")
    request = late.request_class(a=b"ab", b=[1, 2], n=2)
    stub = late.encode_request(NDR, request)
    assert late.decode_request(NDR, stub) == request
    with pytest.raises(DecodeError, match="size of a"):
        late.decode_request(NDR, stub[:-4] + struct.pack("<I", 3))
    empty = late.encode_request(NDR, late.request_class(a=b"", b=None, n=0))
    with pytest.raises(DecodeError):
        late.decode_request(NDR, empty[:-4] + struct.pack("<I", 1))
    nothing = struct.pack("<I", 1) + b"a\0\0\0" + struct.pack("<II", 0, 1)
    with pytest.raises(DecodeError, match="b is null"):
        late.decode_request(NDR, nothing)


def test_an_expression_gives_size_and_length() -> None:
    """[MS-RPCE] 4.7."""
    strings = operation("strings")
    text = structure("UNICODE_STRING")(Length=4, MaximumLength=6, Buffer="AB")
    request = strings.request_class(a="x", b=None, u=text)
    stub = strings.encode_request(NDR, request)
    head = struct.pack("<3I", 2, 0, 2) + b"x\0\0\0" + bytes(4)
    assert stub == head + struct.pack("<HHIIII", 4, 6, 0x20000, 3, 0, 2) + b"A\0B\0"
    assert strings.decode_request(NDR, stub) == request
    text.Length = 6
    with pytest.raises(ValueError, match="length of Buffer"):
        strings.encode_request(NDR, request)


def test_an_encapsulated_union_has_a_default() -> None:
    unions = operation("unions")
    wide = structure("wide")(h=5, b=1)
    for tag, value, octets in (
        (1, 7, struct.pack("<h2xi", 1, 7)),
        (4, None, struct.pack("<h", 4)),
        (9, wide, struct.pack("<h6xqB", 9, 5, 1)),
    ):
        request = unions.request_class(
            c=structure("choice")(tag, value), tag=2, l=structure("loose")(2, POINT)
        )
        stub = unions.encode_request(NDR, request)
        assert stub.startswith(octets)
        assert unions.decode_request(NDR, stub) == request


POINT = structure("point")(a=1, b=2)


def test_an_embedded_reference_pointer_is_never_null() -> None:
    """In NDR its four octets mean nothing; in NDR64 they must not be zero."""
    structures = operation("structures")
    box = structure("ref_box")(b=1, r=5, p=POINT)
    request = structures.request_class(c=structure("conformant")(n=0, values=[]), v=None, b=box)
    stub = structures.encode_request(NDR, request)
    at = stub.index(struct.pack("<I", 0x20000))
    assert structures.decode_request(NDR, stub[:at] + bytes(8) + stub[at + 8 :]) == request
    stub = structures.encode_request(NDR64, request)
    at = stub.index(struct.pack("<Q", 0x20000))
    with pytest.raises(DecodeError, match="reference pointer is null"):
        structures.decode_request(NDR64, stub[:at] + bytes(8) + stub[at + 8 :])


def test_a_list_has_an_end() -> None:
    lists = operation("lists")
    node = structure("node")
    head = None
    for value in range(10):
        head = node(value=value, next=head)
    request = lists.request_class(n=0, c=[], list=head)
    for syntax in TransferSyntax:
        assert lists.decode_request(syntax, lists.encode_request(syntax, request)) == request
    for value in range(30):
        head = node(value=value, next=head)
    request.list = head
    with pytest.raises(DecodeError, match="nested too deeply"):
        lists.decode_request(NDR, lists.encode_request(NDR, request))


def test_an_interface_pointer_is_its_objref() -> None:
    things = operation("things")
    response = things.response_class(thing=b"MEOW")
    stub = struct.pack("<III", 0x20000, 4, 4) + b"MEOW"
    assert things.encode_response(NDR, response) == stub
    assert things.decode_response(NDR, stub) == response
    assert things.encode_response(NDR64, response) == struct.pack("<QQI", 0x20000, 4, 4) + b"MEOW"
    assert things.decode_response(NDR, bytes(4)).thing is None
    with pytest.raises(DecodeError):
        things.decode_response(NDR, struct.pack("<III", 0x20000, 4, 5) + b"MEOWW")


def test_a_pointer_to_a_null_pointer_is_not_a_null_pointer() -> None:
    pointers = operation("pointers")
    wide = structure("wide")(h=1, b=0)
    sizes = []
    for value in (None, NULL, 5):
        request = pointers.request_class(p=None, r=wide, pp=value, f=None, g=None)
        stub = pointers.encode_request(NDR, request)
        assert pointers.decode_request(NDR, stub).pp == value
        sizes.append(len(stub))
    assert sizes == [32, 36, 40]


def test_a_full_pointer_and_its_alias() -> None:
    pointers = operation("pointers")
    wide = structure("wide")(h=1, b=0)
    request = pointers.request_class(p=None, r=wide, pp=None, f=POINT, g=POINT)
    decoded = pointers.decode_request(NDR, pointers.encode_request(NDR, request))
    assert decoded.f is decoded.g
    assert decoded == request


@pytest.mark.parametrize("wire", WIRES, ids=["ndr", "ndr64", "big-endian", "ms_union"])
def test_what_is_too_much_for_its_place_is_not_written(wire: Wire) -> None:
    fixed = EVERYTHING.operation("fixed").declaration
    codec = EVERYTHING.compiler(wire).codec(fixed, response=False)
    wide = structure("wide")(h=1, b=0)
    good = {
        "a": [1, 2, 3],
        "p": [POINT, POINT],
        "w": [wide, wide],
        "octets": b"12345",
        "text": "abcd",
        "g": [UUID(int=1)] * 2,
        "c": [0, 1, 2],
    }
    request = EVERYTHING.operation("fixed").request_class(**good)
    assert codec.decode(codec.encode(request)) == request
    for name, value in good.items():
        changed = EVERYTHING.operation("fixed").request_class(**{**good, name: value[:-1]})
        with pytest.raises(ValueError, match=f"{name} has not"):
            codec.encode(changed)
