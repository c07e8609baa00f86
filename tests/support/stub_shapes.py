"""Holes of the requests that have shapes, and what shapes tell of values."""

import uuid

from rpcqm.codec.ndr.cut import Holes

SEND_HOLES = Holes(
    values=(
        "hQueue",
        "ptb.old.u.value.pAdminQueueFormat.u.value",
        "ptb.old.u.value.pResponseQueueFormat.u.value",
        "ptb.old.ppCorrelationID",
        "ptb.old.pPriority",
        "ptb.old.pApplicationTag",
        "ptb.old.ppBody",
        "ptb.old.ppTitle",
        "ptb.old.ulAbsoluteTimeToQueue",
        "ptb.old.ulRelativeTimeToLive",
    ),
    sizes=(
        "ptb.old.ulBodyBufferSizeInBytes",
        "ptb.old.ulAllocBodyBufferInBytes",
        "ptb.old.ulTitleBufferSizeInWCHARs",
    ),
    ignored=("pMessageID", "ptb.old.ppMessageID", "ptb.old.pBodySize"),
    given=(("ptb.old.uTransferType", 0),),
)
START_HOLES = Holes(
    values=(
        "phContext",
        "LookupId",
        "hCursor",
        "ulTimeout",
        "dwRequestId",
        "dwMaxBodySize",
        "dwMaxCompoundMessageSize",
    )
)
END_HOLES = Holes(values=("phContext", "dwAck", "dwRequestId"))


def as_told(value: object) -> set[object]:
    """What a shape may tell of a value: arrays and strings of characters as octets, UUIDs too."""
    if isinstance(value, str):
        return {(value + end).encode("utf-16-le", "surrogatepass") for end in ("", "\0")}
    return {value.bytes_le} if isinstance(value, uuid.UUID) else {value}
