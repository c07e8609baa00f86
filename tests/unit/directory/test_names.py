"""Distinguished names and the names of queues in a directory."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.base.text import folded, wide_length
from rpcqm.directory import names

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@pytest.mark.conformance("MQDSSM-hash")
@pytest.mark.parametrize(
    ("index", "value"),
    [(1, 0x82E0FE45), (2, 0x3302DCCD), (4, 0x6605B99A), (239, 0x3D348C2E), (255, 0x93E14A01)],
)
def test_the_table_of_the_hash_is_that_of_the_section(index: int, value: int) -> None:
    assert names._table()[index] == value


@pytest.mark.conformance("MQDSSM-hash")
def test_the_hash_counts_lowered_units_with_the_high_octet_first() -> None:
    assert names.hash_of("order-" * 20) == names.hash_of("ORDER-" * 20) == "89566ed8"
    assert names.hash_of("") == "00000000"
    assert names.hash_of("\u0100") != names.hash_of("\u0001")


@given(TEXT)
@example(' #a+b,"c\\;<d>=/ ')
@example("\r\n")
def test_what_is_escaped_is_read_as_it_was(value: str) -> None:
    name = names.child_of("OU=a\\,b,DC=corp,DC=test", value)
    parts = names.parts_of(name)
    assert names.value_of(parts[0]) == value
    assert parts[1:] == ["OU=a\\,b", "DC=corp", "DC=test"]
    assert names.parent_of(name, 2) == "DC=corp,DC=test"


@given(TEXT.filter(lambda text: wide_length(text) <= 124))
@example("order-" * 20)
@example("x" * 54 + "\U0001f4e6" * 20)
@pytest.mark.conformance("MQDSSM-queue-name", "MQDSSM-values-pathname")
def test_a_queue_has_its_name_back(queue: str) -> None:
    stored, extension = names.stored_name(queue)
    assert wide_length(stored) <= 64
    assert names.queue_name(stored, extension) == queue


@pytest.mark.conformance("MQDSSM-queue-name", "MQDSSM-write-queue-name")
def test_a_name_is_shortened_from_64_characters_on() -> None:
    assert names.stored_name("q" * 63) == ("q" * 63, "")
    stored, extension = names.stored_name("q" * 64)
    assert stored == "q" * 55 + "-" + names.hash_of("q" * 64)
    assert extension == "q" * 9


@pytest.mark.parametrize("damaged", ["CN=a\\", "CN=\\ff", "a"])
def test_damaged_names_are_refused(damaged: str) -> None:
    with pytest.raises(DecodeError):
        names.value_of(damaged)


def test_writings_of_one_name_are_the_same() -> None:
    one = names.comparable("CN=a\\2cb, OU=X,DC=corp")
    assert one == names.comparable("cn=A\\,B,ou=x,dc=CORP")
    assert one != names.comparable("cn=A,B,ou=x,dc=CORP")
    assert names.child_of("DC=x", "a+b") == "CN=a\\+b,DC=x"
    assert names.comparable("CN=offers,DC=x") == folded("CN=offers,DC=x")


def test_a_parent_that_is_not_there_is_an_error() -> None:
    with pytest.raises(DecodeError):
        names.parent_of("DC=test", 1)


def test_a_naming_context_has_a_name_in_dns() -> None:
    assert names.domain_of("OU=x,DC=corp,DC=test") == "corp.test"


@pytest.mark.parametrize(("name", "kept"), [("a b", True), (" a", False), ("a ", False)])
def test_names_whose_spaces_would_be_lost_are_not_published(name: str, kept: bool) -> None:
    assert names.may_be_published(name) is kept
