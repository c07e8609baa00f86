"""Signed messages at the HTTP door of a running queue manager ([MC-MQSRM] 2.2.7, 3.1.5.1.6.1)."""

import base64
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from rpcqm.base.errors import MQError
from rpcqm.client.message import ReceivedMessage
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageAuthenticationLevel
from rpcqm.codec.security.identifier import Sid
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.srmp.srmp_signatures import (
    Key,
    certificate,
    dsa_key,
    rsa_key,
    sealed,
    signature,
    signed_info,
)
from tests.support.srmp.srmp_stranger import Stranger
from tests.support.srmp.srmp_text import SOURCE, Elements, attaching, durable, receipt

RULE = pytest.mark.conformance("MQSRM-rule-3.1.5.1.6.1")
ELEMENTS = pytest.mark.conformance(
    "MQSRM-element-SignatureMethod",
    "MQSRM-element-Reference",
    "MQSRM-element-DigestValue",
    "MQSRM-element-SignatureValue",
)
DOMAIN = "S-1-5-21-1-2-3"
ALICE, BOB = f"{DOMAIN}-1001", f"{DOMAIN}-1002"
USERS: dict[str, list[Key]] = {
    ALICE: [rsa_key("alice"), rsa_key("shared")],
    BOB: [dsa_key("bob"), rsa_key("shared")],
    "S-1-5-32-544": [rsa_key("group")],
}
"""Whose certificates the directory has."""
SIGNED_ONLY = f"O:BAD:(A;;0xf003f;;;BA)(A;;0x4;;;{ALICE})(A;;0x4;;;{BOB})"
BODY = {"body": b"pay mallory 7"}
_numbers = count(1)


def directory_of(users: dict[str, list[Key]]) -> str:
    lines = ['[enterprise]\nname = "example"\n']
    for sid, keys in users.items():
        texts = [base64.b64encode(certificate(key)).decode() for key in keys]
        lines.append(f'[[user]]\nname = "{sid}"\nsid = "{sid}"\ncertificates = {texts}\n')
    return "\n".join(lines)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("signed") / "directory.toml"


@pytest.fixture(scope="module")
def running(place: Path) -> Iterator[PrivateQueueManager]:
    place.write_text(directory_of(USERS), "utf-8")
    settings = f'name = "here"\nhttp_port = 0\ndirectory_file = "{place}"\n'
    with private_queue_manager(configuration=settings) as running:
        running.run("queue", "create", "open")
        running.run("queue", "create", "signed", "--authenticate", "--sddl", SIGNED_ONLY)
        running.run(
            "queue", "create", "alice", "--sddl", f"O:BAD:(A;;0xf003f;;;BA)(A;;4;;;{ALICE})"
        )
        yield running


def post(
    running: PrivateQueueManager, queue: str, written: str, body: bytes | None = None, **more: bytes
) -> int:
    """The status of a message with a signature, or whatever stands for one.

    Each comes from another address, because log lines are limited in rate for each.
    """
    number = next(_numbers)
    msmq = (
        "<Class>0</Class><Priority>3</Priority><BodyType>0</BodyType>"
        f"<SourceQmGuid>{SOURCE}</SourceQmGuid>"
    )
    elements = Elements(ordinal=number, services=durable(), receipt=written, msmq=msmq)
    to = f"http://here/msmq/private$/{queue}"
    attached = attaching(to, elements, body, **more)
    with Stranger(running, f"127.0.{1 + number // 250}.{1 + number % 250}") as stranger:
        return stranger.post(receipt(to, elements) if body is None and not more else attached)


def taken(running: PrivateQueueManager, queue: str) -> list[ReceivedMessage]:
    """What has come, which is not there any more then."""
    found = []
    name = FormatName.parse(rf"DIRECT=OS:.\private$\{queue}")
    with (
        running.client() as client,
        client.open_reader(name) as reader,
        suppress(MQError),  # nothing is left
    ):
        while True:
            with reader.receive(0) as message:
                found.append(message)
    return found


def sender_of(message: ReceivedMessage) -> tuple[str, int]:
    sid = message.sender_identifier
    return str(Sid.decode(sid)) if sid else "", message.authentication_level


PROVED = MessageAuthenticationLevel.XMLSIG


