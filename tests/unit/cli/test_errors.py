"""Refusals as sentences: what did not work, why, the code's name, and what to do."""

import pytest

from rpcqm.base.errors import DecodeError, FaultStatus, HResult, MQError, NtStatus, RpcFault
from rpcqm.cli.errors import explain


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND),
            "Cannot peek: there is no such queue, or the caller may not see it "
            "(MQ_ERROR_QUEUE_NOT_FOUND); check the name with `rpcqm queue list`.",
        ),
        (
            MQError(HResult.MQ_ERROR, "with the code 0xC00EFFFF"),
            "Cannot peek: the operation failed for a reason that has no code of its own, "
            "with the code 0xC00EFFFF (MQ_ERROR).",
        ),
        (
            MQError(NtStatus.STATUS_NO_SUCH_USER),
            "Cannot peek: there is no account of this name (STATUS_NO_SUCH_USER); "
            "check the name with `rpcqm user list`.",
        ),
        (
            RpcFault(FaultStatus.RPC_S_ACCESS_DENIED),
            "Cannot peek: the server did not accept who is calling (RPC_S_ACCESS_DENIED); "
            "give --user NAME and the right password.",
        ),
        (
            RpcFault(FaultStatus.nca_s_fault_unspec),
            "Cannot peek: the server could not carry out the call (nca_s_fault_unspec).",
        ),
        (
            DecodeError("too short", 7),
            "Cannot peek: the server's answer cannot be read, too short at offset 7.",
        ),
    ],
    ids=str,
)
def test_a_refusal_is_one_sentence_with_its_code(
    error: MQError | RpcFault | DecodeError, sentence: str
) -> None:
    assert explain(error, "Cannot peek") == sentence


@pytest.mark.parametrize("status", list(HResult), ids=lambda status: status.name)
def test_every_code_makes_a_sentence(status: HResult) -> None:
    sentence = explain(MQError(status), "Cannot do it")
    assert sentence.startswith("Cannot do it: ")
    assert f"({status.name})" in sentence
    assert sentence.endswith(".")
    assert ". " not in sentence.replace("...", "")
