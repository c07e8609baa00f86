"""Fault and rejection codes of DCE/RPC, under their own names."""

import enum


class FaultStatus(enum.IntEnum):
    """Status values of fault PDUs ([C706] appendix E, [MS-RPCE] 2.2.2.1, [MS-ERREF] 2.2)."""

    RPC_S_ACCESS_DENIED = 0x00000005
    RPC_X_BAD_STUB_DATA = 0x000006F7
    nca_s_fault_context_mismatch = 0x1C00001A
    nca_s_fault_unspec = 0x1C000012
    nca_s_op_rng_error = 0x1C010002
    nca_s_unk_if = 0x1C010003
    nca_s_proto_error = 0x1C01000B
