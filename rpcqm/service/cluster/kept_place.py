"""Up to where in the log the database goes on after a restart.

The place is written with each write of rows. Signs of life write nothing, so that a database of
which nobody makes use would fall behind, and the log could not be trimmed.
"""

from collections.abc import Callable

from rocksdict import WriteBatch

from rpcqm.store.database import Database
from rpcqm.store.migration import place_of_database
from rpcqm.store.replication import Place

SIGNS_OF_LIFE = 64
"""After so many records without rows the place is written by itself."""


class KeptPlace:
    """The number of the record up to which a database is, by what is written in it.

    `end` is where the log ends as this node knows; `is_between` tells whether all before it is
    written, and no part of a write is missing.
    """

    def __init__(
        self, database: Database, end: Callable[[], Place], is_between: Callable[[], bool]
    ) -> None:
        self._database = database
        self._end = end
        self._is_between = is_between

    def number(self) -> int:
        """Look, and write the place if it has fallen behind."""
        written, end = place_of_database(self._database), self._end()
        if end.number - written.number >= SIGNS_OF_LIFE and self._is_between():
            batch = WriteBatch(raw_mode=True)
            self._database.write(batch, sync=False, position=end.encode())
            return end.number
        return written.number
