"""What a directory is asked of the accounts of its domain, by whoever needs it here."""

from collections.abc import Collection, Mapping
from typing import Protocol


class People(Protocol):
    """The accounts of a domain, by their SIDs in text form.

    Every method may wait for the directory, and raises DirectoryUnavailableError while it cannot be
    asked. None is called on the way of a message, or because of what strangers send.
    """

    async def standing(self, sids: Collection[str]) -> Mapping[str, bool]:
        """Whether each account is there and not disabled; all that are asked for are answered."""
        ...

    async def names(self, sids: Collection[str]) -> Mapping[str, str]:
        r"""Names of accounts and groups as people write them, `CORP\alice`; others are left out."""
        ...

    async def identifiers(self, names: Collection[str]) -> Mapping[str, str]:
        r"""SIDs of accounts and groups by names as `names` has them; others are left out."""
        ...

    async def groups(self, sid: str) -> frozenset[str]:
        """The groups of an account, groups in groups included; none if it is not there."""
        ...
