"""The ways in which a person may name a queue (`rpcqm.codec.names.written`)."""

from rpcqm.codec.names.written import (
    DEAD_LETTER_QUEUES,
    HERE,
    SYSTEM_QUEUES,
    format_name,
    format_names,
    is_format_name,
    is_url,
    path_name,
    shown_name,
    subqueue_name,
)

__all__ = [
    "DEAD_LETTER_QUEUES",
    "HERE",
    "SYSTEM_QUEUES",
    "format_name",
    "format_names",
    "is_format_name",
    "is_url",
    "path_name",
    "shown_name",
    "subqueue_name",
]
