"""What a change of words must not change: the citations of each definition."""

from tests.support.project.facts import differences, facts_of

BEFORE = '''
"""A module of [MS-MQRR] 3.1.4.10."""

LIMIT = 3
"""Bounded by G36."""


class Handle:
    """A handle."""

    def close(self) -> None:
        """Close it; raises RpcFault (Opnum 7,
        [MS-RPCE] 3.3.1.5.3)."""
        # MQ_ERROR_INVALID_HANDLE would be wrong
        return
'''


def test_facts_belong_to_the_innermost_definition() -> None:
    assert facts_of(BEFORE) == {
        "": {"[MS-MQRR] 3.1.4.10", "G36"},
        "Handle": frozenset(),
        "Handle.close": {
            "RpcFault",
            "Opnum 7",
            "[MS-RPCE] 3.3.1.5.3",
            "MQ_ERROR_INVALID_HANDLE",
        },
    }


def test_other_words_are_no_difference() -> None:
    after = BEFORE.replace("Close it; raises", "Release the context handle; raises")
    assert list(differences(BEFORE, after)) == []


def test_a_lost_fact_and_another_one_are_named() -> None:
    after = BEFORE.replace("Opnum 7", "Opnum 8").replace("MQ_ERROR_INVALID_HANDLE", "An error")
    (line,) = differences(BEFORE, after)
    assert line == ("Handle.close: lost ['MQ_ERROR_INVALID_HANDLE', 'Opnum 7'], added ['Opnum 8']")
