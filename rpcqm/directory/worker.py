"""The process that asks a directory by LDAP; nothing else imports the library.

It reads orders from its standard input and writes results to its standard output, one order at a
time. If it blocks, only its parent's present order waits, and the parent ends it. It is started as
``python -m rpcqm.directory.worker``.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import ldap
import ldap.sasl
from ldap.controls import RequestControl, SimplePagedResultsControl

from rpcqm.directory.frames import LENGTH, encode_frame, frame_length, plain

PAGE = 1000
"""Objects that are asked for at a time; a controller's own limit is rarely lower."""
TOGETHER = 50
"""Objects in a frame, so that decoding one takes the parent little time."""
SEARCH_SECONDS = 120
SEALED = 56
"""Bits of confidentiality below which a bind counts as not sealed."""
SD_FLAGS = "1.2.840.113556.1.4.801"
ROOT_ATTRIBUTES = (
    "defaultNamingContext",
    "configurationNamingContext",
    "rootDomainNamingContext",
    "namingContexts",
    "dnsHostName",
    "dsServiceName",
    "highestCommittedUSN",
    "currentTime",
)
_RANGE = re.compile(r"(.+);range=(\d+)-(\d+|\*)", re.IGNORECASE)
_SCOPES = {"base": ldap.SCOPE_BASE, "one": ldap.SCOPE_ONELEVEL, "all": ldap.SCOPE_SUBTREE}
_CHANGES = {"add": ldap.MOD_ADD, "delete": ldap.MOD_DELETE, "replace": ldap.MOD_REPLACE}

Order = dict[str, Any]


class StepError(Exception):
    """A step of a connection failed without an answer of LDAP."""

    def __init__(self, step: str, text: str) -> None:
        super().__init__(text)
        self.step = step


