"""The place in the log from which the database goes on after a restart.

The place is written with each write of rows. Signs of life write nothing, so that an idle database
would fall behind, and the log could not be trimmed.
"""

from collections.abc import Callable

from rocksdict import WriteBatch

from rpcqm.store.database import Database
from rpcqm.store.migration import place_of_database
from rpcqm.store.replication import Place

SIGNS_OF_LIFE = 64
"""Records without rows after which the place is written by itself."""


class KeptPlace:
    """The number of the last applied record, as written in the database.

    `end` gives the log's end as this node knows it; `is_between` says whether all records before it
    are applied, and no part of a write is missing.
    """

    def __init__(
        self, database: Database, end: Callable[[], Place], is_between: Callable[[], bool]
    ) -> None:
        self._database = database
        self._end = end
        self._is_between = is_between

    def number(self) -> int:
        """The number, after writing the place if it has fallen behind."""
        written, end = place_of_database(self._database), self._end()
        if end.number - written.number >= SIGNS_OF_LIFE and self._is_between():
            batch = WriteBatch(raw_mode=True)
            self._database.write(batch, sync=False, position=end.encode())
            return end.number
        return written.number
