"""Logging on at /api/v1 by Kerberos: MIT's clients against MIT's KDC, and who tries otherwise."""

import base64
import http.client
import json
import os
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.certificates import write_tls_files
from tests.support.rpc.kdc import SERVICE, Kdc, require_kdc
from tests.support.waiting import PATIENCE

gssapi = pytest.importorskip("gssapi")
raw = pytest.importorskip("gssapi.raw")

CONSOLE = ("--console-port", "0")
WEB = "localhost"
SPNEGO = "1.3.6.1.5.5.2"
KERBEROS = "1.2.840.113554.1.2.2"
NTLM = b"NTLMSSP\0\1\0\0\0\x97\x82\x08\xe2" + bytes(16)


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    require_kdc()
    with Kdc(tmp_path_factory.mktemp("kdc")) as made, pytest.MonkeyPatch.context() as patch:
        made.add_service(f"HTTP/{WEB}")
        for name, value in made.environment.items():
            patch.setenv(name, value)
        yield made


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_tls_files(tmp_path_factory.mktemp("tls"))


def configured(kdc: Kdc, *lines: str) -> str:
    console = "\n".join(lines)
    return f'[security]\nkeytab = "{kdc.keytab}"\nprincipal = "{SERVICE}"\n[console]\n{console}\n'


def with_tls(files: tuple[Path, Path]) -> tuple[str, str]:
    return f'certificate = "{files[0]}"', f'key = "{files[1]}"'


def add_alice(running: PrivateQueueManager) -> None:
    running.run("user", "add", "alice", "--password-stdin", input="secret\n")
    running.run("queue", "create", "orders")
    running.run("queue", "create", "closed")
    running.run("queue", "acl", "grant", "orders", "alice", "full")
    running.run("queue", "acl", "revoke", "closed", "everyone", "full", check=False)


@pytest.fixture(scope="module")
def plain(kdc: Kdc) -> Iterator[PrivateQueueManager]:
    with private_queue_manager(CONSOLE, configured(kdc), kdc.environment) as running:
        add_alice(running)
        yield running


@pytest.fixture(scope="module")
def secure(kdc: Kdc, files: tuple[Path, Path]) -> Iterator[PrivateQueueManager]:
    settings = configured(kdc, *with_tls(files))
    with private_queue_manager(CONSOLE, settings, kdc.environment) as running:
        add_alice(running)
        yield running


class Caller:
    """Somebody with a ticket, who can bind a token to a channel."""

    def __init__(
        self, kdc: Kdc, name: str = "alice", service: str = f"HTTP@{WEB}", mech: str = SPNEGO
    ) -> None:
        store = {"ccache": kdc.log_on(name)}
        self._credentials = gssapi.Credentials(usage="initiate", store=store)
        self._service = gssapi.Name(service, gssapi.NameType.hostbased_service)
        self._mech = gssapi.OID.from_int_seq(mech)
        self.context: Any = None

    def token(self, channel: bytes | None = None, flags: int = 0) -> bytes:
        """A first token, which is bound to a channel if there is one."""
        bindings = None if channel is None else raw.ChannelBindings(application_data=channel)
        self.context = gssapi.SecurityContext(
            name=self._service,
            creds=self._credentials,
            mech=self._mech,
            flags=gssapi.RequirementFlag.mutual_authentication | flags,
            channel_bindings=bindings,
            usage="initiate",
        )
        return bytes(self.context.step() or b"")


def end_point(files: tuple[Path, Path]) -> bytes:
    """`tls-server-end-point`, by the test's own reckoning: the certificate is signed by SHA-256."""
    certificate = ssl.PEM_cert_to_DER_cert(files[0].read_text())
    return b"tls-server-end-point:" + sha256(certificate).digest()


class Answer:
    """What came back to a token."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status, self.headers = answer.status, answer.headers
        self.body = answer.read()
        self.offers = answer.headers.get_all("WWW-Authenticate", [])

    @property
    def token(self) -> bytes:
        """The server's own proof."""
        (given,) = [each for each in self.offers if each.startswith("Negotiate ")]
        return base64.b64decode(given.removeprefix("Negotiate "))


