"""Interfaces of objects: inheritance, what every call carries, properties, classes."""

from uuid import UUID

import pytest

from rpcqm.codec.idl.load import IdlError, load_idl, read_idl
from rpcqm.codec.idl.tree import (
    IdlFile,
    Integer,
    InterfaceDeclaration,
    InterfacePointer,
    OperationDeclaration,
    WireMarshal,
)
from rpcqm.codec.interface import Interface, TransferSyntax, load

THING = """
import "oaut.idl";
[object, uuid(00000000-0000-0000-0000-000000000001), dual]
interface IThing : IDispatch {
    [propget, id(3)] HRESULT Name([out, retval] BSTR* name);
    [propput, id(3)] HRESULT Name([in] BSTR name);
    [propputref] HRESULT Other([in] IThing* other);
    HRESULT Find([in, optional] VARIANT* what, [in, defaultvalue(1)] long from,
                 [out, retval] IThing** found);
    %s
}
"""


def file_of(more: str = "", after: str = "") -> IdlFile:
    return read_idl(THING % more + after, "thing.idl")


def thing(more: str = "") -> InterfaceDeclaration:
    return file_of(more).interfaces["IThing"]


def operation_of(interface: InterfaceDeclaration, name: str) -> OperationDeclaration:
    return next(o for o in interface.operations if o is not None and o.name == name)


def test_an_interface_inherits_the_opnums_of_its_base() -> None:
    interface = thing()
    assert [base.name for base in interface.bases] == ["IDispatch", "IUnknown"]
    assert [o and o.name for o in interface.operations[:7]] == [
        *(None, None, None),
        *("GetTypeInfoCount", "GetTypeInfo", "GetIDsOfNames", "Invoke"),
    ]
    assert [(o.opnum, o.name) for o in interface.own] == [
        *((7, "get_Name"), (8, "put_Name"), (9, "putref_Other"), (10, "Find")),
    ]


def test_every_call_of_an_object_begins_with_what_orpc_adds() -> None:
    find = operation_of(thing(), "Find")
    assert [(p.name, p.in_, p.out) for p in find.parameters] == [
        ("orpcthis", True, False),
        ("orpcthat", False, True),
        ("what", True, False),
        ("from", True, False),
        ("found", False, True),
    ]
    assert find.parameters[0].type is load_idl("dcom").types["ORPCTHIS"]
    assert find.parameters[1].type is load_idl("dcom").types["ORPCTHAT"]


def test_a_call_of_no_object_has_nothing_before_its_parameters() -> None:
    alive = operation_of(load_idl("dcom").interfaces["IObjectExporter"], "ServerAlive")
    assert alive.parameters == ()


def test_methods_keep_their_member_numbers_and_attributes() -> None:
    interface = thing()
    assert [operation_of(interface, name).member for name in ("get_Name", "put_Name")] == [3, 3]
    find = operation_of(interface, "Find")
    assert find.member is None
    assert [p.attributes for p in find.parameters[2:]] == [
        {"in", "optional"},
        {"in", "defaultvalue"},
        {"out", "retval"},
    ]
    assert [p.declared for p in find.parameters[2:]] == ["VARIANT*", "long", "IThing**"]


def test_types_of_automation_have_their_own_codecs() -> None:
    interface = thing("HRESULT Flag([in] VARIANT_BOOL on, [in] VARIANT value, [in] SAFEARRAY all);")
    flag, value, every = (p.type for p in operation_of(interface, "Flag").parameters[2:])
    assert isinstance(flag, Integer)
    assert flag.truth
    assert (flag.size, flag.signed) == (2, True)
    assert value == WireMarshal("VARIANT")
    assert every == WireMarshal("SAFEARRAY")


def test_a_pointer_to_an_interface_is_one_under_any_name() -> None:
    more = """
        typedef IThing* LPTHING;
        HRESULT All([in] IThing* a, [in] LPTHING b, [out] LPTHING* c, [in] MInterfacePointer* d);
    """
    types = [p.type for p in operation_of(thing(more), "All").parameters[2:]]
    assert types == [InterfacePointer("IThing")] * 3 + [InterfacePointer("MInterfacePointer")]


