"""What `rpcqm doctor` says of messages over HTTP: its own doors, and their certificate."""

import http.client
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rpcqm.base.addresses import reachable
from rpcqm.cli.asking import NotAnsweredError, answer_of
from rpcqm.cli.checks import TIMEOUT, Check, CheckedMachine, CheckResult, Level
from rpcqm.cli.outgoing import NO_RECEIPTS

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

SOON = timedelta(days=30)
"""How long before its end a certificate is worth a warning: renewal takes weeks in some places."""

_NOT_ALLOWED = 405
_TLS = "https door"


def check_http_door(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Whether requests are answered; what is asked leaves nothing behind but a line of the log."""
    running = patient.running
    if running is None or "http" not in running.endpoints:
        return
    host, port = running.endpoints["http"]
    asking = http.client.HTTPConnection(reachable(host), port, timeout=TIMEOUT)
    try:
        asking.request("GET", "/")
        status = asking.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        text = (
            f"No request is answered at {host}, port {port}: {str(error) or type(error).__name__}."
        )
        yield CheckResult("http door", Level.PROBLEM, text)
        return
    finally:
        asking.close()
    if status == _NOT_ALLOWED:
        yield CheckResult("http door", Level.GOOD, f"Port {port} takes messages, and nothing else.")
    else:
        text = f"Port {port} answers with status {status}: something else may serve it."
        yield CheckResult("http door", Level.WARNING, text)


def check_https_door(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Whether TLS works, and how long the certificate that is in use is valid."""
    running = patient.running
    if running is None or "https" not in running.endpoints:
        return
    host, port = running.endpoints["https"]
    try:
        begins, ends = _times_of_certificate(reachable(host), port)
    except OSError as error:
        text = f"TLS fails at {host}, port {port}: {str(error) or type(error).__name__}."
        yield CheckResult(_TLS, Level.PROBLEM, text)
        return
    now = datetime.now(UTC)
    day = ends.date().isoformat()
    if begins > now:
        text = f"The certificate is not valid before {begins.date().isoformat()}."
        yield CheckResult(_TLS, Level.PROBLEM, text)
    elif ends < now:
        yield CheckResult(
            "https door", Level.PROBLEM, f"The certificate was valid until {day} only."
        )
    elif ends < now + SOON:
        yield CheckResult(
            "https door", Level.WARNING, f"The certificate is valid until {day} only."
        )
    else:
        yield CheckResult(_TLS, Level.GOOD, f"The certificate is valid until {day}.")


def _times_of_certificate(host: str, port: int) -> tuple[datetime, datetime]:
    """When the certificate of a server begins and ends; raises OSError."""
    # Only now, because cryptography takes time to load.
    from cryptography.x509 import load_der_x509_certificate

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # whether others trust it is not seen from here
    with (
        socket.create_connection((host, port), TIMEOUT) as plain,
        context.wrap_socket(plain) as protected,
    ):
        octets = protected.getpeercert(binary_form=True) or b""
    certificate = load_der_x509_certificate(octets)
    return certificate.not_valid_before_utc, certificate.not_valid_after_utc


def check_receipts(patient: CheckedMachine) -> Iterator[CheckResult]:
    """The queues elsewhere that take messages in order, and whose receipts do not come."""
    running = patient.running
    if running is None or not {"http", "https"} & set(running.endpoints):
        return
    try:
        lacking = answer_of(running, _lacking_receipts)
    except NotAnsweredError as error:
        text = f"What is on its way cannot be told: {error}."
        yield CheckResult("receipts", Level.WARNING, text)
        return
    for name in lacking:
        yield CheckResult("receipts", Level.WARNING, f"`{name}`: {NO_RECEIPTS}")


async def _lacking_receipts(client: "QueueManagerClient") -> list[str]:
    queues = await client.management.outgoing_queues()
    return [queue.format_name for queue in queues if queue.lacks_receipts]


HTTP_CHECKS: tuple[Check, ...] = (check_http_door, check_https_door, check_receipts)
