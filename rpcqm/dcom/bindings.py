"""The bindings by which clients reach this computer ([MS-DCOM] 2.2.19)."""

import ipaddress
from collections.abc import Callable, Iterable, Sequence

from rpcqm.codec.automation.objref import (
    NCACN_IP_TCP,
    DualStringArray,
    SecurityBinding,
    StringBinding,
)
from rpcqm.rpc.constants import AuthenticationType

MOST_ADDRESSES = 64
"""Own addresses for which bindings are cached."""

_SERVICES = (
    AuthenticationType.RPC_C_AUTHN_WINNT,
    AuthenticationType.RPC_C_AUTHN_GSS_NEGOTIATE,
    AuthenticationType.RPC_C_AUTHN_GSS_KERBEROS,
)


class Bindings:
    """The bindings of the object resolver and of the object exporter.

    `names` are this computer's names, `advertised` the operator's additions, `addresses` those of
    the exporter's listener, `port` gives its port and `services` the authentication types.
    """

    def __init__(
        self,
        names: Sequence[str],
        addresses: Sequence[str],
        advertised: Sequence[str],
        port: Callable[[], int],
        services: Callable[[], Iterable[int]],
    ) -> None:
        self._names = tuple(names)
        self._addresses = tuple(addresses)
        self._port = port
        self._services = services
        self._advertised = tuple(advertised)
        self._resolver: dict[str, DualStringArray] = {}
        self._packed: dict[str, bytes] = {}

    def advertise(self, advertised: Sequence[str]) -> None:
        """Use other additions of the operator and other authentication types from now on."""
        self._advertised = tuple(advertised)
        self._resolver.clear()
        self._packed.clear()

    def resolver(self, reached: str) -> DualStringArray:
        """The bindings without ports, for a caller who has reached us at the address `reached`."""
        found = self._resolver.get(reached)
        if found is None:
            if len(self._resolver) >= MOST_ADDRESSES:
                self._resolver.clear()
                self._packed.clear()
            found = self._resolver[reached] = self._made(reached, "")
        return found

    def packed_resolver(self, reached: str) -> bytes:
        """The octets of `resolver`."""
        found = self._packed.get(reached)
        if found is None:
            octets = self.resolver(reached).pack()
            found = self._packed[reached] = octets
        return found

    def exporter(self, reached: str) -> DualStringArray:
        """The bindings with the port at which objects are called."""
        return self._made(reached, f"[{self._port()}]")

    def _made(self, reached: str, suffix: str) -> DualStringArray:
        strings = (StringBinding(NCACN_IP_TCP, host + suffix) for host in self.hosts(reached))
        offered = set(self._services())
        services = (SecurityBinding(each) for each in _SERVICES if each in offered)
        return DualStringArray(tuple(strings), tuple(services))

    def has(self, name: str, reached: str) -> bool:
        """Whether callers at the address `reached` get a name in their bindings, in any case."""
        return name.casefold() in (each.casefold() for each in self.hosts(reached))

    def hosts(self, reached: str) -> list[str]:
        """Addresses and names, each once: first the address that the caller has used.

        Clients look for the address that they have dialled. Addresses of this machine alone are
        given to callers from this machine alone.
        """
        reached = reached.removeprefix("::ffff:")  # an IPv4 caller at a socket for both
        here = _is_local(reached)
        found = [reached, *self._advertised, *self._names]
        found += [each for each in self._addresses if here or not _is_local(each)]
        if here:
            found.append("localhost")
        return list(dict.fromkeys(each for each in found if each))


def _is_local(host: str) -> bool:
    """Whether an address has a meaning on one machine, or one link, only."""
    try:
        address = ipaddress.ip_address(host.split("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_link_local