def test_an_interface_by_value_is_refused() -> None:
    with pytest.raises(IdlError, match=r"thing\.idl:\d+: IThing is an interface"):
        thing("HRESULT Bad([in] IThing thing);")


def test_a_class_names_its_interfaces_its_default_and_its_sources() -> None:
    after = """
        [uuid(00000000-0000-0000-0000-000000000002)]
        dispinterface _Events {
            properties:
            methods:
            [id(7)] void Happened([in] IDispatch* what, [in] long number);
        };
        [uuid(00000000-0000-0000-0000-000000000003)]
        coclass Thing {
            interface IUnknown;
            [default] interface IThing;
            [default, source] dispinterface _Events;
        };
    """
    file = file_of(after=after)
    made = file.coclasses["Thing"]
    assert made.uuid == UUID(int=3)
    assert (made.interfaces, made.default, made.sources) == (
        *(("IUnknown", "IThing"), "IThing", ("_Events",)),
    )
    (happened,) = file.dispinterfaces["_Events"].operations
    assert (happened.name, happened.member, happened.result) == ("Happened", 7, None)


def test_the_published_interfaces_are_all_there() -> None:
    """48 interfaces with 660 methods, the events' among them."""
    file = load_idl("mqac")
    declared = [*file.interfaces.values()]
    events = file.dispinterfaces["_DMSMQEventEvents"]
    assert len(declared) + len(file.dispinterfaces) == 48
    assert sum(len(each.own) for each in declared) + len(events.operations) == 660
    assert [(each.name, each.member) for each in events.operations] == [
        *(("Arrived", 0), ("ArrivedError", 1)),
    ]
    assert len(file.coclasses) == 15


NEWEST = {
    "IMSMQQueueInfo4": 45,
    "IMSMQQueue4": 39,
    "IMSMQMessage4": 97,
    "IMSMQTransactionDispenser3": 8,
    "IMSMQTransaction3": 12,
    "IMSMQCoordinatedTransactionDispenser3": 8,
    "IMSMQApplication3": 24,
    "IMSMQManagement": 15,
    "IMSMQQueueManagement": 18,
    "IMSMQOutgoingQueueManagement": 21,
    "IMSMQDestination": 20,
    "IMSMQQuery4": 9,
    "IMSMQQueueInfos4": 9,
    "IMSMQCollection": 9,
    "IMSMQEvent3": 7,
    "IMSMQPrivateEvent": 9,
}


def test_the_last_opnum_is_the_published_one() -> None:
    interfaces = load_idl("mqac").interfaces
    assert {name: len(interfaces[name].operations) - 1 for name in NEWEST} == NEWEST
    assert operation_of(interfaces["IMSMQMessage4"], "Send").opnum == 54
    assert operation_of(interfaces["IMSMQQueue4"], "Receive").opnum == 20


@pytest.mark.parametrize("syntax", TransferSyntax)
def test_inherited_methods_are_read_and_written_like_the_base_s(syntax: TransferSyntax) -> None:
    base, derived = load("oaut.IDispatch"), load("mqac.IMSMQEvent3")
    count = derived.operation("GetTypeInfoCount")
    assert count.codec(syntax) is not None
    assert count.request_class is base.operation("GetTypeInfoCount").request_class
    assert set(derived.syntaxes) == set(TransferSyntax)


def test_a_file_with_several_interfaces_is_asked_for_one() -> None:
    assert load("dcom.IRemUnknown2").operation("RemQueryInterface2").opnum == 6
    assert isinstance(load("dcom.IRemUnknown"), Interface)
    with pytest.raises(ValueError, match="declares no interface INone"):
        load("dcom.INone")
    with pytest.raises(ValueError, match="declares 7 interfaces"):
        load("dcom")
