"""Tokens of a queue manager, through its administration interface."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rpcqm.base.identity import ALL_RIGHTS, TokenRight
from rpcqm.client.connection import Connections
from rpcqm.codec.types import rpcqm_admin
from rpcqm.codec.types.mqmq import CALPWSTR


@dataclass(frozen=True, slots=True)
class TokenInformation:
    """A token, without its text.

    Times are milliseconds since 1970, `expires` is 0 for never; `queues` is None for all of them.
    """

    name: str
    account: str
    rights: tuple[str, ...]
    queues: tuple[str, ...] | None
    created: int
    expires: int


class TokensClient:
    """What programs show instead of a password; for administrators on the same machine."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def create(
        self,
        name: str,
        account: str,
        rights: Iterable[TokenRight] = ALL_RIGHTS,
        queues: Sequence[str] | None = None,
        life: int = 0,
    ) -> str:
        """Make a token of an account; returns its text, which nobody can ask for again.

        `rights` and `queues` (None for all) narrow what the account may do. It ends after `life`
        milliseconds; 0 for never.
        """
        request = rpcqm_admin.R_CreateTokenRequest(
            pwszName=name,
            pwszAccount=account,
            Rights=sum(right.bit for right in set(rights)),
            pQueues=(None if queues is None else CALPWSTR(cElems=len(queues), pElems=list(queues))),
            Life=life,
        )
        response = await self._connections.call(request)
        return response.ppwszToken or ""

    async def list(self) -> tuple[TokenInformation, ...]:
        """All tokens, by name."""
        response = await self._connections.call(rpcqm_admin.R_ListTokensRequest())
        return tuple(map(_information, response.ppTokens or ()))

    async def delete(self, name: str) -> None:
        """Delete a token, which nobody can use any more."""
        await self._connections.call(rpcqm_admin.R_DeleteTokenRequest(pwszName=name))


def _information(token: rpcqm_admin.TOKEN) -> TokenInformation:
    queues = tuple(name or "" for name in token.Queues.pElems or ())
    return TokenInformation(
        token.pwszName or "",
        token.pwszAccount or "",
        tuple(right.value for right in TokenRight if token.Rights & right.bit),
        None if token.fAllQueues else queues,
        token.Created,
        token.Expires,
    )
