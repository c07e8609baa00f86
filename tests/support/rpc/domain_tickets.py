"""Tickets of a domain's accounts, as its controller would issue them; no controller runs.

Whoever has a service's key can make tickets for it. They go into caches of MIT's library, whose
clients then use them.
"""

import struct
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from impacket.krb5.asn1 import AuthorizationData, EncTicketPart, Ticket, seq_set
from impacket.krb5.constants import PrincipalNameType, encodeFlags
from impacket.krb5.types import KerberosTime, Principal
from pyasn1.codec.der import encoder
from pyasn1.type.univ import noValue

from tests.support.rpc.privileges import Person, certificate, logon_information
from tests.support.rpc.silver_ticket import AES256, sealed

REALM = "CORP.TEST"
HOST_SERVICE, WEB_SERVICE = ("host", "rpchost"), ("HTTP", "localhost")
SERVICE = f"host/rpchost@{REALM}"
KEY, SESSION_KEY = bytes(range(32)), bytes(range(32, 64))
_IF_RELEVANT, _PRIVILEGES = 1, 128
_CONFIGURATION = f"""\
[libdefaults]
 default_realm = {REALM}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
[realms]
 {REALM} = {{
  kdc = 127.0.0.1:1
 }}
[domain_realm]
 rpchost = {REALM}
 localhost = {REALM}
"""

Change = Callable[[bytes], bytes]
"""Makes another PAC of one: a forger's work."""


class DomainTickets:
    """Makes tickets for the services whose keys are in `keytab`; `environment` is its clients'."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.keytab = directory / "keytab"
        entries = [_keytab_entry(each) for each in (HOST_SERVICE, WEB_SERVICE)]
        self.keytab.write_bytes(b"\x05\x02" + b"".join(entries))
        self.keytab.chmod(0o600)
        configuration = directory / "krb5.conf"
        configuration.write_text(_CONFIGURATION)
        self.environment = {
            "KRB5_CONFIG": str(configuration),
            "KRB5CCNAME": f"FILE:{directory / 'none'}",
        }
        self._made = 0

    def of(
        self,
        person: Person | None,
        name: str = "",
        realm: str = REALM,
        change: Change = bytes,
        key: bytes = KEY,
    ) -> str:
        """A cache with tickets of an account; None as `person` leaves out who that is.

        `name` is the principal, the account's by default; `key` has signed the certificate, and
        `change` is what somebody does with it afterwards.
        """
        client = name or (person.name if person else "alice")
        now = int(time.time())
        information = None if person is None else logon_information(person)
        pac = change(certificate(information, client, now, key))
        return self._cache(client, realm, pac, now)

    def without_certificate(self, name: str = "alice") -> str:
        """A cache with tickets that have no PAC at all, as those of MIT's KDC can be."""
        return self._cache(name, REALM, b"", int(time.time()))

    def _cache(self, client: str, realm: str, pac: bytes, now: int) -> str:
        owner = _principal(realm, client.split("/"))
        parts = [b"\x05\x04\0\x0c\0\x01\0\x08" + bytes(8), owner]
        for service in (HOST_SERVICE, WEB_SERVICE):
            ticket = _ticket(service, client, realm, pac, now)
            times = struct.pack(">IIII", now, now, now + 3600, 0)
            parts += (
                owner,
                _principal(REALM, service),
                struct.pack(">H", AES256) + _counted(SESSION_KEY),
                times + b"\0" + struct.pack(">III", 0, 0, 0),
                _counted(ticket) + _counted(b""),
            )
        self._made += 1
        path = self._directory / f"cache-{self._made}"
        path.write_bytes(b"".join(parts))
        return f"FILE:{path}"


def _ticket(service: Sequence[str], client: str, realm: str, pac: bytes, now: int) -> bytes:
    issued = datetime.fromtimestamp(now, UTC)
    inner = EncTicketPart()
    inner["flags"] = encodeFlags([])
    inner["key"] = noValue
    inner["key"]["keytype"], inner["key"]["keyvalue"] = AES256, SESSION_KEY
    inner["crealm"] = realm
    kind = PrincipalNameType.NT_PRINCIPAL.value
    seq_set(inner, "cname", Principal(client, type=kind).components_to_asn1)
    inner["transited"] = noValue
    inner["transited"]["tr-type"], inner["transited"]["contents"] = 0, b""
    inner["authtime"] = KerberosTime.to_asn1(issued)
    inner["endtime"] = KerberosTime.to_asn1(issued + timedelta(hours=1))
    if pac:
        inner["authorization-data"] = noValue
        inner["authorization-data"][0]["ad-type"] = _IF_RELEVANT
        inner["authorization-data"][0]["ad-data"] = _wrapped(pac)
    ticket = Ticket()
    ticket["tkt-vno"], ticket["realm"] = 5, REALM
    name = Principal("/".join(service), type=PrincipalNameType.NT_SRV_INST.value)
    seq_set(ticket, "sname", name.components_to_asn1)
    ticket["enc-part"] = noValue
    ticket["enc-part"]["etype"], ticket["enc-part"]["kvno"] = AES256, 1
    ticket["enc-part"]["cipher"] = sealed(KEY, 2, encoder.encode(inner))
    return bytes(encoder.encode(ticket))


def _wrapped(pac: bytes) -> bytes:
    inner = AuthorizationData()
    inner[0] = noValue
    inner[0]["ad-type"], inner[0]["ad-data"] = _PRIVILEGES, pac
    return bytes(encoder.encode(inner))


def _principal(realm: str, names: Sequence[str]) -> bytes:
    parts = [_counted(each.encode()) for each in (realm, *names)]
    return struct.pack(">II", 1, len(names)) + b"".join(parts)


def _keytab_entry(service: Sequence[str]) -> bytes:
    names = [len(each).to_bytes(2, "big") + each.encode() for each in (REALM, *service)]
    entry = struct.pack(">H", len(service)) + b"".join(names) + struct.pack(">IIB", 1, 0, 1)
    entry += struct.pack(">HH", AES256, len(KEY)) + KEY
    return struct.pack(">i", len(entry)) + entry


def _counted(octets: bytes) -> bytes:
    return struct.pack(">I", len(octets)) + octets
