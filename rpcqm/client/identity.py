"""The identifiers that this client sends: that of its computer, and those of its reads."""

import functools
import itertools
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4, uuid5

if TYPE_CHECKING:
    from rpcqm.client.target import Target

_MACHINE_IDENTIFIER = Path("/etc/machine-id")
_NAMESPACE = UUID("6f0d6c52-7a3e-4c0a-9d0b-3a1f6f1f5b61")
"""Servers see a hash of this and the machine's identifier, which is private."""

_requests = itertools.count(secrets.randbits(32))


@functools.cache
def licence_guid() -> UUID:
    """The identifier of this computer, for servers that count clients.

    All processes of a computer with a machine identifier have the same. Without one, each process
    has its own. Source: [MS-MQMP] 3.2.1.1 LicenceGuid.
    """
    try:
        machine = UUID(_MACHINE_IDENTIFIER.read_text("ascii").strip())
    except (OSError, ValueError):  # not every system has a machine identifier
        return uuid4()
    return uuid5(_NAMESPACE, machine.hex)


def next_request_identifier() -> int:
    """A number that no pending read of this process has ([MS-MQRR] 3.2.4.4).

    The first number is random, because a server may tell the reads of several processes apart
    only by queue and number.
    """
    return next(_requests) & 0xFFFFFFFF


def in_workgroup(target: "Target") -> bool:
    """Whether the caller is outside a domain, judged by its credentials: Kerberos needs one."""
    kerberos = sys.modules.get("rpcqm.rpc.security.kerberos")
    if kerberos is None:  # an optional package; without it no Kerberos credentials can exist
        return True
    credentials = getattr(target, "credentials", None)
    mechanisms = getattr(credentials, "mechanisms", (credentials,))
    return not any(isinstance(each, kerberos.KerberosCredentials) for each in mechanisms)
