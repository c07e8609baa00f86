"""The table [dcom]: COM objects over DCOM."""

from dataclasses import dataclass
from typing import Annotated

from rpcqm.base.errors import MQError
from rpcqm.config.about import About
from rpcqm.config.urls import check_host

_MOST = 1 << 20


def check_sddl(text: str) -> None:
    """A security descriptor; raises ValueError."""
    # Only here: every command reads its configuration, and few have a descriptor in it.
    from rpcqm.codec.security.sddl import parse_sddl

    try:
        parse_sddl(text)
    except MQError as error:
        raise ValueError(f"which is no security descriptor: {error.detail}") from error


@dataclass(frozen=True, slots=True)
class DcomSection:
    """The objects of MSMQ ([MC-MQAC]) for VBScript, VB6, PowerShell, Delphi and others."""

    enabled: Annotated[
        bool,
        About(
            "MSMQ's COM objects are served on `dcom_port`, and activated on `epm_port`.",
            opens="Callers over the network who have logged on create MSMQ's COM objects here and "
            "by them send, read and manage, as far as their rights go.",
        ),
    ] = False
    minimum_level: Annotated[
        str,
        About(
            "How calls must be protected at least: authenticated when they connect, signed, or "
            "encrypted.",
            choices=("integrity", "privacy", "connect"),
            opens="Calls of COM objects are neither signed nor encrypted if clients like: others "
            "on the network can read and change them.",
            opens_at="connect",
        ),
    ] = "integrity"
    launch: Annotated[
        str,
        About(
            "Who may create objects remotely (right SW and RP), as SDDL; Anonymous never may.",
            default="`D:(A;;CCDCLCSWRP;;;AU)`, everybody who logs on",
            check=check_sddl,
        ),
    ] = "D:(A;;CCDCLCSWRP;;;AU)"
    access: Annotated[
        str,
        About(
            "Who may call objects remotely (right LC), as SDDL; Anonymous never may.",
            default="`D:(A;;CCDCLC;;;AU)`, everybody who logs on",
            check=check_sddl,
        ),
    ] = "D:(A;;CCDCLC;;;AU)"
    advertise: Annotated[
        tuple[str, ...],
        About(
            "Addresses and names under which clients reach this computer, besides those that it "
            "knows itself and `aliases`.",
            default="none",
            check=check_host,
        ),
    ] = ()
    empty_is_nothing: Annotated[
        bool,
        About(
            "`Receive` and its like return Nothing when no message comes in time, as on Windows, "
            "and not the error of the specification.",
        ),
    ] = False
    objects: Annotated[
        int,
        About(
            "Objects that clients hold, of all together.",
            (1, _MOST),
            beyond="the call that makes one gets E_OUTOFMEMORY",
        ),
    ] = 200_000
    objects_per_caller: Annotated[
        int,
        About(
            "Objects that one caller holds; each takes about 1 KiB.",
            (1, _MOST),
            beyond="the call that makes one gets E_OUTOFMEMORY",
        ),
    ] = 20_000
    octets_per_caller: Annotated[
        int,
        About(
            "Octets of messages, names and other texts in the objects of one caller.",
            (1 << 12, 1 << 40),
            beyond="what would take more is refused with MQ_ERROR_INSUFFICIENT_RESOURCES",
        ),
    ] = 1 << 28
    waiting_calls_per_caller: Annotated[
        int,
        About(
            "Calls of one caller that wait, in `Receive` for instance.",
            (1, _MOST),
            beyond="the call is refused",
        ),
    ] = 1_000
    ping_sets_per_caller: Annotated[
        int,
        About(
            "Sets of objects by which one caller says that it is there.",
            (1, _MOST),
            beyond="the ping is answered with ERROR_NOT_ENOUGH_QUOTA",
        ),
    ] = 1_000