class Worker:
    """One connection to one controller, and its orders."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._connection: Any = None
        self._step = ""
        self._binds = 0

    def carry_out(self, order: Order) -> None:
        """Carry out one order, and write its result."""
        self._step = str(order.get("order"))
        try:
            more = getattr(self, f"_{order['order']}")(order)
            self._say({"code": 0, "text": "", "more": more})
        except ldap.LDAPError as error:
            code, text = _told(error)
            self._say({"code": code, "text": text, "step": self._step})
        except StepError as error:
            self._say({"code": -2, "text": str(error), "step": error.step})

    def _say(self, message: Order) -> None:
        self._write(encode_frame(message))

    # Connecting

    def _locate(self, order: Order) -> Order:
        """The controllers that DNS lists for a domain, the nearest site first."""
        import dns.exception
        import dns.resolver

        self._step = "locate"
        domain, site = order["domain"], order.get("site", "")
        names = [f"_ldap._tcp.dc._msdcs.{domain}"]
        if site:
            names.insert(0, f"_ldap._tcp.{site}._sites.dc._msdcs.{domain}")
        failed = ""
        for name in names:
            try:
                found = dns.resolver.resolve(name, "SRV", lifetime=order["timeout"])
            except dns.exception.DNSException as error:
                failed = f"{name}: {error}"
                continue
            records = sorted(found, key=lambda each: (each.priority, -each.weight))
            return {"servers": [f"{str(r.target).rstrip('.')}:{r.port}" for r in records[:64]]}
        raise StepError("locate", failed)

    def _connect(self, order: Order) -> Order:
        """Open a connection, bind as the machine, and read the root DSE."""
        self._close(order)
        self._step, security = "connect", order["security"]
        scheme = "ldaps" if security == "ldaps" else "ldap"
        made = self._connection = ldap.initialize(f"{scheme}://{order['server']}", bytes_mode=False)
        made.protocol_version = ldap.VERSION3
        made.set_option(ldap.OPT_REFERRALS, 0)
        made.set_option(ldap.OPT_NETWORK_TIMEOUT, float(order["timeout"]))
        made.set_option(ldap.OPT_TIMEOUT, float(order["timeout"]))
        made.set_option(ldap.OPT_X_SASL_NOCANON, 1)
        if security != "sealed":
            _use_tls(made, order.get("ca_file", ""))
        if security == "starttls":
            self._step = "tls"
            made.start_tls_s()
        self._bind(order)
        self._step = "root"
        bits = 0 if security != "sealed" else made.get_option(ldap.OPT_X_SASL_SSF)
        return {"root": self._root(), "bits": bits}

    def _bind(self, order: Order) -> None:
        made, tls = self._connection, order["security"] != "sealed"
        self._step = "keytab"
        self._take_tickets(order)
        self._step = "bind"
        # Inside TLS a layer of its own is refused; without TLS one that seals is required.
        made.set_option(ldap.OPT_X_SASL_SSF_MIN, 0 if tls else SEALED)
        made.set_option(ldap.OPT_X_SASL_SSF_MAX, 0 if tls else 256)
        made.sasl_interactive_bind_s("", ldap.sasl.gssapi())
        if not tls and made.get_option(ldap.OPT_X_SASL_SSF) < SEALED:
            raise StepError("bind", "the controller agreed to less than a sealed connection")

    def _take_tickets(self, order: Order) -> None:
        """Log on with the present keytab; tickets stay in this process."""
        import gssapi

        self._binds += 1
        cache = f"MEMORY:rpcqm-{self._binds}"
        os.environ["KRB5CCNAME"] = cache
        store = {"ccache": cache}
        if order.get("keytab"):
            store["client_keytab"] = f"FILE:{order['keytab']}"
            os.environ["KRB5_CLIENT_KTNAME"] = store["client_keytab"]
        try:
            name = gssapi.Name(order["principal"], gssapi.NameType.kerberos_principal)
            found = gssapi.Credentials(name=name, usage="initiate", store=store)
            if found.lifetime <= 0:
                raise StepError("keytab", "the ticket has no lifetime")
        except gssapi.exceptions.GSSError as error:
            raise StepError("keytab", error.gen_message()) from error

    def _root(self) -> dict[str, list[str]]:
        found = self._connection.search_ext_s(
            "", ldap.SCOPE_BASE, "(objectClass=*)", list(ROOT_ATTRIBUTES)
        )
        root = _lowered(found[0][1])
        if service := root.get("dsservicename"):
            name = service[0].decode("utf-8", "replace")
            read = self._connection.search_ext_s(
                name, ldap.SCOPE_BASE, "(objectClass=*)", ["invocationId"]
            )
            root.update(_lowered(read[0][1]))
        return plain(root)

    def _refresh(self, order: Order) -> Order:
        """Read the root DSE again, with the controller's highest number."""
        return {"root": self._root()}

    def _close(self, order: Order) -> None:
        if self._connection is not None:
            self._connection.unbind_ext_s()
            self._connection = None

    # Reading and writing

    def _search(self, order: Order) -> Order:
        """All objects that a filter finds, by pages; references elsewhere are only counted."""
        page, referrals = SimplePagedResultsControl(True, size=PAGE, cookie=""), 0
        while True:
            controls = [page, *_flags(order)]
            sent = self._connection.search_ext(
                order["base"],
                _SCOPES[order["scope"]],
                order["filter"],
                order["attributes"],
                serverctrls=controls,
                timeout=SEARCH_SECONDS,
            )
            _, found, _, answered = self._connection.result3(sent)
            objects = [(name, values) for name, values in found if name is not None]
            referrals += len(found) - len(objects)
            self._tell(objects)
            cookie = next((each.cookie for each in answered if hasattr(each, "cookie")), b"")
            if not cookie:
                return {"referrals": referrals}
            page.cookie = cookie

    def _tell(self, objects: list[tuple[str, dict[str, list[bytes]]]]) -> None:
        for start in range(0, len(objects), TOGETHER):
            some = objects[start : start + TOGETHER]
            entries = [(name, plain(self._whole(name, _lowered(values)))) for name, values in some]
            self._say({"entries": entries})

    def _whole(self, name: str, values: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
        """An object with all values of its long attributes: `member;range=0-1499`."""
        for attribute in [each for each in values if ";range=" in each]:
            parts = _RANGE.fullmatch(attribute)
            found = values.pop(attribute)
            while parts is not None and parts[3] != "*":
                asked = f"{parts[1]};range={int(parts[3]) + 1}-*"
                read = self._connection.search_ext_s(
                    name, ldap.SCOPE_BASE, "(objectClass=*)", [asked]
                )
                more = next(iter(_lowered(read[0][1]).items()), (asked, []))
                parts = _RANGE.fullmatch(more[0])
                found += more[1]
            values[attribute.partition(";")[0]] = found
        return values

    def _add(self, order: Order) -> None:
        self._connection.add_ext_s(order["name"], _octets(order), serverctrls=_flags(order))

    def _modify(self, order: Order) -> None:
        changes = [
            (_CHANGES[kind], attribute, [value.encode("latin-1") for value in values] or None)
            for kind, attribute, values in order["changes"]
        ]
        self._connection.modify_ext_s(order["name"], changes, serverctrls=_flags(order))

    def _delete(self, order: Order) -> None:
        self._connection.delete_ext_s(order["name"])


def _use_tls(connection: Any, ca_file: str) -> None:
    connection.set_option(ldap.OPT_X_TLS_REQUIRE_CERT, ldap.OPT_X_TLS_DEMAND)
    if ca_file:
        connection.set_option(ldap.OPT_X_TLS_CACERTFILE, ca_file)
    connection.set_option(ldap.OPT_X_TLS_NEWCTX, 0)


def _flags(order: Order) -> list[RequestControl]:
    """The control that selects the parts of a descriptor."""
    if not (parts := order.get("flags", 0)):
        return []
    # SDFlagsRequestValue ::= SEQUENCE { Flags INTEGER }, in BER
    return [RequestControl(SD_FLAGS, True, bytes((0x30, 3, 2, 1, parts)))]


def _octets(order: Order) -> list[tuple[str, list[bytes]]]:
    return [
        (name, [value.encode("latin-1") for value in values])
        for name, values in order["attributes"].items()
        if values
    ]


def _lowered(values: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
    return {name.lower(): several for name, several in values.items()}


def _told(error: ldap.LDAPError) -> tuple[int, str]:
    """The code and the text of an error; the library's own errors are below zero."""
    said = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    code = said.get("result", getattr(type(error), "errnum", -1))
    texts = [str(said[key]) for key in ("desc", "info") if said.get(key)]
    return int(code), ": ".join(texts) or str(error) or type(error).__name__


def orders(source: BinaryIO) -> Iterator[Order]:
    """The orders on a pipe until it ends."""
    while len(head := source.read(LENGTH)) == LENGTH:
        yield json.loads(source.read(frame_length(head)))


def main() -> None:
    """Carry out orders until the pipe ends."""
    target = sys.stdout.buffer

    def write(data: bytes) -> None:
        target.write(data)
        target.flush()

    worker = Worker(write)
    for order in orders(sys.stdin.buffer):
        worker.carry_out(order)


if __name__ == "__main__":
    main()
