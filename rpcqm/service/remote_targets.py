"""Where other queue managers are, and who we log on as there."""

from importlib.util import find_spec

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.target import ENDPOINT_MAPPER_PORT, RemoteServer, host_and_port
from rpcqm.config import ConfigurationError, RemoteSection
from rpcqm.config.remote_accounts import RemoteAccount, RemoteAccounts, load_remote_accounts
from rpcqm.config.values import Mistake
from rpcqm.rpc.security.context import Credentials
from rpcqm.rpc.security.ntlm import STRONG, NtlmCredentials
from rpcqm.rpc.security.spnego import SpnegoCredentials


class RemoteTargets:
    """Tells the target of a queue manager by its name; ConfigurationError when made.

    With credentials everything is encrypted (PKT_PRIVACY). The files are read once.
    """

    def __init__(self, remote: RemoteSection, minimum_ntlm: int = STRONG) -> None:
        if remote.kerberos and find_spec("gssapi") is None:
            text = "Kerberos needs the package gssapi: install rpcqm[kerberos]."
            raise ConfigurationError([Mistake("remote.kerberos", text)])
        self._remote = remote
        self._minimum_ntlm = minimum_ntlm
        self._peers = _peers(remote.peers)
        path = remote.credentials_file
        self._accounts = RemoteAccounts() if path is None else load_remote_accounts(path)

    def __call__(self, machine: str, listed: bool = False) -> RemoteServer:
        """MQError(MQ_ERROR_ACCESS_DENIED) where nothing says how to log on (G68).

        `listed` says that the directory has the machine. The default account is sent only there
        and to `remote.peers`, because clients may name any host, unless the setting
        `remote.default_account` says otherwise (G86).
        """
        host, port = self._peers.get(machine.lower(), (machine, ENDPOINT_MAPPER_PORT))
        credentials = self._credentials(machine, listed or machine.lower() in self._peers)
        if credentials is None and not self._remote.allow_unauthenticated:
            text = f"the table [remote] of the configuration has no account for {machine}"
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, text)
        return RemoteServer(host, port, credentials)

    def has_peer(self, machine: str) -> bool:
        """Whether `remote.peers` tells where a queue manager is."""
        return machine.lower() in self._peers

    def at_address(self, address: str) -> Credentials | None:
        """Who we log on as at an address that has called us; None: nobody (G264).

        Only an account that the file gives for the address itself, or for a machine that
        `remote.peers` has there: whoever calls may claim any name.
        """
        names = [name for name, (host, _) in self._peers.items() if host == address]
        for name in (address, *names):
            account = self._accounts.find(name)
            if account is not None:
                return self._ntlm(account)
        return None

    def _credentials(self, machine: str, known: bool) -> Credentials | None:
        found: list[Credentials] = []
        if self._remote.kerberos:
            # Only now, because it loads a package that few have.
            from rpcqm.rpc.security.kerberos import KerberosCredentials

            found.append(KerberosCredentials(f"host/{machine}"))
        account = self._accounts.find(machine)
        if account is None and (known or self._remote.default_account):
            account = self._accounts.default
        if account is not None:
            found.append(self._ntlm(account))
        if len(found) > 1:
            return SpnegoCredentials(tuple(found))
        return found[0] if found else None

    def _ntlm(self, account: RemoteAccount) -> NtlmCredentials:
        return NtlmCredentials(
            account.user, account.password, account.domain, minimum_bits=self._minimum_ntlm
        )


def _peers(text: str) -> dict[str, tuple[str, int]]:
    """Host and port by name in lower case, of NAME=HOST[:PORT] separated by commas."""
    entries = (entry.strip().partition("=") for entry in text.split(",") if entry.strip())
    try:
        return {name.lower(): _place(place) for name, _, place in entries}
    except ValueError as error:
        raise ConfigurationError([Mistake("remote.peers", f"{error}.")]) from None


def _place(text: str) -> tuple[str, int]:
    return host_and_port(text[1:-1] if text.endswith("]") else text)
