"""Registering an interface: what a server prepares at its start, and what with the first call."""

from rpcqm.codec.interface import TransferSyntax, read
from rpcqm.codec.ndr.compile import Wire
from rpcqm.rpc.interface_registry import InterfacePolicy, register

TEXT = """\
[uuid(6a3c2b7e-93d5-4c53-9d2f-0f6f0f3d1c11), version(1.0), pointer_default(unique)]
interface example { long double_it([in] long number); }
"""


class Handlers:
    def double_it(self, call: object, request: object) -> int:
        return 0


def test_nothing_is_compiled_before_the_first_call_and_then_what_it_needs() -> None:
    interface = read(TEXT, "example.idl", [TransferSyntax.NDR])
    compiled = interface.compiler(Wire()).module.namespace
    registered = register(interface, Handlers(), InterfacePolicy())
    (((entry,),)) = registered.tables.values()
    assert entry is not None
    assert not [name for name in compiled if "double_it" in name]
    request = entry.decode(b"\7\0\0\0")
    assert request.number == 7  # type: ignore[attr-defined]
    assert entry.encode(entry.response_of_status(request, 14)) == b"\16\0\0\0"
    assert {name for name in compiled if "double_it" in name} == {
        "decode_double_itRequest",
        "encode_double_itResponse",
    }
