"""Targets of DCOM's codecs: VARIANTs, references to objects, calls of objects, properties."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.codec.automation.marshalling import functions
from rpcqm.codec.automation.objref import unpack_objref
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.idl.load import load_idl
from rpcqm.codec.idl.tree import StructureType
from rpcqm.codec.interface import load
from rpcqm.codec.ndr.compile import Wire
from rpcqm.codec.pickling import serialized
from tests.fuzz.mutation import mutated
from tests.fuzz.target import Target, Violation
from tests.fuzz.targets_codec import WIRES, examples, fed_by
from tests.support.codec.idl_values import structures
from tests.support.dcom.variants import BSTRS, arrays, plain_variants, variants

CALLED = (
    ("oaut.IDispatch", ("GetIDsOfNames", "Invoke")),
    ("oaut.IEnumVARIANT", ("Next",)),
    ("oaut.ITypeInfo", ("GetFuncDesc", "GetNames", "GetTypeAttr")),
    ("dcom.IRemUnknown2", ("RemQueryInterface", "RemAddRef", "RemRelease", "RemQueryInterface2")),
    ("dcom.IActivation", ("RemoteActivation",)),
    ("dcom.IRemoteSCMActivator", ("RemoteGetClassObject", "RemoteCreateInstance")),
    ("dcom.IObjectExporter", ("ResolveOxid", "ComplexPing", "ResolveOxid2", "ServerAlive2")),
    ("mqac.IMSMQMessage4", ("put_Body", "get_Body", "Send", "put_Label")),
    ("mqac.IMSMQQueue4", ("Receive", "ReceiveByLookupId")),
)
SERIALIZED = ("InstantiationInfoData", "PropsOutInfo", "CustomHeader", "ScmReplyInfoData")


@dataclass(frozen=True)
class Form:
    """What one kind of input is read and written by; `seeds` are values."""

    name: str
    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]
    seeds: Callable[[], list[Any]]


def _drawn(strategy: st.SearchStrategy[Any]) -> list[Any]:
    """The largest of some values, the same each time."""
    found: list[Any] = []

    @settings(
        max_examples=60,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def keep(value: Any) -> None:
        found.append(value)

    keep()
    return sorted(found, key=lambda value: len(repr(value)))[-12:]


def _marshalled(kind: str, strategy: st.SearchStrategy[Any], wire: Wire) -> Form:
    known: dict[str, Any] = functions(wire.ndr64, wire.big_endian)

    def read(octets: bytes) -> Any:
        return known[f"read_{kind}"](octets, 0, len(octets))[0]

    def write(value: Any) -> bytes:
        parts: list[bytes] = []
        known[f"write_{kind}"](parts.append, 0, value, lambda: 0x20000)
        return b"".join(parts)

    return Form(f"{kind} {wire}", read, write, lambda: _drawn(strategy))


def _called(interface: str, name: str, wire: Wire, response: bool) -> Form:
    loaded = load(interface)
    declared = loaded.operation(name).declaration
    codec = loaded.compiler(wire).codec(declared, response)
    return Form(f"{name} {wire}", codec.decode, codec.encode, lambda: examples(declared, response))


def _serialized(name: str) -> Form:
    codec = serialized("dcom", name)
    made = load_idl("dcom").types[name]
    assert isinstance(made, StructureType)
    return Form(name, codec.decode, codec.encode, lambda: _drawn(structures(made)))


def _objref_octets() -> list[Any]:
    std = "0010000005000000 0100000000000000 0200000000000000" + "11" * 16
    bindings = "0a00 0700 0700 3100 3200 3700 0000 0000 0a00 ffff 0000 0000"
    iid = "22" * 16
    texts = (
        f"4d454f57 01000000 {iid} {std} {bindings}",
        f"4d454f57 02000000 {iid} {std} {'33' * 16} {bindings}",
        f"4d454f57 04000000 {iid} {'33' * 16} 00000000 08000000 0102030405060708",
        f"4d454f57 08000000 {iid} {std} 4e535956 {bindings} 01000000 4e535956"
        f"{'44' * 16} 04000000 08000000 0102030400000000",
    )
    return [bytes.fromhex(text) for text in texts]


@cache
def forms() -> tuple[Form, ...]:
    """All kinds; an input's first octet says its own."""
    return (
        *(_marshalled("VARIANT", variants(), wire) for wire in WIRES),
        *(_marshalled("SAFEARRAY", arrays(plain_variants()), wire) for wire in WIRES),
        *(_marshalled("BSTR", BSTRS, wire) for wire in WIRES),
        Form("OBJREF", lambda octets: unpack_objref(octets) and octets, bytes, _objref_octets),
        *(_serialized(name) for name in SERIALIZED),
        *(
            _called(interface, name, wire, response)
            for interface, names in CALLED
            for name in names
            for wire in WIRES
            for response in (False, True)
        ),
    )


def _read(octets: bytes) -> Hashable:
    """What is read is written and read again: the same."""
    known = forms()
    form = known[octets[0] % len(known)] if octets else known[0]
    value = form.read(octets[1:])
    if repr(form.read(form.write(value))) != repr(value):
        raise Violation(f"{form.name} that is written becomes something else")
    return form.name, _shape(value)


def _shape(value: Any) -> Hashable:
    """The types that a VARIANT has in it, to know new ones by."""
    if isinstance(value, Variant):
        return value.vt, _shape(value.value)
    if isinstance(value, SafeArray):
        return value.vt, len(value.bounds), len(value.values) > 0
    return type(value).__name__


def _seeds() -> Iterable[bytes]:
    for at, form in enumerate(forms()):
        yield from (bytes((at,)) + form.write(value) for value in form.seeds())


def _mutated(random: Random, octets: bytes, others: Any) -> bytes:
    """Mostly of the same kind."""
    if random.random() < 0.02:
        return mutated(random, octets, others)
    return octets[:1] + mutated(random, octets[1:], [octets[1:]])


TARGETS = (Target("automation", _seeds, fed_by(_read), (DecodeError,), mutate=_mutated, share=25),)
