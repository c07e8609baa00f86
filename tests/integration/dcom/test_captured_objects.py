"""Calls of objects in a capture: their names, their VARIANTs, and every field of their stubs."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.errors import RpcFault
from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.capture.ndr_fields import stub_fields
from rpcqm.cli.main import main
from rpcqm.codec.automation.values import MISSING, SafeArray, Variant
from rpcqm.codec.interface import TransferSyntax
from rpcqm.codec.types.oaut import DISPPARAMS
from rpcqm.codec.types.oautvalues import (
    DISPATCH_PROPERTYPUT,
    DISPID_PROPERTYPUT,
    VT_ARRAY,
    VT_BSTR,
    VT_UI1,
)
from rpcqm.mqac.coclasses import MSMQ_MESSAGE, MSMQ_QUEUE_INFO
from rpcqm.rpc.constants import AuthenticationLevel
from tests.support.capture.analysed import calls_of
from tests.support.dcom.com_objects import NO, number
from tests.support.dcom.dcom_client import ENABLED, DcomClient, Reference, served

NULL = UUID(int=0)
CONNECT = AuthenticationLevel.RPC_C_AUTHN_LEVEL_CONNECT


def play(com: DcomClient, queue: str) -> None:
    """Make a queue, named by IDispatch; send a message to it and receive it by vtables."""
    info = com.create(MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
    script = com.query_interface(info, "IDispatch")
    (path,) = com.call(script, "GetIDsOfNames", NULL, ["pathname"], 1, 0)
    named = DISPPARAMS(
        rgvarg=[Variant(VT_BSTR, queue)],
        rgdispidNamedArgs=[DISPID_PROPERTYPUT],
        cArgs=1,
        cNamedArgs=1,
    )
    com.call(script, "Invoke", path, NULL, 0, DISPATCH_PROPERTYPUT, named, 0, [], [])
    com.call(info, "Create", NO, NO)
    message = com.create(MSMQ_MESSAGE, "IMSMQMessage4")
    com.call(message, "put_Label", "hello")
    com.call(message, "put_Body", Variant(VT_ARRAY | VT_UI1, SafeArray(VT_UI1, b"12345")))
    com.call(message, "Send", com.call(info, "Open", 2, 0), MISSING)
    reading = com.call(info, "Open", 1, 0)
    received = com.call(reading, "Receive", MISSING, MISSING, MISSING, number(0), MISSING)
    assert isinstance(received, Reference)
    com.call(received, "get_Body")
    for name in ("Priority", "SentTime", "Id", "LookupId", "SenderId", "BodyLength"):
        com.call(received, f"get_{name}")
    com.release(received)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("objects") / "objects.pcapng"
    with served(ENABLED, "--capture", str(path)) as machine:
        for syntax in TransferSyntax:
            with DcomClient(machine.endpoint("epm"), syntax=syntax) as com:
                play(com, rf".\private$\{syntax.name.lower()}")
    return path


def of_objects(capture: Path) -> list[CapturedCall]:
    calls, _ = calls_of(capture)
    return [
        call
        for call in calls
        if isinstance(call, CapturedCall) and call.interface_name != "rpcqm_admin"
    ]


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["capture", *words]) == 0
    return capsys.readouterr().out


def test_calls_are_shown_by_name_with_their_variants(
    capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, "show", str(capture))
    for line in (
        "IRemoteSCMActivator.RemoteCreateInstance",
        "IRemUnknown.RemQueryInterface",
        "rgszNames=pathname",
        r"pDispParams=('.\\private$\\ndr",
        "bstrLabel='hello'",
        "varBody=array[5]",
        "pvarBody=array[5]",
        "ReceiveTimeout=0",
        "IMSMQMessage4.Send",
        "IRemUnknown.RemRelease",
    ):
        assert text.count(line) in (len(TransferSyntax), 2 * len(TransferSyntax)), line


def test_calls_are_exported_with_their_variants(
    capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exported = [
        json.loads(line)
        for line in shown(capsys, "show", str(capture), "--json").split("\n")
        if line
    ]
    bodies: list[Any] = [each["response"] for each in exported if each["name"] == "get_Body"]
    assert len(bodies) == len(TransferSyntax)
    for body in bodies:
        assert body["pvarBody"]["vt"] == VT_ARRAY | VT_UI1
        assert body["pvarBody"]["value"]["values"] == b"12345".hex()


def test_calls_name_the_object_that_they_are_for(
    capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, "show", str(capture), "--json").splitlines()
    exported = [json.loads(line) for line in lines]
    named = {
        kind: [each for each in exported if each["name"] == kind]
        for kind in ("RemoteCreateInstance", "RemQueryInterface", "Invoke")
    }
    assert {each["object"] for each in named["RemoteCreateInstance"]} == {None}
    told = [each["response"]["ppQIResults"][0]["std"] for each in named["RemQueryInterface"]]
    assert [each["object"] for each in named["Invoke"]] == [each["ipid"] for each in told]


def test_every_octet_of_every_stub_is_a_field(capture: Path) -> None:
    calls = of_objects(capture)
    assert {call.context.syntax for call in calls} == set(TransferSyntax)
    for call in calls:
        assert call.operation is not None, call.interface_name
        assert call.context.syntax is not None
        for response, stub in ((False, call.request), (True, call.response)):
            assert stub is not None
            fields, why = stub_fields(call.operation, response, call.context.syntax, stub)
            assert why == "", call.name
            assert fields[-1].path != "#rest", call.name


def test_calls_of_one_interface_are_found_by_its_name(
    capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, "show", str(capture), "--interface", "imsmqqueue4", "--full")
    assert "IMSMQQueue4.Receive" in text
    assert "IMSMQMessage4" not in text
    assert "ReceiveTimeout.vt = 3" in text


def test_the_dissector_knows_interfaces_of_objects(capsys: pytest.CaptureFixture[str]) -> None:
    script = shown(capsys, "dissector")
    for name in ("IMSMQMessage4", "IRemUnknown2", "IDispatch", "_DMSMQEventEvents", "IEnumVARIANT"):
        assert f'"{name}"' in script
    assert '"varBody"' in script


def test_calls_are_played_against_another_server_whose_objects_are_other_ones(
    capture: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told = tmp_path / "told.json"
    text = shown(capsys, "replay", str(capture), "--in-process", "--json", str(told))
    result = json.loads(told.read_text())
    assert (result["same"], result["different"]) == (len(of_objects(capture)), 0), text


def test_what_was_refused_for_its_protection_is_refused_in_a_replay(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    recorded, told = tmp_path / "refused.pcapng", tmp_path / "told.json"
    with served(ENABLED, "--capture", str(recorded)) as machine:
        with DcomClient(machine.endpoint("epm")) as com:
            com.create(MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
        low = DcomClient(machine.endpoint("epm"), level=CONNECT)
        with low as com, pytest.raises(RpcFault):
            com.create(MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
    text = shown(capsys, "replay", str(recorded), "--in-process", "--json", str(told))
    result = json.loads(told.read_text())
    assert (result["same"], result["different"]) == (2, 0), text
