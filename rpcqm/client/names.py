"""The ways in which a person may name a queue (`rpcqm.codec.names.written`)."""

from rpcqm.codec.names.meant import DoubtedName
from rpcqm.codec.names.written import (
    DEAD_LETTER_QUEUES,
    HERE,
    SYSTEM_QUEUES,
    format_name,
    format_names,
    hint_of,
    is_format_name,
    is_url,
    no_such_queue,
    path_name,
    shown_name,
    subqueue_name,
)

__all__ = [
    "DEAD_LETTER_QUEUES",
    "HERE",
    "SYSTEM_QUEUES",
    "DoubtedName",
    "format_name",
    "format_names",
    "hint_of",
    "is_format_name",
    "is_url",
    "no_such_queue",
    "path_name",
    "shown_name",
    "subqueue_name",
]
