"""HRESULT and NTSTATUS values that MSMQ returns, under their specification's names."""

import enum


class HResult(enum.IntEnum):
    """Message queuing status codes ([MS-MQMQ] 2.4)."""

    MQ_OK = 0x00000000


class NtStatus(enum.IntEnum):
    """NTSTATUS values that MSMQ's RPC methods return ([MS-ERREF] 2.3)."""

    STATUS_INVALID_HANDLE = 0xC0000008
    STATUS_INVALID_PARAMETER = 0xC000000D
    STATUS_ACCESS_DENIED = 0xC0000022
    STATUS_NOT_FOUND = 0xC0000225
