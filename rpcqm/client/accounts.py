"""Accounts of a queue manager, through its administration interface."""

from collections.abc import Sequence
from dataclasses import dataclass

from rpcqm.client.connection import Connections
from rpcqm.codec.types import rpcqm_admin
from rpcqm.codec.types.mqmq import CALPWSTR


@dataclass(frozen=True, slots=True)
class AccountInformation:
    """An account, without its password."""

    name: str
    sid: str
    groups: tuple[str, ...]


class AccountsClient:
    """The accounts that callers log on with; for administrators on the same machine.

    `rpcqm.client.passwords.nt_hash` makes the NT hash of a password, which NTLM needs.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def add(self, name: str, nt_hash: bytes, groups: Sequence[str] = ()) -> str:
        """Create an account; returns its security identifier in text form."""
        request = rpcqm_admin.R_AddAccountRequest(
            pwszName=name,
            NtHash=nt_hash,
            pGroups=CALPWSTR(cElems=len(groups), pElems=list(groups)),
        )
        response = await self._connections.call(request)
        return response.ppwszSid or ""

    async def set_password(self, name: str, nt_hash: bytes) -> None:
        """Give an account another password."""
        request = rpcqm_admin.R_SetAccountPasswordRequest(pwszName=name, NtHash=nt_hash)
        await self._connections.call(request)

    async def remove(self, name: str) -> None:
        """Delete an account."""
        await self._connections.call(rpcqm_admin.R_RemoveAccountRequest(pwszName=name))

    async def list(self) -> tuple[AccountInformation, ...]:
        """All accounts, by name."""
        response = await self._connections.call(rpcqm_admin.R_ListAccountsRequest())
        return tuple(
            AccountInformation(
                account.pwszName or "",
                account.pwszSid or "",
                tuple(group or "" for group in account.Groups.pElems or ()),
            )
            for account in response.ppAccounts or ()
        )

    async def look_up(self, who: Sequence[str]) -> dict[str, str]:
        r"""Names of accounts and groups of the domain by their SIDs.

        `who` are SIDs, and names such as `CORP\\alice`; those that are not there are left out.
        """
        request = rpcqm_admin.R_LookUpAccountsRequest(
            pWho=CALPWSTR(cElems=len(who), pElems=list(who))
        )
        response = await self._connections.call(request)
        return {each.pwszSid or "": each.pwszName or "" for each in response.ppAccounts or ()}

    async def create_logon(self) -> tuple[str, str]:
        """A token with which a browser logs on once as the caller, and the page that takes it.

        The page is "" where none is served; the token lasts for a minute.
        """
        response = await self._connections.call(rpcqm_admin.R_CreateLogonRequest())
        return response.ppwszToken or "", response.ppwszPage or ""
