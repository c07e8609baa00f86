"""What receives of qmcomm2 ask for: buffers with room for some attributes or for all."""

from typing import Any
from uuid import UUID

from rpcqm.codec.interface import NULL
from rpcqm.codec.types.mqmq import OBJECTID

NULL_GUID = UUID(int=0)
RECEIVE, PEEK_NEXT = 0, 0x8000_0001


def label_of(size: int, told: int | None = None) -> dict[str, Any]:
    """Room for a label, and the size that is told of it."""
    return {
        "ppTitle": "\0" * size,
        "ulTitleBufferSizeInWCHARs": size,
        "pulTitleBufferSizeInWCHARs": size if told is None else told,
    }


def names_of(size: int) -> dict[str, Any]:
    """Room for the names of queues."""
    fields: dict[str, Any] = {}
    for kind in ("Response", "Admin", "Dest", "Ordering"):
        fields |= {
            f"pp{kind}FormatName": "\0" * size,
            f"ul{kind}FormatNameLen": size,
            f"pul{kind}FormatNameLenProp": size,
        }
    return fields


NUMBERS: dict[str, Any] = {
    "pClass": 0,
    "pSentTime": 0,
    "pArrivedTime": 0,
    "pPriority": 0,
    "pDelivery": 0,
    "pAcknowledge": 0,
    "pAuditing": 0,
    "pApplicationTag": 0,
    "pulRelativeTimeToQueue": 0,
    "pulRelativeTimeToLive": 0,
    "pTrace": 0,
    "pulSenderIDType": 0,
    "pulPrivLevel": 0,
    "pAuthenticated": 0,
    "pulHashAlg": 0,
    "pulEncryptAlg": 0,
    "pulProvType": 0,
    "pulBodyType": 0,
    "pulVersion": 0,
    "ppMessageID": OBJECTID(Lineage=NULL_GUID),
    "ppCorrelationID": bytes(20),
    "ppSrcQMID": NULL_GUID,
    "ppConnectorType": NULL_GUID,
}
EXTENSION: dict[str, Any] = {
    "ppMsgExtension": bytes(16),
    "ulMsgExtensionBufferInBytes": 16,
    "pMsgExtensionSize": 0,
}
SENDER: dict[str, Any] = {"ppSenderID": bytes(40), "uSenderIDLen": 40, "pulSenderIDLenProp": 40}
EVERYTHING: dict[str, Any] = NUMBERS | EXTENSION | SENDER | label_of(250) | {"names": names_of(200)}
REQUESTS: list[dict[str, Any]] = [
    {"size": 64, **EVERYTHING},
    {"size": 20, **label_of(8)},
    {"size": None, **NUMBERS, **label_of(40, 300)},
    {"size": 1023, "pulTitleBufferSizeInWCHARs": 0, "ppMessageID": NULL, "pPriority": 0},
    {"size": 0, **NUMBERS, **label_of(250, 9), "names": names_of(12)},
    {"size": 6000},
]
