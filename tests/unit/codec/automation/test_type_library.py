"""What IDispatch and type information tell of the interfaces of MSMQ."""

import pytest

from rpcqm.codec.automation.type_library import Member, TypeDescription, describe
from rpcqm.codec.idl.load import load_idl
from rpcqm.codec.types import oautvalues as oa

AUTOMATION = [d.name for d in load_idl("mqac").interfaces.values() if d.automation]


def members(interface: str, name: str) -> list[Member]:
    return [member for member in describe(interface).members if member.name == name]


@pytest.mark.parametrize("interface", AUTOMATION)
def test_every_method_is_a_member_and_a_property_has_one_number(interface: str) -> None:
    declared = load_idl("mqac").interfaces[interface]
    found = describe(interface).members
    assert [m.opnum for m in found] == list(range(7, len(declared.operations)))
    names = {m.name: m.dispid for m in found}
    assert all(m.dispid == names[m.name] for m in found)
    assert len(set(names.values())) == len(names)
    assert len({name.lower() for name in names}) == len(names)


def test_a_property_has_a_member_for_each_accessor() -> None:
    get, put = members("IMSMQMessage4", "Label")
    assert (get.operation, get.invoke_kind) == ("get_Label", oa.INVOKE_PROPERTYGET)
    assert (put.operation, put.invoke_kind) == ("put_Label", oa.INVOKE_PROPERTYPUT)
    _, putref = members("IMSMQMessage4", "ResponseQueueInfo")
    assert putref.invoke_kind == oa.INVOKE_PROPERTYPUTREF


def test_parameters_have_their_types_and_flags() -> None:
    (opened,) = members("IMSMQQueueInfo4", "Open")
    assert opened.invoke_kind == oa.INVOKE_FUNC
    access, _, queue = opened.parameters
    assert (access.name, access.type, access.flags) == (
        *("Access", TypeDescription(oa.VT_I4), oa.PARAMFLAG_FIN),
    )
    interface = TypeDescription(oa.VT_USERDEFINED, name="IMSMQQueue4")
    pointer = TypeDescription(oa.VT_PTR, TypeDescription(oa.VT_PTR, interface))
    assert (queue.type, queue.flags) == (pointer, oa.PARAMFLAG_FOUT | oa.PARAMFLAG_FRETVAL)
    (send,) = members("IMSMQMessage4", "Send")
    destination, transaction = send.parameters
    assert destination.type == TypeDescription(oa.VT_DISPATCH)
    assert transaction.type == TypeDescription(oa.VT_PTR, TypeDescription(oa.VT_VARIANT))
    assert transaction.flags == oa.PARAMFLAG_FIN | oa.PARAMFLAG_FOPT


def test_truth_is_not_a_short_number() -> None:
    (short,) = members("IMSMQQueueInfo4", "IsTransactional")
    (truth,) = members("IMSMQQueueInfo4", "IsTransactional2")
    assert [m.parameters[0].type.element for m in (short, truth)] == [
        TypeDescription(oa.VT_I2),
        TypeDescription(oa.VT_BOOL),
    ]


def test_a_collection_has_the_reserved_numbers() -> None:
    numbers = {m.name: m.dispid for m in describe("IMSMQCollection").members}
    assert numbers == {"Item": 0, "Count": 1, "_NewEnum": -4}
    (enumerator,) = members("IMSMQCollection", "_NewEnum")
    assert enumerator.flags == oa.FUNCFLAG_FRESTRICTED


def test_events_have_the_published_numbers() -> None:
    events = describe("_DMSMQEventEvents")
    assert {m.name: m.dispid for m in events.members} == {"Arrived": 0, "ArrivedError": 1}
    assert [p.name for p in events.members[1].parameters] == ["Queue", "ErrorCode", "Cursor"]


def test_a_derived_interface_counts_on_behind_its_base() -> None:
    base, derived = describe("IMSMQTransaction"), describe("IMSMQTransaction3")
    assert derived.members[: len(base.members)] == base.members
    assert derived.base == "IMSMQTransaction2"
    assert derived.flags & oa.TYPEFLAG_FDUAL
    assert derived.flags & oa.TYPEFLAG_FHIDDEN


def test_an_interface_that_is_no_automation_has_no_description() -> None:
    for name in ("ITransaction", "Unknown"):
        with pytest.raises(KeyError):
            describe(name)
