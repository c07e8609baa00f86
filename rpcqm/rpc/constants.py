"""Numbers of the connection-oriented protocol, under their specifications' names."""

import enum

RPC_VERS = 5


class PduType(enum.IntEnum):
    """PTYPE of connection-oriented PDUs ([C706] 12.6.1, [MS-RPCE] 2.2.2.10)."""

    request = 0
    response = 2
    fault = 3
    bind = 11
    bind_ack = 12
    bind_nak = 13
    alter_context = 14
    alter_context_resp = 15
    auth3 = 16
    shutdown = 17
    co_cancel = 18
    orphaned = 19


class PfcFlags(enum.IntFlag):
    """pfc_flags of the common header ([C706] 12.6.3.1, [MS-RPCE] 2.2.2.3)."""

    PFC_FIRST_FRAG = 0x01
    PFC_LAST_FRAG = 0x02
    PFC_PENDING_CANCEL = 0x04
    PFC_SUPPORT_HEADER_SIGN = 0x04
    PFC_RESERVED_1 = 0x08
    PFC_CONC_MPX = 0x10
    PFC_DID_NOT_EXECUTE = 0x20
    PFC_MAYBE = 0x40
    PFC_OBJECT_UUID = 0x80


WHOLE = PfcFlags.PFC_FIRST_FRAG | PfcFlags.PFC_LAST_FRAG
"""The flags of a PDU that is not fragmented."""


class ContextResult(enum.IntEnum):
    """p_cont_def_result_t ([C706] 12.6.3.1, [MS-RPCE] 2.2.2.4)."""

    acceptance = 0
    user_rejection = 1
    provider_rejection = 2
    negotiate_ack = 3


class ProviderReason(enum.IntEnum):
    """p_provider_reason_t: why a presentation context was refused ([C706] 12.6.3.1)."""

    reason_not_specified = 0
    abstract_syntax_not_supported = 1
    proposed_transfer_syntaxes_not_supported = 2
    local_limit_exceeded = 3


class RejectReason(enum.IntEnum):
    """p_reject_reason_t: why a bind was refused ([C706] 12.6.3.1, [MS-RPCE] 2.2.2.5)."""

    REASON_NOT_SPECIFIED = 0
    TEMPORARY_CONGESTION = 1
    LOCAL_LIMIT_EXCEEDED = 2
    CALLED_PADDR_UNKNOWN = 3
    PROTOCOL_VERSION_NOT_SUPPORTED = 4
    DEFAULT_CONTEXT_NOT_SUPPORTED = 5
    USER_DATA_NOT_READABLE = 6
    NO_PSAP_AVAILABLE = 7
    authentication_type_not_recognized = 8
    invalid_checksum = 9


class AuthenticationType(enum.IntEnum):
    """Security providers ([MS-RPCE] 2.2.1.1.7)."""

    RPC_C_AUTHN_NONE = 0x00
    RPC_C_AUTHN_GSS_NEGOTIATE = 0x09
    RPC_C_AUTHN_WINNT = 0x0A
    RPC_C_AUTHN_GSS_SCHANNEL = 0x0E
    RPC_C_AUTHN_GSS_KERBEROS = 0x10
    RPC_C_AUTHN_NETLOGON = 0x44
    RPC_C_AUTHN_DEFAULT = 0xFF


class AuthenticationLevel(enum.IntEnum):
    """What of a call is protected ([MS-RPCE] 2.2.1.1.8)."""

    RPC_C_AUTHN_LEVEL_DEFAULT = 0
    RPC_C_AUTHN_LEVEL_NONE = 1
    RPC_C_AUTHN_LEVEL_CONNECT = 2
    RPC_C_AUTHN_LEVEL_CALL = 3
    RPC_C_AUTHN_LEVEL_PKT = 4
    RPC_C_AUTHN_LEVEL_PKT_INTEGRITY = 5
    RPC_C_AUTHN_LEVEL_PKT_PRIVACY = 6


class BindTimeFeatures(enum.IntFlag):
    """Bits of bind-time feature negotiation ([MS-RPCE] 2.2.2.14)."""

    SecurityContextMultiplexingSupported = 0x01
    KeepConnectionOnOrphanSupported = 0x02
