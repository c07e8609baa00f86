from typing import Any

import pytest

from rpcqm.base.fault_status import FaultStatus


def test_statuses_have_their_specifications_names() -> None:
    assert FaultStatus(0x1C00001A) is FaultStatus.nca_s_fault_context_mismatch
    assert FaultStatus(5).name == "RPC_S_ACCESS_DENIED"


def test_a_status_without_a_name_is_kept_as_a_number() -> None:
    status = FaultStatus(0xC00E9999)
    assert (status, status.name) == (0xC00E9999, "0xC00E9999")
    assert 0xC00E9999 not in list(FaultStatus)


@pytest.mark.parametrize("value", [-1, 1 << 32, "5"])
def test_what_is_no_status_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid FaultStatus"):
        FaultStatus(value)
