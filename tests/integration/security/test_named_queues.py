"""What a message names is written to by its sender's right (docs/decisions.md, G400 to G402).

The rows are in named_queues.toml: each door, each who, each kind of name. `secret` is a queue that
the sender may not send to.
"""

import ast
import base64
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

import rpcqm
from rpcqm.base.errors import MQError
from rpcqm.binary.signatures import sign
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.passwords import nt_hash
from rpcqm.client.target import RemoteServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.attributes import MessageAttributes
from rpcqm.codec.packet.enums import (
    AcknowledgementsRequested,
    HashAlgorithm,
    MessageAuthenticationLevel,
    SenderIdentifierType,
)
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD
from tests.support.api.programs import Program
from tests.support.binary.binary_stranger import BinaryStranger
from tests.support.certificates import certificate_of
from tests.support.console.browser import open_browser
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import Objects
from tests.support.dcom.dcom_client import ComError, DcomClient
from tests.support.qm.open_rights import as_another_user
from tests.support.srmp import srmp_text
from tests.support.srmp.srmp_stranger import Stranger
from tests.support.srmp.srmp_text import Elements

TABLE = tomllib.loads(Path(__file__).with_name("named_queues.toml").read_text("utf-8"))
ROWS: list[dict[str, str]] = TABLE["row"]
SETTINGS = (
    'name = "here"\nhttp_port = 0\n[security]\nsupporting_server = true\n[dcom]\nenabled = true\n'
)
OPTIONS = ("--console-port", "0", "--dcom-port", "0")
ARRIVAL = AcknowledgementsRequested.ACK_POS_ARRIVAL
WARM = 8
"""Sends after which templates have taken some."""
_numbers = count(1)


@pytest.fixture(scope="module")
def machine() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(OPTIONS, SETTINGS) as running, running.client() as client:
        running.data_dir.parent.chmod(0o711)  # for another user of this machine
        client.run(client.accounts.add("alice", nt_hash(PASSWORD)))
        for name, sddl in QUEUES.items():
            running.run("queue", "create", name, "--sddl", sddl)
        yield running


@pytest.fixture(scope="module")
def of_signers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateQueueManager]:
    """One whose directory knows a certificate of alice, who alone may send to `own`."""
    directory = tmp_path_factory.mktemp("signers") / "directory.toml"
    directory.write_text(ENTERPRISE)
    with private_queue_manager((), f'name = "here"\ndirectory_file = "{directory}"\n') as running:
        with running.client() as client:
            sid = client.run(client.accounts.add("alice", nt_hash(PASSWORD)))
        for name, sddl in (QUEUES | {"own": f"O:BAD:(A;;GA;;;BA)(A;;GA;;;{sid})"}).items():
            running.run("queue", "create", name, "--sddl", sddl)
        certificate = base64.b64encode(certificate_of(signing_key())).decode()
        user = f'[[user]]\nname = "alice"\nsid = "{sid}"\ncertificates = ["{certificate}"]\n'
        directory.write_text(ENTERPRISE + user)
        running.restart()
        yield running


@lru_cache
def signing_key() -> RSAPrivateKey:
    return generate_private_key(65537, 2048)


ENTERPRISE = '[enterprise]\nname = "example"\n'
EVERYBODY = "O:BAD:(A;;GA;;;BA)(A;;GA;;;WD)(A;;GA;;;AN)"
QUEUES = {"orders": EVERYBODY, "own": EVERYBODY, "secret": "O:BAD:(A;;GA;;;BA)"}


def format_name(name: str) -> FormatName:
    return FormatName.parse(rf"DIRECT=OS:here\private$\{name}")


# One way to send for each door: whether the send is taken


def by_api(machine: PrivateQueueManager, who: str, name: str, target: str) -> bool:
    program = Program(machine.endpoint("console"), "alice", PASSWORD)
    if who == "narrow token":
        words = ("token", "create", f"token {next(_numbers)}", "--account", "alice")
        told = machine.run(*words, "--queues", "orders,own").stdout
        program.headers = {"Authorization": f"Bearer {told.split()[-1]}"}
    ways: dict[str, dict[str, Any]] = {
        "administration": {"admin_queue": target, "acknowledgements": ["arrival"]},
        "dead letter": {"dead_letter_queue": target},
        "response": {"response_queue": target},
    }
    answer = program.ask(
        "POST", "/queues/orders/messages/batch", {"messages": [{"body_base64": "", **ways[name]}]}
    )
    program.close()
    assert answer.status in (201, 403), answer
    return answer.status == 201


