"""Logging on by `Negotiate` (RFC 4559): SPNEGO with Kerberos, and nothing else.

One token has to be enough, so that no state belongs to a connection, and nobody who comes by the
same connection later is taken for the first one. NTLM would need three, and can be relayed.
"""

from pathlib import Path

from rpcqm.base.identity import Identity
from rpcqm.rpc.security.context import AuthenticationError
from rpcqm.rpc.security.kerberos import HttpKerberosProvider
from rpcqm.rpc.security.ntlm import AccountDirectory
from rpcqm.rpc.security.spnego import KERBEROS, MS_KERBEROS, SpnegoAcceptor


class HttpNegotiation:
    """Logs callers of HTTP on; raises AuthenticationError where no key of HTTP/… is there."""

    def __init__(self, accounts: AccountDirectory, keytab: Path) -> None:
        self._kerberos = HttpKerberosProvider(accounts, keytab)

    def log_on(self, token: bytes, channel: bytes | None, bound: bool) -> tuple[Identity, bytes]:
        """Who shows a token, and the answer to it; raises AuthenticationError.

        What it is bound to must be `channel` (None takes all); with `bound` it must be bound.
        """
        kerberos = self._kerberos.accept(channel)
        negotiation = SpnegoAcceptor({name: lambda: kerberos for name in (MS_KERBEROS, KERBEROS)})
        answer = negotiation.step(token)
        if not negotiation.complete:
            raise AuthenticationError("Negotiate: one token has to be enough")
        if bound and not kerberos.bound:
            raise AuthenticationError("Kerberos: the token is not bound to the channel of TLS")
        return negotiation.peer(), answer
