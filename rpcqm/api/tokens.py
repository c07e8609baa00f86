"""Tokens that programs show instead of a password."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from rpcqm.api import models
from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.base.identity import ALL_RIGHTS, TokenRight
from rpcqm.base.text import iso_time
from rpcqm.operations.tokens import TokenView

LONGEST_LIFE = 315_360_000
"""Seconds."""

Right = Literal["peek", "send", "receive", "manage"]


@dataclass(frozen=True)
class TokenDraft(models.Strict):
    """A token to be made: `rights` and `queues` narrow its account; it ends after `life` seconds.

    Without `rights` it has all, without `queues` it is for all, without `life` it does not end.
    """

    name: Annotated[str, Field(min_length=1, max_length=64)]
    account: Annotated[str, Field(min_length=1, max_length=64)]
    rights: Annotated[list[Right], Field(min_length=1, max_length=4)] | None = None
    queues: Annotated[list[models.Name], Field(min_length=1, max_length=100)] | None = None
    life: Annotated[int, Field(ge=1, le=LONGEST_LIFE)] | None = None


@dataclass(frozen=True)
class MadeToken:
    """The text of a token, which is never told again."""

    name: str
    token: str


@dataclass(frozen=True)
class Token:
    """A token without its text; `queues` is null for all, `expires` for never."""

    name: str
    account: str
    rights: list[str]
    queues: list[str] | None
    created: str
    expires: str | None


@dataclass(frozen=True)
class Tokens:
    """All tokens, by name."""

    tokens: list[Token]


async def list_tokens(asked: Asked) -> Reply:
    """All tokens, by name, without their texts."""
    tokens = asked.operations.tokens.list(asked.identity)
    return Reply(200, {"tokens": [_described(token) for token in tokens]})


async def create_token(asked: Asked) -> Reply:
    """Create a token of an account; only this answer has its text."""
    wanted: TokenDraft = asked.content
    rights = ALL_RIGHTS if wanted.rights is None else [TokenRight(each) for each in wanted.rights]
    life = (wanted.life or 0) * 1000
    made = asked.operations.tokens.create(
        asked.identity, wanted.name, wanted.account, rights, wanted.queues, life
    )
    return Reply(201, {"name": wanted.name, "token": await settled(made)})


async def delete_token(asked: Asked) -> Reply:
    """Delete a token, which is invalid from now on."""
    await settled(asked.operations.tokens.delete(asked.identity, asked.path["name"]))
    return Reply(204)


def _described(token: TokenView) -> dict[str, object]:
    return {
        "name": token.name,
        "account": token.account,
        "rights": [str(right) for right in TokenRight if right in token.rights],
        "queues": None if token.queues is None else list(token.queues),
        "created": iso_time(token.created / 1000),
        "expires": iso_time(token.expires / 1000),
    }
