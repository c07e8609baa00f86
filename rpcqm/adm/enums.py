"""Enumerations of the abstract data model ([MS-MQDMPR] 3.1.1)."""

import enum


class PositionState(enum.IntEnum):
    """State of a MessagePosition ([MS-MQDMPR] 3.1.1.11).

    LEAVING is our own: the removal of the message is on its way to the disk, and nothing else
    may touch it meanwhile (G61).
    """

    AVAILABLE = 0
    LOCKED = 1
    PURGE_PENDING = 2
    LEAVING = 3
    DELETED = 4