def ask(
    running: PrivateQueueManager,
    token: bytes | None,
    files: tuple[Path, Path] | None = None,
    path: str = "/api/v1/queues/orders",
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    port = running.endpoint("console")[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    if files is not None:
        context = ssl.create_default_context(cafile=files[0])
        connection = http.client.HTTPSConnection(WEB, port, context=context, timeout=PATIENCE)
    given = {"Host": f"localhost:{port}", **(headers or {})}
    if token is not None:
        given["Authorization"] = f"Negotiate {base64.b64encode(token).decode()}"
    connection.request(method, path, headers=given)
    told = Answer(connection.getresponse())
    connection.close()
    return told


def refusals(running: PrivateQueueManager, reason: str) -> int:
    return sum(
        "a program could not log on" in line and reason in line for line in running.log.splitlines()
    )


# Without TLS, on loopback.


def test_a_ticket_logs_on_as_its_account_and_the_server_proves_itself(
    plain: PrivateQueueManager, kdc: Kdc
) -> None:
    caller = Caller(kdc)
    told = ask(plain, caller.token())
    assert told.status == 200
    assert json.loads(told.body)["name"] == "orders"
    caller.context.step(told.token)
    assert caller.context.complete
    assert told.headers["Persistent-Auth"] == "false"


def test_a_bare_token_of_kerberos_is_taken_too(plain: PrivateQueueManager, kdc: Kdc) -> None:
    kerberos = Caller(kdc, mech=KERBEROS)
    told = ask(plain, kerberos.token())
    assert told.status == 200
    kerberos.context.step(told.token)
    assert kerberos.context.complete


def test_curl_logs_on_with_its_ticket(plain: PrivateQueueManager, kdc: Kdc) -> None:
    port = plain.endpoint("console")[1]
    url = f"http://{WEB}:{port}/api/v1/queues/orders"
    words = ["curl", "--silent", "--negotiate", "--user", ":", "--write-out", "\n%{http_code}\n"]
    environment = os.environ | {"KRB5CCNAME": kdc.log_on("alice")}
    done = subprocess.run(
        [*words, url, url], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[1::2] == ["200", "200"]


def test_a_ticket_gives_the_rights_of_its_account_and_no_others(
    plain: PrivateQueueManager, kdc: Kdc
) -> None:
    assert ask(plain, Caller(kdc).token(), path="/api/v1/accounts").status == 403
    closed = ask(plain, Caller(kdc).token(), path="/api/v1/queues/closed/messages", method="DELETE")
    assert closed.status == 403
    assert closed.token, "the server proves itself with refusals, too"


@pytest.mark.parametrize("name", ["mallory", "alice/admin"])
def test_who_has_no_account_is_refused(plain: PrivateQueueManager, kdc: Kdc, name: str) -> None:
    assert ask(plain, Caller(kdc, name).token()).status == 401
    assert refusals(plain, f"{name}@RPCQM.TEST may not log on") == 1


def test_a_token_is_good_once(plain: PrivateQueueManager, kdc: Kdc) -> None:
    token = Caller(kdc).token()
    assert ask(plain, token).status == 200
    assert ask(plain, token).status == 401
    assert refusals(plain, "replay") == 1


def test_a_ticket_for_another_service_is_refused(plain: PrivateQueueManager, kdc: Kdc) -> None:
    """Somebody takes what a client of RPC has sent."""
    assert ask(plain, Caller(kdc, service="host@rpchost").token()).status == 401


def test_a_handshake_of_three_legs_is_refused(plain: PrivateQueueManager, kdc: Kdc) -> None:
    """The style of DCE, whose first tokens are no proof and are not recorded."""
    dce = int(gssapi.RequirementFlag.dce_style)
    assert ask(plain, Caller(kdc).token(flags=dce)).status == 401


def test_a_token_that_is_bound_to_tls_is_refused_without_it(
    plain: PrivateQueueManager, kdc: Kdc, files: tuple[Path, Path]
) -> None:
    """Its client speaks with somebody else, who passes it on."""
    assert ask(plain, Caller(kdc).token(end_point(files))).status == 401
    assert ask(plain, Caller(kdc).token(b"")).status == 401


def test_a_connection_is_nobodys(plain: PrivateQueueManager, kdc: Kdc) -> None:
    """Who comes by the same connection next, through a proxy, has to log on himself."""
    port = plain.endpoint("console")[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    given = {"Authorization": f"Negotiate {base64.b64encode(Caller(kdc).token()).decode()}"}
    statuses = []
    for headers in (given, {}):
        connection.request("GET", "/api/v1/queues/orders", headers=headers)
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()
    assert statuses == [200, 401]


def test_it_is_offered_before_passwords(plain: PrivateQueueManager) -> None:
    told = ask(plain, None)
    assert (told.status, told.offers[0]) == (401, "Negotiate")
    assert told.offers[1].startswith("Basic ")


# Over TLS.


def test_a_token_that_is_bound_to_its_connection_is_taken(
    secure: PrivateQueueManager, kdc: Kdc, files: tuple[Path, Path]
) -> None:
    caller = Caller(kdc)
    told = ask(secure, caller.token(end_point(files)), files)
    assert told.status == 200
    caller.context.step(told.token)
    assert caller.context.complete


def test_a_token_for_another_channel_is_refused(
    secure: PrivateQueueManager, kdc: Kdc, files: tuple[Path, Path], tmp_path: Path
) -> None:
    """Somebody between has a certificate of his own, and passes the token on."""
    other = end_point(write_tls_files(tmp_path))
    for channel in (other, b"", end_point(files)[:-1], end_point(files).partition(b":")[2]):
        assert ask(secure, Caller(kdc).token(channel), files).status == 401
    assert refusals(secure, "channel binding") >= 1


def test_a_token_that_is_bound_to_nothing_is_refused_over_tls(
    secure: PrivateQueueManager, kdc: Kdc, files: tuple[Path, Path]
) -> None:
    assert ask(secure, Caller(kdc).token(), files).status == 401
    assert refusals(secure, "not bound to the channel") == 1


def test_what_is_not_bound_may_be_allowed_and_what_is_bound_elsewhere_never(
    secure: PrivateQueueManager, kdc: Kdc, files: tuple[Path, Path], tmp_path: Path
) -> None:
    secure.reload(configured(kdc, *with_tls(files), 'channel_bindings = "allow"'))
    try:
        assert ask(secure, Caller(kdc).token(), files).status == 200
        assert ask(secure, Caller(kdc).token(end_point(files)), files).status == 200
        other = end_point(write_tls_files(tmp_path))
        assert ask(secure, Caller(kdc).token(other), files).status == 401
    finally:
        secure.reload(configured(kdc, *with_tls(files)))
    assert ask(secure, Caller(kdc).token(), files).status == 401


def test_a_connection_keeps_its_channel_when_the_certificate_is_renewed(
    secure: PrivateQueueManager, kdc: Kdc, files: tuple[Path, Path], tmp_path: Path
) -> None:
    port = secure.endpoint("console")[1]
    context = ssl.create_default_context(cafile=files[0])
    old = http.client.HTTPSConnection(WEB, port, context=context, timeout=PATIENCE)
    old.connect()
    renewed = write_tls_files(tmp_path, "renewed")
    secure.reload(configured(kdc, *with_tls(renewed)))
    try:
        told = []
        for channel in (end_point(renewed), end_point(files)):
            token = base64.b64encode(Caller(kdc).token(channel)).decode()
            old.request(
                "GET", "/api/v1/queues/orders", headers={"Authorization": f"Negotiate {token}"}
            )
            answer = old.getresponse()
            answer.read()
            told.append(answer.status)
        assert told == [401, 200]
        assert ask(secure, Caller(kdc).token(end_point(renewed)), renewed).status == 200
    finally:
        old.close()
        secure.reload(configured(kdc, *with_tls(files)))


# What somebody has recorded.


def der(tag: int, *parts: bytes) -> bytes:
    """A value of ASN.1 in DER."""
    content = b"".join(parts)
    size = len(content)
    octets = size.to_bytes(1 if size < 0x100 else 2, "big")
    length = octets if size < 0x80 else bytes([0x80 | len(octets)]) + octets
    return bytes([tag]) + length + content


def framed(token: bytes) -> bytes:
    """A token of Kerberos in the frame of SPNEGO (RFC 4178, 4.2.1)."""
    mechanisms = der(0xA0, der(0x30, bytes.fromhex("06092a864886f712010202")))
    first = der(0xA0, der(0x30, mechanisms, der(0xA2, der(0x04, token))))
    return der(0x60, bytes.fromhex("06062b0601050502"), first)


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (1, 1)], ids=str)
def test_a_request_is_good_once_in_whatever_frame_it_comes(
    plain: PrivateQueueManager, kdc: Kdc, order: tuple[int, int]
) -> None:
    token = Caller(kdc, mech=KERBEROS).token()
    forms = token, framed(token)
    assert [ask(plain, forms[each]).status for each in order] == [200, 401]


def test_a_token_is_good_once_over_all_connections_of_its_channel(
    secure: PrivateQueueManager, kdc: Kdc, files: tuple[Path, Path]
) -> None:
    """Who reads along at one end of TLS sends it again by a connection of his own."""
    token = Caller(kdc).token(end_point(files))
    assert [ask(secure, token, files).status for _ in range(2)] == [200, 401]


def test_a_token_that_comes_twice_at_once_is_good_once(
    plain: PrivateQueueManager, kdc: Kdc
) -> None:
    token = base64.b64encode(Caller(kdc).token()).decode()
    address = plain.endpoint("console")
    given = {"Host": f"localhost:{address[1]}", "Authorization": f"Negotiate {token}"}
    made = [http.client.HTTPConnection(*address, timeout=PATIENCE) for _ in range(4)]
    for each in made:
        each.request("GET", "/api/v1/queues/orders", headers=given)
    statuses = [each.getresponse().status for each in made]
    for each in made:
        each.close()
    assert sorted(statuses) == [200, 401, 401, 401]


def test_a_token_is_good_once_after_a_crash_too(kdc: Kdc) -> None:
    with private_queue_manager(CONSOLE, configured(kdc), kdc.environment) as running:
        add_alice(running)
        token = Caller(kdc).token()
        assert ask(running, token).status == 200
        running.kill()
        running.start()
        assert ask(running, token).status == 401
        assert refusals(running, "replay") == 1


def test_what_cannot_be_recorded_is_refused(kdc: Kdc) -> None:
    """Somebody has taken the place of the record."""
    with private_queue_manager(CONSOLE, configured(kdc), kdc.environment) as running:
        add_alice(running)
        record = running.data_dir / "kerberos-requests"
        record.unlink(missing_ok=True)
        record.mkdir()
        assert ask(running, Caller(kdc).token()).status == 401
        assert running.log.count("a program could not log on") == 1
        record.rmdir()
        assert ask(running, Caller(kdc).token()).status == 200


# What is no ticket.


WRONG = [
    NTLM,
    b"NTLMSSP\0\3\0\0\0" + bytes(80),
    b"",
    b"x",
    b"\x60\x82\xff\xff",
    b"\x60" * 4000,
    bytes.fromhex("604806062b0601050502a03e303ca00e300c060a2b06010401823702020a")
    + b"\xa2\x2a\x04\x28"
    + NTLM[:32].ljust(40, b"\0"),
]


def test_ntlm_and_nonsense_are_refused_and_told_once_each(kdc: Kdc) -> None:
    """In the clock of one address the sixth wrong one slows the next ones down."""
    with private_queue_manager(CONSOLE, configured(kdc), kdc.environment) as running:
        add_alice(running)
        for number, token in enumerate(WRONG[:5], 1):
            told = ask(running, token)
            assert (told.status, told.offers[0]) == (401, "Negotiate")
            assert running.log.count("a program could not log on") == number
        statuses = [ask(running, token).status for token in (*WRONG[5:], b"x")]
        assert statuses[-1] == 429
        assert ask(running, Caller(kdc).token()).status == 429
        basic = "Basic " + base64.b64encode(b"alice:secret").decode()
        assert ask(running, None, headers={"Authorization": basic}).status == 200, (
            "passwords count apart"
        )
        assert "Traceback" not in running.log


def test_without_keys_for_http_it_is_not_offered(kdc: Kdc, tmp_path: Path) -> None:
    """Tickets for RPC are for RPC."""
    with private_queue_manager(CONSOLE) as running:
        told = ask(running, NTLM)
        assert (told.status, [each.split()[0] for each in told.offers]) == (401, ["Basic"])
        assert refusals(running, "Kerberos is not served over HTTP") == 1
        only = configured(kdc).replace(str(kdc.keytab), str(kdc.other_keytab))
        assert "reloaded" in running.reload(only)
        assert [each.split()[0] for each in ask(running, None).offers] == ["Basic"]
        assert "Kerberos is not offered over HTTP" in running.log


def test_behind_a_proxy_nobody_can_check_what_a_token_is_bound_to(kdc: Kdc) -> None:
    lines = 'trusted_proxy = "127.0.0.1"', 'channel_bindings = "allow"'
    forwarded = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"}
    with private_queue_manager(CONSOLE, configured(kdc, lines[0]), kdc.environment) as running:
        add_alice(running)
        assert ask(running, Caller(kdc).token(), headers=forwarded).status == 401
        assert [e.split()[0] for e in ask(running, None, headers=forwarded).offers] == ["Basic"]
        running.reload(configured(kdc, *lines))
        assert ask(running, None, headers=forwarded).offers[0] == "Negotiate"
        assert ask(running, Caller(kdc).token(), headers=forwarded).status == 200
