"""What ITypeInfo tells of an interface is what its IDL says ([MS-OAUT] 3.7)."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from rpcqm.base.errors import MQError
from rpcqm.codec.automation.type_library import describe, described_names
from rpcqm.codec.types.oautvalues import (
    FUNCKIND,
    INVOKEKIND,
    PARAMFLAGS,
    TYPEFLAGS,
    TYPEKIND,
    VT_BSTR,
    VT_HRESULT,
    VT_PTR,
    VT_USERDEFINED,
    VT_VARIANT,
    VT_VOID,
)
from rpcqm.dcom.type_info import TypeInfo

CALL = cast(Any, None)
PARTNER = 0xFFFFFFFF


def members(info: TypeInfo) -> list[Any]:
    attributes, _ = info.GetTypeAttr(CALL)
    return [info.GetFuncDesc(CALL, index)[0] for index in range(attributes.cFuncs)]


@pytest.mark.parametrize("name", described_names())
def test_every_member_of_every_interface_is_described(name: str) -> None:
    described = describe(name)
    info = TypeInfo(name)
    functions = members(info)
    assert len(functions) == len(described.members) + 7
    for function, member in zip(functions[7:], described.members, strict=True):
        assert (function.memid, function.invkind) == (member.dispid, member.invoke_kind)
        names, count = info.GetNames(CALL, member.dispid, 100)
        assert names[0] == member.name
        assert count == len(names)
        assert info.GetDocumentation(CALL, member.dispid, 1)[0] == member.name
    with pytest.raises(MQError, match="TYPE_E_ELEMENTNOTFOUND"):
        info.GetFuncDesc(CALL, len(described.members) + 7)


@pytest.mark.parametrize("name", described_names())
def test_accessors_of_a_property_share_its_number_and_nothing_else_does(name: str) -> None:
    described = describe(name)
    keys = {(member.dispid, member.invoke_kind) for member in described.members}
    assert len(keys) == len(described.members)
    names = {(member.dispid, member.name.lower()) for member in described.members}
    assert len({dispid for dispid, _ in names}) == len(names)


def test_the_description_of_a_dual_interface_is_a_dispinterface() -> None:
    attributes, reserved = TypeInfo("IMSMQQueue4").GetTypeAttr(CALL)
    assert reserved == 0
    assert attributes.typekind == TYPEKIND.TKIND_DISPATCH
    assert str(attributes.guid) == "eba96b20-2168-11d3-898c-00e02c074f6b"
    assert attributes.wTypeFlags & TYPEFLAGS.TYPEFLAG_FDUAL
    assert (attributes.cFuncs, attributes.cVars, attributes.cImplTypes) == (40, 0, 1)
    assert attributes.cbSizeVft == 7 * attributes.cbSizeInstance
    assert (attributes.dwReserved2, attributes.dwReserved3) == (0xFFFFFFFF, 0xFFFFFFFF)


def test_its_partner_has_the_methods_as_they_are_in_memory() -> None:
    info = TypeInfo("IMSMQQueue4")
    partner = info.GetRefTypeInfo(CALL, info.GetRefTypeOfImplType(CALL, PARTNER))
    assert partner is not None
    attributes, _ = partner.GetTypeAttr(CALL)
    assert attributes.typekind == TYPEKIND.TKIND_INTERFACE
    assert (attributes.cFuncs, attributes.cbSizeVft) == (33, 160)
    receive = next(each for each in members(partner) if each.oVft == 20 * 4)
    assert receive.funckind == FUNCKIND.FUNC_PUREVIRTUAL
    assert receive.elemdescFunc.tdesc.vt == VT_HRESULT
    assert receive.cParams == 6
    last = receive.lprgelemdescParam[-1]
    assert last.paramdesc.wParamFlags & PARAMFLAGS.PARAMFLAG_FRETVAL
    back = partner.GetRefTypeInfo(CALL, partner.GetRefTypeOfImplType(CALL, PARTNER))
    assert back is not None
    assert back.GetTypeAttr(CALL)[0].typekind == TYPEKIND.TKIND_DISPATCH


def test_a_method_has_its_parameters_and_its_result_as_types() -> None:
    info = TypeInfo("IMSMQQueue4")
    receive = next(each for each in members(info) if each.oVft == 20 * 4)
    assert (receive.funckind, receive.invkind) == (FUNCKIND.FUNC_DISPATCH, INVOKEKIND.INVOKE_FUNC)
    assert (receive.cParams, receive.cParamsOpt) == (5, 5)
    first = receive.lprgelemdescParam[0]
    assert first.paramdesc.wParamFlags == 0x11
    assert (first.tdesc.vt, first.tdesc._tdUnion.value.vt) == (VT_PTR, VT_VARIANT)
    result = receive.elemdescFunc.tdesc
    assert (result.vt, result._tdUnion.value.vt) == (VT_PTR, VT_USERDEFINED)
    message = info.GetRefTypeInfo(CALL, result._tdUnion.value._tdUnion.value)
    assert message is not None
    assert message.GetDocumentation(CALL, -1, 1) == ("IMSMQMessage4", None, 0, None)


def test_a_property_is_read_and_written_under_one_name() -> None:
    info = TypeInfo("IMSMQQueueInfo4")
    read, write = (each for each in members(info) if each.memid == 4)
    assert (read.invkind, write.invkind) == (2, 4)
    assert (read.cParams, write.cParams) == (0, 1)
    assert read.elemdescFunc.tdesc.vt == VT_BSTR
    assert write.elemdescFunc.tdesc.vt == VT_VOID
    assert info.GetNames(CALL, 4, 5) == (["PathName"], 1)


def test_no_more_names_come_than_the_client_takes() -> None:
    assert TypeInfo("IMSMQQueue4").GetNames(CALL, 14, 2) == (["Receive", "Transaction"], 2)
    assert TypeInfo("IMSMQQueue4").GetNames(CALL, 14, 0) == ([], 0)


def test_what_is_not_there_is_told() -> None:
    info = TypeInfo("IMSMQQueue4")
    asked: list[Callable[[], object]] = [
        lambda: info.GetNames(CALL, 999, 1),
        lambda: info.GetDocumentation(CALL, 999, 1),
        lambda: info.GetVarDesc(CALL, 0),
        lambda: info.GetRefTypeOfImplType(CALL, 1),
        lambda: info.GetImplTypeFlags(CALL, 1),
    ]
    for ask in asked:
        with pytest.raises(MQError, match="TYPE_E_ELEMENTNOTFOUND"):
            ask()
    assert info.GetRefTypeInfo(CALL, 0) is None
    assert info.GetRefTypeInfo(CALL, 100_000) is None
    with pytest.raises(MQError, match="TYPE_E_BADMODULEKIND"):
        info.GetDllEntry(CALL, 1, 1, 0)
    with pytest.raises(MQError, match="TYPE_E_BADMODULEKIND"):
        info.CreateInstance(CALL, 0)