def by_console(machine: PrivateQueueManager, who: str, name: str, target: str) -> bool:
    """The form has no fields for any of these, and nobody can add one."""
    browser = open_browser(machine)
    browser.log_on("alice", PASSWORD)
    added = {
        "administration": ("admin_queue", "administration_queue", "acknowledgements"),
        "dead letter": ("dead_letter_queue", "application_deadletter_queue"),
        "response": ("response_queue",),
    }[name]
    fields = {"queue": "orders", "kind": "text", "body": "x", "priority": "3", "dead_letter": "1"}
    fields |= {each: "arrival" if each == "acknowledgements" else target for each in added}
    return browser.submit("/console/queue/send", fields).title == "orders"


def by_com(machine: PrivateQueueManager, who: str, name: str, target: str) -> bool:
    with machine.client() as client, DcomClient(machine.endpoint("epm")) as com:
        objects = Objects(machine, com, client)
        message, info = objects.message(), objects.create(clsids.MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
        objects.put(info, "FormatName", str(format_name(target)))
        objects.put(message, "Ack", 1)
        kind = "AdminQueueInfo" if name == "administration" else "ResponseQueueInfo"
        com.call(message, f"putref_{kind}", info)
        try:
            objects.send(message, objects.destination(str(format_name("orders"))))
        except ComError:
            return False
        return True


def message_for(name: str, target: str) -> OutgoingMessage:
    queue = format_name(target)
    return {
        "administration": OutgoingMessage(acknowledgements=ARRIVAL, administration_queue=queue),
        "dead letter": OutgoingMessage(dead_letter=True, dead_letter_queue=queue),
        "response": OutgoingMessage(response_queue=queue),
    }[name]


def by_calls(client: BlockingClient, name: str, target: str, warm: bool) -> bool:
    """rpc_ACSendMessageEx; for templates after they have taken what was allowed until now."""
    with client.open_sender(format_name("orders")) as sender:
        for _ in range(WARM if warm else 0):
            sender.send(message_for(name, "own"))
        try:
            for _ in range(WARM if warm else 1):
                sender.send(message_for(name, target))
        except MQError:
            return False
    return True


def by_rpc(machine: PrivateQueueManager, who: str, name: str, target: str, warm: bool) -> bool:
    server = RemoteServer(*machine.endpoint("epm"), NtlmCredentials("alice", PASSWORD))
    with BlockingClient(server) as client:
        return by_calls(client, name, target, warm)


def by_socket(machine: PrivateQueueManager, who: str, name: str, target: str, warm: bool) -> bool:
    with as_another_user(), BlockingClient(machine.target) as client:
        return by_calls(client, name, target, warm)


def by_binary(machine: PrivateQueueManager, who: str, name: str, target: str) -> bool:
    number, to = next(_numbers), str(format_name("orders"))
    more: dict[str, Any] = {
        "identifier": MessageIdentifier(UUID(int=number), number),
        "sent_time": int(time.time()),
        **NAMED[name](format_name(target)),
    }
    with BinaryStranger(machine.endpoint("binary"), UUID(int=number)) as stranger:
        if who != "stranger":
            more |= {
                "sender_identifier_type": SenderIdentifierType.SID,
                "sender_identifier": sid_bytes(sid_of_alice(machine)),
            }
        if who == "signer":
            more |= {
                "sender_certificate": certificate_of(signing_key()),
                "hash_algorithm": HashAlgorithm.SHA_512,
            }
            unsigned = UserMessage(stranger.message(to, body=b"forged", **more))
            more["signature"] = sign(unsigned, signing_key(), MessageAuthenticationLevel.SIG20)
        stranger.deliver_as(to, **more)
    return True


NAMED: dict[str, Callable[[FormatName], dict[str, Any]]] = {
    "administration": lambda queue: {
        "administration_queue_format_name": queue,
        "acknowledgements_requested": ARRIVAL,
    },
    "response": lambda queue: {"response_queue_format_name": queue},
}


def sid_of_alice(machine: PrivateQueueManager) -> str:
    with machine.client() as client:
        accounts = client.run(client.accounts.list())
    return next(each.sid for each in accounts if each.name == "alice")


def by_http(machine: PrivateQueueManager, who: str, name: str, target: str) -> bool:
    """Receipts to URLs leave this queue manager, and are asked for where they come."""
    number, to = next(_numbers), f"MSMQ:{format_name(target)}"
    receipt = f"<deliveryReceiptRequest><sendTo>{to}</sendTo></deliveryReceiptRequest>"
    msmq = (
        "<Class>0</Class><Priority>3</Priority><App>0</App><BodyType>0</BodyType>"
        f"<SourceQmGuid>{srmp_text.SOURCE}</SourceQmGuid><TTrq>{srmp_text.LATER}</TTrq>"
    )
    elements = {
        "administration": Elements(services=receipt, msmq=msmq, ordinal=number),
        "response": Elements(
            msmq=f"{msmq}<ResponseMqf>{to}\n</ResponseMqf>", via=to, ordinal=number
        ),
    }[name]
    with Stranger(machine) as stranger:
        url = "http://here/msmq/private$/orders"
        assert stranger.post(srmp_text.message(url, b"x", elements)) == 200
    return True


WAYS: dict[str, Callable[[PrivateQueueManager, str, str, str], bool]] = {
    "api": by_api,
    "console": by_console,
    "com": by_com,
    "rpc": partial(by_rpc, warm=False),
    "rpc templates": partial(by_rpc, warm=True),
    "local": partial(by_socket, warm=False),
    "local templates": partial(by_socket, warm=True),
    "binary": by_binary,
    "http": by_http,
}


def emptied(client: BlockingClient, *names: str) -> None:
    for name in names:
        with client.open_reader(format_name(name)) as reader:
            reader.purge()


def in_queue(client: BlockingClient, name: str) -> int:
    with client.open_reader(format_name(name), peek_only=True) as reader:
        return sum(1 for _ in reader.browse())


@pytest.mark.parametrize("target", ["secret", "own"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['door']}, {row['who']}, {row['name']}")
def test_what_a_message_names_is_written_to_by_the_right_of_its_sender(
    request: pytest.FixtureRequest, row: dict[str, str], target: str
) -> None:
    of_signers = row["who"] in ("signer", "claimant")
    machine = request.getfixturevalue("of_signers" if of_signers else "machine")
    way, who, name = WAYS[row["door"]], row["who"], row["name"]
    with machine.client() as client:
        emptied(client, "orders", "own", "secret")
        taken = way(machine, who, name, target)
        arrived = in_queue(client, "orders")
        if name == "dead letter":  # a purge kills it
            emptied(client, "orders")
        wanted = row[target]
        assert taken is (wanted != "refused")
        assert (arrived > 0) is (taken or "templates" in row["door"])
        if wanted == "written":
            await_messages(client, target)
        assert (in_queue(client, target) > 0) is (wanted == "written")
        assert in_queue(client, "secret") == 0


def await_messages(client: BlockingClient, name: str) -> None:
    """A receipt is sent a moment after what it acknowledges."""
    with client.open_reader(format_name(name), peek_only=True) as reader:
        reader.peek(30_000)


# The table has everything


def composing_modules() -> set[str]:
    """Modules that ask the composer for the packet of a caller's message."""
    root = Path(rpcqm.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("compose", "rehearsed"):
                of = node.value
                if isinstance(of, ast.Attribute) and of.attr in ("_composer", "composer"):
                    found.add("rpcqm." + ".".join(path.relative_to(root).with_suffix("").parts))
    return found


def test_each_module_that_composes_messages_of_callers_has_rows() -> None:
    assert composing_modules() == set(TABLE["doors"])
    doors = {row["door"] for row in ROWS}
    assert {door for named in TABLE["doors"].values() for door in named} <= doors
    assert doors == set(WAYS)


def test_each_listener_has_rows(machine: PrivateQueueManager) -> None:
    listening = {*machine.ready.endpoints, "local"}
    assert listening <= set(TABLE["listeners"])
    assert {door for named in TABLE["listeners"].values() for door in named} == set(WAYS)


def test_each_attribute_that_names_a_queue_has_rows() -> None:
    named = {
        each.name
        for each in fields(MessageAttributes)
        if "queue" in each.name and "manager" not in each.name and "time" not in each.name
    }
    assert named <= set(TABLE["names"]) | set(TABLE["others"])
    assert {row["name"] for row in ROWS} >= set(TABLE["names"].values())
