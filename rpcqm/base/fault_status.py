"""Fault and rejection codes of DCE/RPC, under their own names."""

import enum


class FaultStatus(enum.IntEnum):
    """Status values of fault PDUs ([C706] appendix E, [MS-RPCE] 3.1.1.5.5, [MS-ERREF] 2.2)."""

    nca_s_fault_int_div_by_zero = 0x1C000001
    nca_s_fault_addr_error = 0x1C000002
    nca_s_fault_fp_div_zero = 0x1C000003
    nca_s_fault_fp_underflow = 0x1C000004
    nca_s_fault_fp_overflow = 0x1C000005
    nca_s_fault_invalid_tag = 0x1C000006
    nca_s_fault_invalid_bound = 0x1C000007
    nca_s_rpc_version_mismatch = 0x1C000008
    nca_s_unspec_reject = 0x1C000009
    nca_s_bad_actid = 0x1C00000A
    nca_s_who_are_you_failed = 0x1C00000B
    nca_s_manager_not_entered = 0x1C00000C
    nca_s_fault_cancel = 0x1C00000D
    nca_s_fault_ill_inst = 0x1C00000E
    nca_s_fault_fp_error = 0x1C00000F
    nca_s_fault_int_overflow = 0x1C000010
    nca_s_fault_unspec = 0x1C000012
    nca_s_fault_remote_comm_failure = 0x1C000013
    nca_s_fault_pipe_empty = 0x1C000014
    nca_s_fault_pipe_closed = 0x1C000015
    nca_s_fault_pipe_order = 0x1C000016
    nca_s_fault_pipe_discipline = 0x1C000017
    nca_s_fault_pipe_comm_error = 0x1C000018
    nca_s_fault_pipe_memory = 0x1C000019
    nca_s_fault_context_mismatch = 0x1C00001A
    nca_s_fault_remote_no_memory = 0x1C00001B
    nca_s_invalid_pres_context_id = 0x1C00001C
    nca_s_unsupported_authn_level = 0x1C00001D
    nca_s_invalid_checksum = 0x1C00001F
    nca_s_invalid_crc = 0x1C000020
    nca_s_fault_user_defined = 0x1C000021
    nca_s_fault_tx_open_failed = 0x1C000022
    nca_s_fault_codeset_conv_error = 0x1C000023
    nca_s_fault_object_not_found = 0x1C000024
    nca_s_fault_no_client_stub = 0x1C000025
    nca_s_comm_failure = 0x1C010001
    nca_s_op_rng_error = 0x1C010002
    nca_s_unk_if = 0x1C010003
    nca_s_wrong_boot_time = 0x1C010006
    nca_s_you_crashed = 0x1C010009
    nca_s_proto_error = 0x1C01000B
    nca_s_out_args_too_big = 0x1C010013
    nca_s_server_too_busy = 0x1C010014
    nca_s_unsupported_type = 0x1C010017

    OR_INVALID_OXID = 1910
    OR_INVALID_OID = 1911
    OR_INVALID_SET = 1912
    RPC_S_ACCESS_DENIED = 0x00000005
    RPC_S_UNKNOWN_IF = 0x000006B5
    RPC_S_OUT_OF_RESOURCES = 0x000006B9
    RPC_S_SERVER_UNAVAILABLE = 0x000006BA
    RPC_S_SERVER_TOO_BUSY = 0x000006BB
    RPC_S_NO_CALL_ACTIVE = 0x000006BD
    RPC_S_CALL_FAILED = 0x000006BE
    RPC_S_CALL_FAILED_DNE = 0x000006BF
    RPC_S_PROTOCOL_ERROR = 0x000006C0
    RPC_S_UNSUPPORTED_TRANS_SYN = 0x000006C2
    RPC_S_UNSUPPORTED_TYPE = 0x000006C4
    RPC_S_PROCNUM_OUT_OF_RANGE = 0x000006D1
    RPC_S_UNKNOWN_AUTHN_SERVICE = 0x000006D3
    EPT_S_CANT_PERFORM_OP = 0x000006D8
    EPT_S_NOT_REGISTERED = 0x000006D9
    RPC_X_BAD_STUB_DATA = 0x000006F7
    RPC_S_CALL_CANCELLED = 0x0000071A
    RPC_S_SEC_PKG_ERROR = 0x00000721

    @classmethod
    def _missing_(cls, value: object) -> "FaultStatus | None":
        """A status without a name, as any peer may send it: its name is its number."""
        if not isinstance(value, int) or not 0 <= value <= 0xFFFFFFFF:
            return None
        nameless = int.__new__(cls, value)
        nameless._name_ = f"0x{value:08X}"
        nameless._value_ = value
        return nameless