@pytest.mark.conformance(
    *(
        f"MQSRM-element-{name}"
        for name in (
            *("Signature", "SignedInfo", "SignatureMethod", "Reference"),
            *("DigestMethod", "DigestValue", "SignatureValue"),
        )
    )
)
@RULE
def test_who_has_signed_is_known_by_the_certificate_and_after_a_crash(
    running: PrivateQueueManager,
) -> None:
    both = {"body": b"b", "extension": b"e"}
    for key in USERS[ALICE][0], USERS[BOB][0]:
        assert post(running, "signed", signature(key, BODY), **BODY) == 200
        assert post(running, "signed", signature(key, both), **both) == 200
        assert post(running, "signed", signature(key, both, digest="md5"), **both) == 200
    running.kill()
    running.start()
    messages = taken(running, "signed")
    assert [sender_of(each) for each in messages] == [(ALICE, PROVED)] * 3 + [(BOB, PROVED)] * 3
    assert [each.body for each in messages] == [BODY["body"], b"b", b"b"] * 2
    assert messages[5].sender_certificate == certificate(USERS[BOB][0])


BOTH = {"body": b"b", "extension": b"e"}
ANONYMOUS = ("", MessageAuthenticationLevel.NONE)


def refused(running: PrivateQueueManager, status: int) -> int:
    """How many messages the log says to be refused so."""
    bad = "MQMSG_CLASS_NACK_BAD_SIGNATURE" if status == 200 else "an HTTP request was refused"
    return running.log.count(bad)


def without(name: str, text: str) -> str:
    """A text without the elements of a name."""
    return re.sub(f"<{name}[ >].*?</{name}>", "", text)


def element(name: str, text: str) -> str:
    """The elements of a name in a text, from the first to the last."""
    found = re.search(f"<{name}[ >].*</{name}>", text)
    assert found is not None
    return found[0]


def reference(name: str, octets: bytes, digest: str = "sha1") -> str:
    return element("Reference", signed_info({name: octets}, digest))


INFO = signed_info(BOTH)


@RULE
@ELEMENTS
@pytest.mark.parametrize(
    ("info", "status", "attached"),
    [
        (without("SignatureMethod", INFO), 400, BOTH),
        (INFO.replace("#dsa", "#hmac-sha1"), 200, BOTH),
        (without("Reference", INFO), 200, BOTH),
        (without("Reference", INFO), 200, {}),
        (INFO.replace("</SignedInfo>", f"{reference('body', b'b')}</SignedInfo>"), 400, BOTH),
        (INFO, 200, {"extension": b"e"}),
        (INFO, 200, {"body": b"b"}),
        (INFO.replace("cid:extension", "cid:body"), 200, BOTH),
        (INFO.replace("cid:body", "cid:extension"), 200, BOTH),
        (signed_info({"body": b"b"}), 200, BOTH),
        (without("DigestMethod", INFO), 400, BOTH),
        (INFO.replace("#sha1", "#sha256"), 200, BOTH),
        (without("DigestValue", INFO), 400, BOTH),
        (signed_info({**BOTH, "body": b"B"}, "md5"), 200, BOTH),
        (signed_info({**BOTH, "body": b"B"}), 200, BOTH),
        (signed_info({**BOTH, "extension": b"E"}, "md5"), 200, BOTH),
        (signed_info({**BOTH, "extension": b"E"}), 200, BOTH),
    ],
    ids=[
        "no-method",
        "another-method",
        "no-reference",
        "no-reference-nothing-attached",
        "three-references",
        "no-body",
        "no-extension",
        "two-for-the-body",
        "two-for-the-extension",
        "a-reference-missing",
        "no-digest-method",
        "another-digest-method",
        "no-digest-value",
        "md5-of-the-body",
        "sha1-of-the-body",
        "md5-of-the-extension",
        "sha1-of-the-extension",
    ],
)
def test_each_rule_for_what_is_signed_keeps_a_message_out_alone(
    running: PrivateQueueManager, info: str, status: int, attached: dict[str, bytes]
) -> None:
    """Without a certificate nothing else can be wrong with it."""
    key = USERS[ALICE][0]
    before = refused(running, status)
    assert post(running, "open", sealed(key, info, b""), **attached) == status
    assert refused(running, status) == before + 1
    assert taken(running, "open") == []
    assert post(running, "open", sealed(key, INFO, b""), **BOTH) == 200
    assert [sender_of(each) for each in taken(running, "open")] == [ANONYMOUS]


