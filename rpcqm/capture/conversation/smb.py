"""SMB, over which DCE/RPC may be spoken too: it is recognised, and not read."""

PORTS = (445, 139)
_SIGNATURES = frozenset({b"\xffSMB", b"\xfeSMB", b"\xfdSMB", b"\xfcSMB"})
"""SMB 1, and SMB 2 and 3: in clear, sealed and compressed ([MS-SMB2] 2.2.1, 2.2.41, 2.2.42)."""
_SESSION_REQUEST = 0x81
_HEADER = 4


def begins_smb(octets: bytes) -> bool:
    """Whether a message of SMB begins here, behind its length ([MS-SMB2] 2.1)."""
    return octets[:1] == b"\0" and octets[_HEADER : _HEADER + 4] in _SIGNATURES


def is_of_smb(client: str, server: str) -> bool:
    """Whether either end has a port of SMB."""
    return any(end.rpartition(":")[2] in map(str, PORTS) for end in (client, server))


def begins_session(octets: bytes, server: str) -> bool:
    """Whether a session of NetBIOS begins here (RFC 1002), which SMB follows."""
    return octets[:1] == bytes([_SESSION_REQUEST]) and server.endswith(":139")
