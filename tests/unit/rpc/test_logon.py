"""What a peer says of itself before it has proved anything."""

import pytest

from rpcqm.rpc.security.logon import LogonClaim, claimed


def test_a_claim_is_kept_as_it_is() -> None:
    assert claimed("kïm", "CORP", "PC-7") == LogonClaim("kïm", "CORP", "PC-7")


@pytest.mark.parametrize(
    "text", ["a\x1b[2J", "a\nb", "\u202eabc", "\x9b31m", "a\u2028b", "\ud800"], ids=ascii
)
def test_a_claim_cannot_move_a_terminal(text: str) -> None:
    claim = claimed(text, text, text)
    for part in (claim.account, claim.domain, claim.workstation):
        assert part.isprintable()
        assert part.encode("utf-8")


@pytest.mark.parametrize("text", ["x" * 30_000, "\0" * 30_000])
def test_a_claim_is_short(text: str) -> None:
    claim = claimed(text, text, text)
    assert {len(each) for each in (claim.account, claim.domain, claim.workstation)} == {256}
