"""The table [srmp]: messages over HTTP."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rpcqm.config.about import About
from rpcqm.config.urls import check_host, check_pattern, check_proxy, check_url
from rpcqm.srmp.settings import Redirection

_DAY = 86_400_000


@dataclass(frozen=True, slots=True)
class SrmpSection:
    """Messages over HTTP ([MC-MQSRM]), if `http_port` or `https_port` is there."""

    certificate: Annotated[
        Path | None,
        About("Certificate with its chain (PEM file), for `https_port`.", default="none"),
    ] = None
    key: Annotated[
        Path | None,
        About(
            "Key of that certificate (PEM file; keep it from others).",
            default="none",
        ),
    ] = None
    verify: Annotated[
        Path | None,
        About(
            "Certificates (PEM file) of the authorities that those we send to over TLS may have.",
            default="those of the system",
        ),
    ] = None
    proxy: Annotated[
        str,
        About(
            "HTTP proxy (`http://HOST:PORT`) through which everything is sent.",
            default="none",
            check=check_proxy,
        ),
    ] = ""
    retry_milliseconds: Annotated[
        int,
        About(
            "Time after which an unanswered request is given up, and a failed one is repeated.",
            (1, _DAY),
            unit="ms",
        ),
    ] = 20_000
    receipt_coalescing_milliseconds: Annotated[
        int,
        About(
            "Silence of a stream after which its receipt is sent, at the latest after 10 s.",
            (0, 10_000),
            unit="ms",
        ),
    ] = 500
    stream_receipt_wait_milliseconds: Annotated[
        int,
        About(
            "Time after which a message of a stream is sent again if no receipt has come: three "
            "times, then three times after 10 times as long, three times after 60 times, and "
            "then after 720 times.",
            (1, _DAY),
            unit="ms",
        ),
    ] = 30_000
    transparent_store_and_forward: Annotated[
        bool,
        About(
            "Messages for other hosts are taken and sent on ([MC-MQSRM] 3.1.1.1.7).",
            opens="An open relay: everybody who reaches `http_port` or `https_port` can have this "
            "queue manager store messages and send them to any host that it reaches.",
        ),
    ] = False
    receipts_to: Annotated[
        tuple[str, ...],
        About(
            "Hosts, at any port, to which receipts may be sent though a stranger has named them "
            "and the message came from elsewhere.",
            default="none",
            check=check_host,
        ),
    ] = ()
    default_stream_receipt_url: Annotated[
        str,
        About(
            "Where receipts for what we send in streams shall go, if not to this computer.",
            default="none",
            check=check_url,
        ),
    ] = ""
    stream_receipt: Annotated[
        tuple[Redirection, ...],
        About(
            "The same by destination: tables of `from`, a URL or its beginning and `*`, and `to`.",
            default="none",
        ),
    ] = ()
    inbound: Annotated[
        tuple[Redirection, ...],
        About(
            "Which URLs of incoming messages stand for others: tables of `from` and `to`.",
            default="none",
        ),
    ] = ()
    outbound: Annotated[
        tuple[Redirection, ...],
        About(
            "Through which host messages are sent to some URLs: tables of `from` and `to`.",
            default="none",
        ),
    ] = ()
    outbound_exceptions: Annotated[
        tuple[str, ...],
        About(
            "URLs, or beginnings and `*`, to which `outbound` and `proxy` do not apply.",
            default="none",
            check=check_pattern,
        ),
    ] = ()
