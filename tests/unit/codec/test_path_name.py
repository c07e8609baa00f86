"""Path names: their grammar, their case, their suffixes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName, QueueKind

NAME_CHARACTERS = st.characters(
    exclude_categories=["Cs"], exclude_characters='\\;+,"\r\n\0', max_codepoint=0xFFFF
)
names = st.text(NAME_CHARACTERS, min_size=1, max_size=124).filter(
    lambda name: name.upper() not in ("SYSTEM$", "PRIVATE$")
)


@pytest.mark.conformance("MQMQ-path-public")
def test_public_path_is_computer_and_queue() -> None:
    assert PathName.parse(r"host\orders") == PathName("host", "orders", QueueKind.PUBLIC)


@pytest.mark.conformance("MQMQ-path-private")
def test_private_path_has_the_private_segment_in_any_case() -> None:
    path = PathName.parse(r".\PRIVATE$\Orders")
    assert (path.computer, path.queue, path.kind) == (".", "Orders", QueueKind.PRIVATE)
    assert str(path) == r".\private$\Orders"


@pytest.mark.conformance("MQMQ-path-system")
def test_system_path_has_a_semicolon_before_the_queue() -> None:
    path = PathName.parse(r"host\System$;DEADXACT")
    assert (path.computer, path.queue, path.kind) == ("host", "DEADXACT", QueueKind.SYSTEM)
    assert str(path) == r"host\system$;DEADXACT"


@pytest.mark.conformance("MQMQ-path-subqueue")
def test_subqueue_follows_a_semicolon() -> None:
    path = PathName.parse(r"host\private$\orders;failed")
    assert path.subqueue == "failed"
    assert not path.is_journal
    assert path.parent == PathName.parse(r"host\private$\orders")
    queue = PathName.parse(r"host\private$\orders")
    assert queue.parent is queue
    assert str(path) == r"host\private$\orders;failed"


@pytest.mark.conformance("MQMQ-path-subqueue")
def test_subqueue_name_has_31_characters_at_most() -> None:
    queue = r"host\private$\orders;"
    assert len(PathName.parse(queue + "s" * 31).subqueue) == 31
    with pytest.raises(MQError):
        PathName.parse(queue + "s" * 32)


def test_journal_suffix_is_no_subqueue() -> None:
    path = PathName.parse(r"host\private$\orders;Journal")
    assert path.is_journal
    assert path.subqueue == ""


@pytest.mark.parametrize(
    "queue",
    ["new orders", "größe 5", "Ωμέγα", "日本", "a\tb", "\N{PACKAGE}" * 62, "ä" * 124, "a=b", " "],
)
def test_a_queue_has_a_name_of_up_to_124_characters_of_unicode(queue: str) -> None:
    path = PathName.parse(f"host\\private$\\{queue};späte {queue[:12]}")
    assert (path.queue, path.subqueue) == (queue, f"späte {queue[:12]}")


@pytest.mark.parametrize(
    ("one", "other"),
    [("GRÖßE", "größe"), ("ΟΔΟΣ", "οδος"), ("ΟΔΟΣ", "οδοσ"), ("日本Я", "日本я"), ("ẞ", "ß")],
)
def test_letters_of_every_alphabet_are_equal_without_regard_to_case(one: str, other: str) -> None:
    first, second = (PathName.parse(f"host\\private$\\{name}") for name in (one, other))
    assert first == second
    assert hash(first) == hash(second)


@pytest.mark.parametrize(("one", "other"), [("straße", "strasse"), ("İ", "i"), ("é", "e\u0301")])
def test_letters_that_are_not_one_letter_in_another_case_differ(one: str, other: str) -> None:
    assert PathName("host", one) != PathName("host", other)


def test_paths_are_equal_without_regard_to_case() -> None:
    one, other = PathName.parse(r"HOST\Private$\Q"), PathName.parse(r"host\private$\q")
    assert one == other
    assert hash(one) == hash(other)
    assert one != PathName.parse(r"host\q")
    assert one != r"host\private$\q"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "orders",
        "\\orders",
        "host\\",
        "host\\private$\\",
        "host\\private$\\a\\b",
        "host\\private$\\a;",
        "host\\private$\\a;b;c",
        "host\\private$\\a+b",
        "host\\private$\\a,b",
        'host\\private$\\a"b',
        "host\\private$\\a\n",
        "host\\private$\\a\r",
        "host\\private$\\a\0",
        "host\\private$\\a\ud83d",
        "host\\private$\\" + "ä" * 125,
        "host\\private$\\" + "\N{SNOWMAN}" * 123 + "\N{PACKAGE}",
        "höst\\q",
        "host\\system$\\x",
        "host\\system$;",
        "host\\private$\\q;deadletter",
        "host\\private$\\" + "q" * 125,
        "h" * 257 + "\\q",
        "ho st\\q",
    ],
)
def test_text_that_is_no_path_name_is_refused(text: str) -> None:
    with pytest.raises(MQError) as refusal:
        PathName.parse(text)
    assert refusal.value.status is HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME


@given(st.sampled_from(QueueKind), names, st.text(NAME_CHARACTERS, max_size=31))
def test_path_survives_its_text(kind: QueueKind, queue: str, suffix: str) -> None:
    if suffix.upper() in ("DEADLETTER", "DEADXACT", "XACTONLY") or kind is QueueKind.SYSTEM:
        suffix = ""
    path = PathName("host", queue, kind, suffix)
    parsed = PathName.parse(str(path))
    assert (parsed.computer, parsed.queue, parsed.kind, parsed.suffix) == (
        "host",
        queue,
        kind,
        suffix,
    )


def test_a_name_that_is_none_is_told_as_it_was_written() -> None:
    with pytest.raises(MQError) as refused:
        PathName.parse("one\\two\\th\x1bree")
    assert refused.value.detail == "`one\\two\\th\\x1bree` is no path name"
    with pytest.raises(MQError) as refused:
        FormatName.parse("DIRECT=OS:a\\b;c;d")
    assert refused.value.detail.startswith("`OS:a\\b;c;d` is no format name")