@RULE
@ELEMENTS
@pytest.mark.parametrize("sid", [ALICE, BOB])
@pytest.mark.parametrize("value", [None, "", "AAAA", "A" * 56, "A" * 172])
def test_a_value_that_the_key_refutes_keeps_a_message_out(
    running: PrivateQueueManager, sid: str, value: str | None
) -> None:
    key = USERS[sid][0]
    good = signature(key, BODY)
    other = without("SignatureValue", good)
    if value is not None:
        other = other.replace("<KeyInfo>", f"<SignatureValue>{value}</SignatureValue><KeyInfo>")
    status = 400 if value is None else 200
    before = refused(running, status)
    assert post(running, "open", other, **BODY) == status
    assert post(running, "open", without("SignedInfo", good), **BODY) == 400
    assert refused(running, status) == before + 1 + (status == 400)
    assert taken(running, "open") == []


@RULE
@pytest.mark.parametrize(
    "written",
    [
        "",
        signature(rsa_key("mallory"), BODY),
        signature(dsa_key("mallory"), BODY),
        signature(USERS[ALICE][0], BODY, b""),
        signature(USERS[ALICE][0], BODY, b"no certificate"),
        signature(rsa_key("shared"), BODY),
        signature(rsa_key("group"), BODY),
        f"<x>{signature(USERS[ALICE][0], BODY)}</x>",
    ],
    ids=["none", "rsa", "dsa", "alone", "junk", "of-two-users", "of-a-group", "hidden"],
)
def test_what_proves_no_account_hinders_nothing_and_opens_nothing(
    running: PrivateQueueManager, written: str
) -> None:
    """All these certificates have the name alice in them."""
    for queue in ("signed", "alice", "open"):
        assert post(running, queue, written, **BODY) == 200
    assert taken(running, "signed") == taken(running, "alice") == []
    assert [sender_of(each) for each in taken(running, "open")] == [ANONYMOUS]


@RULE
def test_a_good_signature_cannot_be_wrapped_around_another_message(
    running: PrivateQueueManager,
) -> None:
    hers, his = signature(USERS[ALICE][0], BODY), signature(rsa_key("mallory"), {"body": b"x"})
    his_info, his_key = element("SignedInfo", his), element("KeyInfo", his)
    her_certificate = element("X509Certificate", hers)
    for written in (
        hers + his,
        his + hers,
        hers.replace("<SignedInfo>", f"{his_info}<SignedInfo>"),
        hers.replace("<KeyInfo>", f"{his_key}<KeyInfo>"),
        his.replace("<X509Certificate>", f"{her_certificate}<X509Certificate>"),
    ):
        assert post(running, "open", written, body=b"x") == 400
    stolen = his.replace(his_key, element("KeyInfo", hers))
    for written in (
        hers,
        stolen,
        hers.replace("<SignedInfo>", f"<Object>{his_info}</Object><SignedInfo>"),
    ):
        assert post(running, "open", written, body=b"x") == 200
    assert taken(running, "open") == []


@RULE
def test_a_signature_speaks_for_its_attachments_wherever_they_are_sent(
    running: PrivateQueueManager,
) -> None:
    """Neither the queue nor the identifier is signed; but nobody gets another body in (G165)."""
    hers = signature(USERS[ALICE][0], BODY)
    assert post(running, "signed", hers, **BODY) == 200
    assert post(running, "alice", hers, **BODY) == 200
    assert post(running, "alice", hers, body=b"pay mallory 8") == 200
    assert post(running, "alice", hers, **BODY, extension=b"more") == 200
    for queue in ("signed", "alice"):
        assert [sender_of(each) for each in taken(running, queue)] == [(ALICE, PROVED)]


@RULE
def test_a_certificate_that_the_directory_has_no_more_proves_nothing(
    running: PrivateQueueManager, place: Path
) -> None:
    his = signature(USERS[BOB][0], BODY)
    assert post(running, "signed", his, **BODY) == 200
    assert len(taken(running, "signed")) == 1
    place.write_text(directory_of({ALICE: USERS[ALICE]}), "utf-8")
    assert post(running, "signed", his, **BODY) == 200
    assert post(running, "signed", signature(rsa_key("shared"), BODY), **BODY) == 200
    assert [sender_of(each) for each in taken(running, "signed")] == [(ALICE, PROVED)]
