"""What a ticket says of the account that it is for: its privilege attribute certificate.

The library shows parts of it as attributes of the client's name (RFC 6680), and those only when
it was signed with the key that has opened the ticket ([MS-PAC] 2.8.1). Of a certificate that was
changed, it shows none.
"""

from collections.abc import Mapping
from typing import Protocol

from gssapi.raw import GSSError

from rpcqm.base.errors import DecodeError
from rpcqm.codec.security.logon_information import LogonInformation, read_logon_information
from rpcqm.rpc.security.context import AuthenticationError

_LOGON_INFORMATION = b"urn:mspac:logon-info"


class Attribute(Protocol):
    """A part of what is said of a name."""

    @property
    def values(self) -> list[bytes]: ...
    @property
    def authenticated(self) -> bool: ...


class AttributedName(Protocol):
    """A client's name with what its ticket says."""

    @property
    def attributes(self) -> Mapping[bytes, Attribute]: ...


def logon_information(name: AttributedName) -> LogonInformation:
    """Who a client is by its ticket; AuthenticationError if nobody vouches for that (G770)."""
    try:
        found = name.attributes[_LOGON_INFORMATION]
    except (KeyError, GSSError):
        text = "Kerberos: no domain controller vouches for the account in the ticket"
        raise AuthenticationError(text) from None
    if not found.authenticated or len(found.values) != 1:
        raise AuthenticationError("Kerberos: what the ticket says of the account is not proved")
    try:
        return read_logon_information(found.values[0])
    except DecodeError as error:
        raise AuthenticationError(f"Kerberos: {error.reason}") from error
