"""What tells this client from others: its computer's identifier, and the numbers of its reads."""

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
"""Keeps the machine's identifier to itself: servers see what is derived from both."""

_requests = itertools.count(secrets.randbits(32))


@functools.cache
def licence_guid() -> UUID:
    """Identifies this computer to servers that count clients ([MS-MQMP] 3.2.1.1 LicenceGuid).

    It is the same in every process of a computer that has a machine identifier, and as long as
    the process lives elsewhere.
    """
    try:
        machine = UUID(_MACHINE_IDENTIFIER.read_text("ascii").strip())
    except (OSError, ValueError):
        return uuid4()
    return uuid5(_NAMESPACE, machine.hex)


def next_request_identifier() -> int:
    """A number that no pending read of this process has ([MS-MQRR] 3.2.4.4).

    Numbering starts anywhere, because a server may tell reads of several processes apart by
    queue and number only.
    """
    return next(_requests) & 0xFFFFFFFF


def in_workgroup(target: "Target") -> bool:
    """Whether we are outside a domain, as far as credentials tell: Kerberos takes one."""
    kerberos = sys.modules.get("rpcqm.rpc.security.kerberos")
    if kerberos is None:  # which needs a package that is not everywhere, and makes credentials
        return True
    credentials = getattr(target, "credentials", None)
    mechanisms = getattr(credentials, "mechanisms", (credentials,))
    return not any(isinstance(each, kerberos.KerberosCredentials) for each in mechanisms)
