"""A ticket that nobody issued: whoever has a service's key can make its requests without a KDC."""

import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from impacket.krb5 import constants
from impacket.krb5.asn1 import AP_REQ, Authenticator, EncTicketPart, seq_set
from impacket.krb5.crypto import Key, _enctype_table
from impacket.krb5.gssapi import (
    GSS_C_CONF_FLAG,
    GSS_C_DCE_STYLE,
    GSS_C_INTEG_FLAG,
    GSS_C_MUTUAL_FLAG,
    GSS_C_REPLAY_FLAG,
    GSS_C_SEQUENCE_FLAG,
    CheckSumField,
)
from impacket.krb5.types import KerberosTime, Principal
from pyasn1.codec.der import encoder
from pyasn1.type.univ import noValue

REALM = "RPCQM.TEST"
SERVICE = ("host", "rpchost")
PRINCIPAL = f"{'/'.join(SERVICE)}@{REALM}"
AES256 = 18
SERVICE_KEY, SESSION_KEY = bytes(range(32)), bytes(range(32, 64))
_FLAGS = (
    GSS_C_CONF_FLAG
    | GSS_C_INTEG_FLAG
    | GSS_C_SEQUENCE_FLAG
    | GSS_C_REPLAY_FLAG
    | GSS_C_MUTUAL_FLAG
    | GSS_C_DCE_STYLE
)


def write_keytab(path: Path) -> None:
    """The service's key in MIT's format, which only its owner may read."""
    names = b"".join(_counted(each.encode()) for each in (REALM, *SERVICE))
    entry = struct.pack(">H", len(SERVICE)) + names + struct.pack(">IIB", 1, 0, 1)
    entry += struct.pack(">H", AES256) + _counted(SERVICE_KEY)
    path.write_bytes(b"\x05\x02" + struct.pack(">i", len(entry)) + entry)
    path.chmod(0o600)


def _counted(octets: bytes) -> bytes:
    return struct.pack(">H", len(octets)) + octets


def request(account: str) -> bytes:
    """An AP-REQ of the DCE style, good for some minutes."""
    now = datetime.now(UTC)
    client = Principal(account, type=constants.PrincipalNameType.NT_PRINCIPAL.value)
    message = AP_REQ()
    message["pvno"], message["msg-type"] = 5, constants.ApplicationTagNumbers.AP_REQ.value
    message["ap-options"] = constants.encodeFlags([constants.APOptions.mutual_required.value])
    _fill_ticket(seq_set(message, "ticket"), client, now)
    proof = sealed(SESSION_KEY, 11, encoder.encode(_authenticator(client, now)))
    message["authenticator"] = noValue
    message["authenticator"]["etype"], message["authenticator"]["cipher"] = AES256, proof
    return bytes(encoder.encode(message))


def _fill_ticket(ticket: Any, client: Any, now: datetime) -> None:
    inner = EncTicketPart()
    inner["flags"] = constants.encodeFlags([])
    inner["key"] = noValue
    inner["key"]["keytype"], inner["key"]["keyvalue"] = AES256, SESSION_KEY
    inner["crealm"] = REALM
    seq_set(inner, "cname", client.components_to_asn1)
    inner["transited"] = noValue
    inner["transited"]["tr-type"], inner["transited"]["contents"] = 0, b""
    inner["authtime"] = KerberosTime.to_asn1(now)
    inner["endtime"] = KerberosTime.to_asn1(now + timedelta(hours=1))
    ticket["tkt-vno"], ticket["realm"] = 5, REALM
    kind = constants.PrincipalNameType.NT_SRV_INST.value
    service = Principal("/".join(SERVICE), type=kind)
    seq_set(ticket, "sname", service.components_to_asn1)
    ticket["enc-part"] = noValue
    ticket["enc-part"]["etype"], ticket["enc-part"]["kvno"] = AES256, 1
    ticket["enc-part"]["cipher"] = sealed(SERVICE_KEY, 2, encoder.encode(inner))


def _authenticator(client: Any, now: datetime) -> Any:
    made = Authenticator()
    made["authenticator-vno"], made["crealm"] = 5, REALM
    seq_set(made, "cname", client.components_to_asn1)
    checksum = CheckSumField()
    checksum["Lgth"], checksum["Flags"] = 16, _FLAGS
    made["cksum"] = noValue
    made["cksum"]["cksumtype"], made["cksum"]["checksum"] = 0x8003, checksum.getData()
    made["cusec"], made["ctime"] = now.microsecond, KerberosTime.to_asn1(now)
    made["seq-number"] = 0
    return made


def sealed(key: bytes, usage: int, octets: bytes) -> bytes:
    """Octets encrypted by an AES key, always with the same confounder."""
    return bytes(_enctype_table[AES256].encrypt(Key(AES256, key), usage, octets, bytes(16)))
