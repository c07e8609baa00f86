"""Each form of a queue's name at the door: opened, and told again ([MS-MQMQ] 2.1, 2.2.6, 2.2.11).

The numbers of types and suffixes are those of the specification.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rpcqm.codec.types.mqmq import (
    DL_ID,
    MULTICAST_ID,
    OBJECTID,
    QUEUE_FORMAT,
    QUEUE_FORMAT_u,
)
from rpcqm.codec.types.qmcomm import OBJECT_FORMAT, OBJECT_FORMAT_u
from rpcqm.config.directory import load_directory
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.qm.directories import LIST, OWN_QUEUE, THEIR_QUEUE, WORKSTATION, write_directory
from tests.support.queue_manager import SETTINGS, RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR
from tests.support.rpc.dependent_client import Client, served_clients
from tests.support.rpc.remote_reader import status_name

RECEIVE, SEND = 1, 2
REFUSED = "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"
ILLEGAL = "MQ_ERROR_ILLEGAL_FORMATNAME"
PRIVATE = f"PRIVATE={WORKSTATION}\\{{:08x}}"


class Place(NamedTuple):
    """A queue manager with a directory, and a private queue with a journal and a subqueue."""

    client: Client
    number: int


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    path = write_directory(tmp_path)
    settings = replace(SETTINGS, directory=lambda: load_directory(path))
    qm = RunningQueueManager(tmp_path / "data", settings)
    queue = qm.create(journaling=True)
    qm.subqueue(queue, "late")
    client = Client(served_clients(qm).connect(ADMINISTRATOR, transport=NCALRPC))
    yield Place(client, queue.private_queue_number)
    qm.stop()


def opened(client: Client, access: int, kind: int, flags: int, arm: Any) -> str:
    """The name by which a queue is open then, or why it is not."""
    structure = QUEUE_FORMAT(m_qft=kind, m_SuffixAndFlags=flags, u=QUEUE_FORMAT_u(kind, arm))
    response = client.send_open(structure, access)
    if response.result:
        return status_name(response.result)
    assert response.lplpRemoteQueueName is None
    told = client.caller.call(
        "rpc_ACHandleToFormatName",
        hQueue=bytes(response.phQueue),
        dwFormatNameRPCBufferLen=200,
        lpwcsFormatName="\0" * 200,
        pdwLength=200,
    )
    assert status_name(told.result) == "MQ_OK"
    return str(told.lpwcsFormatName).rstrip("\0")


class Form(NamedTuple):
    """A QUEUE_FORMAT, and the text of the name in it, or the status of opening it."""

    points: str
    access: int
    kind: int
    flags: int
    arm: Any
    told: str


def private(place: Place) -> OBJECTID:
    return OBJECTID(Lineage=WORKSTATION, Uniquifier=place.number)


MEMBERS = rf"DIRECT=OS:other\private$\a,PUBLIC={OWN_QUEUE},PUBLIC={THEIR_QUEUE}"
OS = r"OS:.\private$\orders"
FORMS = (
    Form("qft-0", RECEIVE, 0, 0x00, None, ILLEGAL),
    Form("formatname-public qft-1", RECEIVE, 1, 0x00, OWN_QUEUE, f"PUBLIC={OWN_QUEUE}"),
    Form("qft-1", RECEIVE, 1, 0x81, OWN_QUEUE, f"PUBLIC={OWN_QUEUE};JOURNAL"),
    Form("qft-1", SEND, 1, 0x81, OWN_QUEUE, REFUSED),
    Form("formatname-private qft-2", SEND, 2, 0x00, private, PRIVATE),
    Form("formatname-private_journal", RECEIVE, 2, 0x81, private, PRIVATE + ";JOURNAL"),
    Form(
        "formatname-direct_os formatname-direct_private qft-3 suffix-QUEUE_SUFFIX_TYPE_NONE",
        RECEIVE,
        3,
        0x00,
        r"os:.\private$\orders",
        r"DIRECT=OS:.\private$\orders",
    ),
    Form(
        "formatname-direct_tcp",
        RECEIVE,
        3,
        0x00,
        r"tcp:192.0.2.7\PRIVATE$\orders",
        r"DIRECT=TCP:192.0.2.7\PRIVATE$\orders",
    ),
    Form("formatname-direct_tcp", SEND, 3, 0x00, r"TCP:elsewhere\private$\orders", ILLEGAL),
    Form(
        "formatname-direct_http",
        SEND,
        3,
        0x00,
        "http://elsewhere:8080/msmq/private$/q",
        "DIRECT=HTTP://elsewhere:8080/msmq/private$/q",
    ),
    Form("formatname-direct_http", RECEIVE, 3, 0x00, "http://elsewhere/msmq/q", REFUSED),
    Form(
        "formatname-direct_https",
        SEND,
        3,
        0x00,
        "https://elsewhere/msmq/private$/q",
        "DIRECT=HTTPS://elsewhere/msmq/private$/q",
    ),
    Form(
        "formatname-direct_ipx",
        SEND,
        3,
        0x00,
        r"IPX:00000012:00a0234f7500\q",
        r"DIRECT=IPX:00000012:00a0234f7500\q",
    ),
    Form(
        "formatname-direct_journal suffix-QUEUE_SUFFIX_TYPE_JOURNAL",
        RECEIVE,
        3,
        0x81,
        OS,
        rf"DIRECT={OS};JOURNAL",
    ),
    Form("formatname-direct_journal", SEND, 3, 0x81, OS + ";journal", REFUSED),
    Form(
        "formatname-direct_system suffix-QUEUE_SUFFIX_TYPE_DEADLETTER",
        RECEIVE,
        3,
        0x82,
        r"OS:.\system$;deadletter",
        r"DIRECT=OS:.\system$;deadletter",
    ),
    Form("formatname-direct_system", RECEIVE, 3, 0x00, r"OS:.\system$;nothing", ILLEGAL),
    Form(
        "formatname-machine qft-4 suffix-QUEUE_SUFFIX_TYPE_DEADXACT",
        RECEIVE,
        4,
        0x83,
        WORKSTATION,
        f"MACHINE={WORKSTATION};DEADXACT",
    ),
    Form("qft-4", RECEIVE, 4, 0x00, WORKSTATION, ILLEGAL),
    Form(
        "formatname-connector qft-5 suffix-QUEUE_SUFFIX_TYPE_XACTONLY",
        SEND,
        5,
        0x84,
        WORKSTATION,
        REFUSED,
    ),
    Form("formatname-connector", RECEIVE, 5, 0x00, WORKSTATION, ILLEGAL),
    Form("formatname-dl qft-6", SEND, 6, 0x00, DL_ID(m_DlGuid=LIST), MEMBERS),
    Form(
        "formatname-dl",
        SEND,
        6,
        0x00,
        DL_ID(m_DlGuid=LIST, m_pwzDomain="example"),
        MEMBERS,
    ),
    Form("formatname-dl", RECEIVE, 6, 0x00, DL_ID(m_DlGuid=LIST), REFUSED),
    Form(
        "qft-7",
        SEND,
        7,
        0x00,
        MULTICAST_ID(m_address=0x010101EA, m_port=80),
        "MULTICAST=234.1.1.1:80",
    ),
    Form(
        "formatname-direct_subqueue qft-8 suffix-QUEUE_SUFFIX_TYPE_SUBQUEUE",
        RECEIVE,
        8,
        0x05,
        OS + ";late",
        rf"DIRECT={OS};late",
    ),
    Form("formatname-direct_subqueue", RECEIVE, 8, 0x00, OS + ";late", ILLEGAL),
)


def claimed(points: str) -> pytest.MarkDecorator:
    return pytest.mark.conformance(*(f"MQMQ-{point}" for point in points.split()))


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(form, id=f"{number}-{form.points.split()[0]}", marks=claimed(form.points))
        for number, form in enumerate(FORMS)
    ],
)
def test_a_queue_is_opened_by_each_form_of_its_name(place: Place, form: Form) -> None:
    arm = form.arm(place) if callable(form.arm) else form.arm
    told = opened(place.client, form.access, form.kind, form.flags, arm)
    assert told == form.told.format(place.number)


PATHS = (
    ("path-public", r"workstation\REPORTS", 1, 0x00),
    ("path-system", r"WORKSTATION\system$;deadletter", 3, 0x82),
    ("path-subqueue", r".\private$\orders;LATE", 8, 0x05),
)


@pytest.mark.parametrize(
    ("path", "kind", "flags"),
    [pytest.param(*rest, id=points, marks=claimed(points)) for points, *rest in PATHS],
)
def test_a_path_leads_to_the_queue_format_of_its_kind(
    place: Place, path: str, kind: int, flags: int
) -> None:
    unknown = OBJECT_FORMAT(
        ObjType=1, u=OBJECT_FORMAT_u(1, QUEUE_FORMAT(m_qft=0, u=QUEUE_FORMAT_u(0, None)))
    )
    response = place.client.caller.call(
        "R_QMObjectPathToObjectFormat", lpwcsPathName=path, pObjectFormat=unknown
    )
    assert status_name(response.result) == "MQ_OK"
    found = response.pObjectFormat.u.value
    assert (found.m_qft, found.m_SuffixAndFlags) == (kind, flags)
