"""Format names of all kinds: text, QUEUE_FORMAT, and names in a UserHeader."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import (
    DistributionListName,
    FormatName,
    MulticastAddress,
    PrivateQueueFormatName,
    QueueFormat,
    SuffixType,
    direct_from_wire,
    format_names,
    from_queue_format,
    from_user_header,
    parse_format_names,
    to_destination,
    to_other_queue,
    to_queue_format,
)
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.codec.packet.user import QueueFormatType
from rpcqm.codec.types.mqvalues import FormatNameType

GUID = UUID("c626ea11-e6b6-9749-9595-9150557358d1")
OTHER = UUID("fca09e90-7890-4544-8f11-394c43cd8907")
THIRD = UUID(int=3)

# Point, text, canonical text, QUEUE_FORMAT.
NAMES: list[tuple[str, str, str, QueueFormat]] = [
    (
        "formatname-public",
        f"public={str(GUID).upper()}",
        f"PUBLIC={GUID}",
        QueueFormat(1, 0x00, GUID),
    ),
    (
        "suffix-QUEUE_SUFFIX_TYPE_JOURNAL",
        f"PUBLIC={GUID};journal",
        f"PUBLIC={GUID};JOURNAL",
        QueueFormat(1, 0x81, GUID),
    ),
    (
        "formatname-private",
        f"Private={GUID}\\4",
        f"PRIVATE={GUID}\\00000004",
        QueueFormat(2, 0x00, PrivateQueueFormatName(GUID, 4)),
    ),
    (
        "formatname-private_journal",
        f"PRIVATE={GUID}\\0000ABCD;Journal",
        f"PRIVATE={GUID}\\0000abcd;JOURNAL",
        QueueFormat(2, 0x81, PrivateQueueFormatName(GUID, 0xABCD)),
    ),
    (
        "formatname-direct_os",
        r"Direct=os:Host\orders",
        r"DIRECT=OS:Host\orders",
        QueueFormat(3, 0x00, r"OS:Host\orders"),
    ),
    (
        "formatname-direct_private",
        r"DIRECT=OS:host\private$\orders",
        r"DIRECT=OS:host\private$\orders",
        QueueFormat(3, 0x00, r"OS:host\private$\orders"),
    ),
    (
        "formatname-direct_tcp",
        r"DIRECT=TCP:127.0.0.1\PRIVATE$\q",
        r"DIRECT=TCP:127.0.0.1\PRIVATE$\q",
        QueueFormat(3, 0x00, r"TCP:127.0.0.1\PRIVATE$\q"),
    ),
    (
        "formatname-direct_tcp",
        r"DIRECT=tcp:fe80::1\q",
        r"DIRECT=TCP:fe80::1\q",
        QueueFormat(3, 0x00, r"TCP:fe80::1\q"),
    ),
    (
        "formatname-direct_http",
        "DIRECT=http://host/msmq/private$/q",
        "DIRECT=HTTP://host/msmq/private$/q",
        QueueFormat(3, 0x00, "HTTP://host/msmq/private$/q"),
    ),
    (
        "formatname-direct_http",
        r"DIRECT=HTTP://host:8080/MSMQ\PRIVATE$\q;JOURNAL",
        r"DIRECT=HTTP://host:8080/MSMQ\PRIVATE$\q;JOURNAL",
        QueueFormat(3, 0x81, r"HTTP://host:8080/MSMQ\PRIVATE$\q;JOURNAL"),
    ),
    (
        "formatname-direct_https",
        "DIRECT=https://[::1]:44/msmq/q",
        "DIRECT=HTTPS://[::1]:44/msmq/q",
        QueueFormat(3, 0x00, "HTTPS://[::1]:44/msmq/q"),
    ),
    (
        "formatname-direct_ipx",
        r"DIRECT=IPX:00000012:00a0234f7500\q",
        r"DIRECT=IPX:00000012:00a0234f7500\q",
        QueueFormat(3, 0x00, r"IPX:00000012:00a0234f7500\q"),
    ),
    (
        "formatname-direct_journal",
        r"DIRECT=OS:host\private$\q;journal",
        r"DIRECT=OS:host\private$\q;journal",
        QueueFormat(3, 0x81, r"OS:host\private$\q;journal"),
    ),
    (
        "formatname-direct_system",
        r"DIRECT=OS:host\SYSTEM$;JOURNAL",
        r"DIRECT=OS:host\SYSTEM$;JOURNAL",
        QueueFormat(3, 0x81, r"OS:host\SYSTEM$;JOURNAL"),
    ),
    (
        "formatname-direct_system",
        r"DIRECT=OS:host\system$;deadletter",
        r"DIRECT=OS:host\system$;deadletter",
        QueueFormat(3, 0x82, r"OS:host\system$;deadletter"),
    ),
    (
        "suffix-QUEUE_SUFFIX_TYPE_DEADXACT",
        r"DIRECT=OS:host\system$;DeadXact",
        r"DIRECT=OS:host\system$;DeadXact",
        QueueFormat(3, 0x83, r"OS:host\system$;DeadXact"),
    ),
    (
        "formatname-direct_subqueue",
        r"DIRECT=OS:host\private$\q;retry",
        r"DIRECT=OS:host\private$\q;retry",
        QueueFormat(8, 0x05, r"OS:host\private$\q;retry"),
    ),
    (
        "formatname-machine",
        f"MACHINE={GUID};DEADLETTER",
        f"MACHINE={GUID};DEADLETTER",
        QueueFormat(4, 0x82, GUID),
    ),
    (
        "formatname-machine",
        f"machine={GUID};deadxact",
        f"MACHINE={GUID};DEADXACT",
        QueueFormat(4, 0x83, GUID),
    ),
    (
        "formatname-connector",
        f"CONNECTOR={GUID}",
        f"CONNECTOR={GUID}",
        QueueFormat(5, 0x00, GUID),
    ),
    (
        "suffix-QUEUE_SUFFIX_TYPE_XACTONLY",
        f"CONNECTOR={GUID};xactonly",
        f"CONNECTOR={GUID};XACTONLY",
        QueueFormat(5, 0x04, GUID),
    ),
    ("formatname-dl", f"DL={GUID}", f"DL={GUID}", QueueFormat(6, 0x00, DistributionListName(GUID))),
    (
        "formatname-dl",
        f"dl={GUID}@example.org",
        f"DL={GUID}@example.org",
        QueueFormat(6, 0x00, DistributionListName(GUID, "example.org")),
    ),
    (
        "formatname-multicast",
        "multicast=234.1.1.1:8001",
        "MULTICAST=234.1.1.1:8001",
        QueueFormat(7, 0x00, MulticastAddress(0x010101EA, 8001)),
    ),
]
CASES = [
    pytest.param(text, canonical, queue_format, id=text, marks=pytest.mark.conformance(f"MQMQ-{p}"))
    for p, text, canonical, queue_format in NAMES
]
TYPE_POINTS = {
    1: "MQMQ-qft-1",
    2: "MQMQ-qft-2",
    3: "MQMQ-qft-3",
    4: "MQMQ-qft-4",
    5: "MQMQ-qft-5",
    6: "MQMQ-qft-6",
    7: "MQMQ-qft-7",
    8: "MQMQ-qft-8",
}


@pytest.mark.parametrize(("text", "canonical", "queue_format"), CASES)
def test_text_is_read_in_any_case_and_written_canonically(
    text: str, canonical: str, queue_format: QueueFormat
) -> None:
    name = FormatName.parse(text)
    assert str(name) == canonical
    assert FormatName.parse(canonical) == name
    assert name.type == queue_format.m_qft
    assert name.value == queue_format.value


@pytest.mark.conformance("MQMQ-packet-QUEUE_FORMAT")
@pytest.mark.parametrize(
    ("text", "queue_format"),
    [
        pytest.param(
            text,
            queue_format,
            id=text,
            marks=pytest.mark.conformance(TYPE_POINTS[queue_format.m_qft]),
        )
        for _, text, _, queue_format in NAMES
    ],
)
def test_name_becomes_its_queue_format_and_comes_back(text: str, queue_format: QueueFormat) -> None:
    name = FormatName.parse(text)
    assert to_queue_format(name) == queue_format
    assert from_queue_format(*queue_format) == name
    assert str(from_queue_format(*queue_format)) == str(name)


@pytest.mark.conformance("MQMQ-qft-0")
def test_unknown_name_has_no_value_and_names_no_queue() -> None:
    assert to_queue_format(None) == (0, 0, None)
    with pytest.raises(MQError) as refusal:
        from_queue_format(0, 0, None)
    assert refusal.value.status is HResult.MQ_ERROR_ILLEGAL_FORMATNAME


@pytest.mark.parametrize(
    ("kind", "member"),
    [
        (0, "QUEUE_FORMAT_TYPE_UNKNOWN"),
        (1, "QUEUE_FORMAT_TYPE_PUBLIC"),
        (2, "QUEUE_FORMAT_TYPE_PRIVATE"),
        (3, "QUEUE_FORMAT_TYPE_DIRECT"),
        (4, "QUEUE_FORMAT_TYPE_MACHINE"),
        (5, "QUEUE_FORMAT_TYPE_CONNECTOR"),
        (6, "QUEUE_FORMAT_TYPE_DL"),
        (7, "QUEUE_FORMAT_TYPE_MULTICAST"),
        (8, "QUEUE_FORMAT_TYPE_SUBQUEUE"),
    ],
)
def test_type_codes_are_those_of_the_specification(kind: int, member: str) -> None:
    assert FormatNameType(kind).name == member


_SUFFIX_NAMES = ("NONE", "JOURNAL", "DEADLETTER", "DEADXACT", "XACTONLY", "SUBQUEUE")
# [MS-MQMQ] 2.2.7: by suffix, the flag and the types it goes with.
_SUFFIX_RULES = {
    0: (0x00, {1, 2, 3, 5, 6, 7}),
    1: (0x80, {1, 2, 3, 4}),
    2: (0x80, {3, 4}),
    3: (0x80, {3, 4}),
    4: (0x00, {5}),
    5: (0x00, {8}),
}
_VALUES: dict[int, Any] = {
    1: GUID,
    2: (GUID, 7),
    4: GUID,
    5: GUID,
    6: (GUID, "d"),
    7: (0x010101EA, 1),
    8: r"OS:h\q;sub",
}


@pytest.mark.parametrize(
    "suffix",
    [
        pytest.param(
            value,
            id=name,
            marks=pytest.mark.conformance(f"MQMQ-suffix-QUEUE_SUFFIX_TYPE_{name}"),
        )
        for value, name in enumerate(_SUFFIX_NAMES)
    ],
)
@pytest.mark.parametrize("kind", range(1, 9))
def test_suffix_goes_only_with_the_kinds_and_the_flag_it_may(kind: int, suffix: int) -> None:
    flag, kinds = _SUFFIX_RULES[suffix]
    direct = r"OS:h\system$" if suffix in (2, 3) else r"OS:h\q"
    value = _VALUES.get(kind, direct)
    assert SuffixType(suffix).name == f"QUEUE_SUFFIX_TYPE_{_SUFFIX_NAMES[suffix]}"
    if kind in kinds:
        name = from_queue_format(kind, suffix | flag, value)
        assert (name.type, name.suffix) == (kind, suffix)
        assert to_queue_format(name).m_suffix_and_flags == suffix | flag
    else:
        with pytest.raises(MQError):
            from_queue_format(kind, suffix | flag, value)
    if suffix != 4:
        with pytest.raises(MQError):
            from_queue_format(kind, suffix | (flag ^ 0x80), value)


@pytest.mark.parametrize(
    ("kind", "suffix", "value"),
    [
        (9, 0, GUID),
        (1, 6, GUID),
        (1, 0x10, GUID),
        (1, 0, "text"),
        (1, 0, None),
        (2, 0, GUID),
        (3, 0, None),
        (3, 0, "no protocol"),
        (3, 0x82, r"OS:h\system$;DEADXACT"),
        (8, 5, r"OS:h\q"),
    ],
)
def test_queue_format_that_contradicts_itself_is_refused(
    kind: int, suffix: int, value: Any
) -> None:
    with pytest.raises(MQError) as refusal:
        from_queue_format(kind, suffix, value)
    assert refusal.value.status is HResult.MQ_ERROR_ILLEGAL_FORMATNAME


def test_direct_string_may_leave_its_suffix_to_the_nibble() -> None:
    assert str(from_queue_format(3, 0x81, r"OS:h\q")) == r"DIRECT=OS:h\q;JOURNAL"
    assert str(from_queue_format(3, 0x83, r"OS:h\SYSTEM$")) == r"DIRECT=OS:h\SYSTEM$;DEADXACT"


@pytest.mark.conformance("MQMQ-qft-4")
def test_machine_without_suffix_has_no_queue_format() -> None:
    name = FormatName.parse(f"MACHINE={GUID}")
    with pytest.raises(MQError):
        to_queue_format(name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "DIRECT",
        "DIRECT=",
        "QUEUE=x",
        r"DIRECT=host\q",
        r"DIRECT=FTP:host\q",
        r"DIRECT=OS:host",
        "DIRECT=OS:host\\",
        r"DIRECT=OS:\q",
        r"DIRECT=OS:host\a\b",
        r"DIRECT=OS:host\SYSTEM$;other",
        r"DIRECT=OS:host\q;DEADLETTER",
        r"DIRECT=OS:host\q;" + "s" * 32,
        r"DIRECT=TCP:host\q",
        r"DIRECT=TCP:1.2.3\q",
        r"DIRECT=IPX:zz\q",
        "DIRECT=HTTP:host/msmq/q",
        "DIRECT=HTTP://host/other/q",
        "DIRECT=HTTP://host:port/msmq/q",
        f"PUBLIC={{{GUID}}}",
        f"PUBLIC={GUID};DEADLETTER",
        "PUBLIC=123",
        f"PRIVATE={GUID}",
        f"PRIVATE={GUID}\\",
        f"PRIVATE={GUID}\\123456789",
        f"PRIVATE={GUID}\\1;sub",
        f"CONNECTOR={GUID};JOURNAL",
        f"MACHINE={GUID};XACTONLY",
        f"DL={GUID}@",
        f"DL={GUID}@a b",
        "MULTICAST=223.1.1.1:80",
        "MULTICAST=240.0.0.1:80",
        "MULTICAST=234.1.1.1",
        "MULTICAST=234.1.1.1:65536",
        "MULTICAST=234.1.1.1:080",
        "D\u0131RECT=OS:host\\q",
        "DIRECT=O\u017f:host\\q",
        "DIRECT=OS:host\\\u017fystem$;JOURNAL",
        "DIRECT=HTTP://host/m\u017fmq/q",
        "DIRECT=HTTP://host:65536/msmq/q",
        "DIRECT=HTTP://user@host/msmq/q",
        "DIRECT=HTTP://ho%73t/msmq/q",
        "DIRECT=HTTP://host#/msmq/q",
        "DIRECT=HTTP://[::1/msmq/q",
        "DIRECT=HTTP://[:::1]/msmq/q",
        "DIRECT=HTTP://[192.0.2.1]/msmq/q",
        "DIRECT=HTTP://host/msmq",
        "DIRECT=HTTP://host/msmq//q",
        "DIRECT=HTTP://host/msmq/../q",
        "DIRECT=HTTP://host/msmq/private$/..",
        "DIRECT=HTTP://host/msmq/private$/%2E%2e",
        "DIRECT=HTTP://host/msmq/private$/..%2f..%2fetc",
        "DIRECT=HTTP://host/msmq/private$/q/../r",
        "DIRECT=HTTP://host/msmq/private$/a%5Cb",
        "DIRECT=HTTP://host/msmq/private$/q%3Bjournal",
        "DIRECT=HTTP://host/msmq/private$/q%00",
        "DIRECT=HTTP://host/msmq/private$/q%0d%0aHost:%20x",
        "DIRECT=HTTP://host/msmq/private$/q%zz",
        "DIRECT=HTTP://host/msmq/private$/q%4",
        "DIRECT=HTTP://host/msmq/private$/q%ff",
        "DIRECT=HTTP://host/msmq/private$/q%ed%a0%80",
        "DIRECT=HTTP://host/msmq/private$/q?a b",
        "DIRECT=HTTP://host/msmq/private$/q?a\r\nb",
        "DIRECT=HTTP://host/msmq/private$/" + "%41" * 125,
    ],
)
def test_text_that_is_no_format_name_is_refused(text: str) -> None:
    with pytest.raises(MQError) as refusal:
        FormatName.parse(text)
    assert refusal.value.status is HResult.MQ_ERROR_ILLEGAL_FORMATNAME


@pytest.mark.conformance("MQMQ-packet-MULTICAST_ID")
@pytest.mark.parametrize("dotted", ["224.0.0.0", "239.255.255.255"])
def test_multicast_group_is_four_bytes_in_dotted_order_and_a_port(dotted: str) -> None:
    value = FormatName.parse(f"MULTICAST={dotted}:65535").value
    assert isinstance(value, MulticastAddress)
    assert ".".join(map(str, value.address.to_bytes(4, "little"))) == dotted
    assert value.port == 65535


@pytest.mark.conformance("MQMQ-packet-OBJECTID")
def test_private_name_is_an_object_identifier() -> None:
    value = FormatName.parse(f"PRIVATE={GUID}\\ffffffff").value
    assert value == PrivateQueueFormatName(GUID, 0xFFFFFFFF)
    assert FormatName.private(GUID, 15) == FormatName.parse(f"PRIVATE={GUID}\\F")


@pytest.mark.conformance("MQMQ-packet-DL_ID")
def test_list_name_is_a_guid_and_a_domain() -> None:
    assert FormatName.parse(f"DL={GUID}@d").value == DistributionListName(GUID, "d")


def test_direct_name_falls_apart_into_its_parts() -> None:
    name = FormatName.parse("DIRECT=HTTPS://host/msmq/private$/q;sub").direct_name
    assert (name.protocol, name.host, name.port) == ("HTTPS", "host", 443)
    assert (name.kind, name.queue, name.suffix) == (QueueKind.PRIVATE, "q", "sub")
    assert FormatName.parse("DIRECT=HTTP://host:/msmq/q").direct_name.port == 80
    assert FormatName.parse(r"DIRECT=TCP:::1\q").direct_name.port is None


@pytest.mark.parametrize(
    ("text", "queue", "query"),
    [
        ("HTTP://host/msmq/private$/b%C3%BCro%20q", "b\u00fcro q", ""),
        ("HTTP://host/msmq/private%24/b\u00fcro q", "b\u00fcro q", ""),
        ("HTTPS://[2001:db8::1]:8443/msmq/private$/a%2Fb", "a/b", ""),
        ("HTTP://host/msmq/private$/50%25", "50%", ""),
        ("HTTP://host/msmq/private$/..a", "..a", ""),
        ("HTTP://host/msmq/private$/q?SenderStream=XRntV", "q", "?SenderStream=XRntV"),
        ("HTTP://host/msmq/private$/" + "%41" * 124, "A" * 124, ""),
    ],
)
def test_the_queue_of_a_url_is_read_without_its_percent_encoding(
    text: str, queue: str, query: str
) -> None:
    name = FormatName.direct(text)
    direct = name.direct_name
    assert (direct.kind, direct.queue, direct.query) == (QueueKind.PRIVATE, queue, query)
    assert str(name) == f"DIRECT={text}"
    assert name.is_http
    assert name.path_name.queue == queue


def test_a_url_is_compared_without_regard_to_case_but_in_its_query() -> None:
    name = FormatName.direct("HTTP://host/msmq/private$/q?Stream=Ab")
    assert name == FormatName.direct("http://HOST/MSMQ\\PRIVATE$\\Q?Stream=Ab")
    assert name != FormatName.direct("HTTP://host/msmq/private$/q?Stream=aB")
    assert FormatName.direct(r"OS:host\q?A") == FormatName.direct(r"OS:host\q?a")


def test_direct_name_and_path_name_turn_into_each_other() -> None:
    path = PathName.parse(r"host\private$\orders;retry")
    name = FormatName.of_path(path)
    assert str(name) == r"DIRECT=OS:host\private$\orders;retry"
    assert name.path_name == path
    with pytest.raises(MQError):
        _ = FormatName.private(GUID, 1).path_name


def test_names_are_equal_without_regard_to_case() -> None:
    one = FormatName.parse(r"DIRECT=OS:HOST\PRIVATE$\Q")
    assert one == FormatName.parse(r"direct=os:host\private$\q")
    assert hash(one) == hash(FormatName.parse(r"direct=os:host\private$\q"))
    assert one != FormatName.parse(r"DIRECT=OS:HOST\Q")
    assert one != str(one)
    assert FormatName.parse(f"DL={GUID}@A") == FormatName.parse(f"DL={GUID}@a")
    assert FormatName.parse(f"PUBLIC={GUID}") != FormatName.parse(f"PUBLIC={GUID};JOURNAL")


def test_read_only_queues_are_journals_and_dead_letter_queues() -> None:
    assert FormatName.parse(r"DIRECT=OS:h\q;JOURNAL").is_read_only
    assert FormatName.parse(f"MACHINE={GUID};DEADXACT").is_read_only
    assert not FormatName.parse(r"DIRECT=OS:h\q;sub").is_read_only


@pytest.mark.conformance("MQMQ-formatname-multiple_element")
def test_several_names_are_joined_by_commas() -> None:
    text = rf"DIRECT=OS:a\q,PUBLIC={GUID},DL={GUID}@d,MULTICAST=234.1.1.1:1,PRIVATE={GUID}\1"
    names = parse_format_names(text)
    assert [name.type for name in names] == [3, 1, 6, 7, 2]
    assert format_names(names) == text.replace("\\1", "\\00000001")
    assert parse_format_names(r"DIRECT=OS:a\q") == (FormatName.parse(r"DIRECT=OS:a\q"),)
    assert len(parse_format_names(f"DL={GUID}@one,two")) == 1


@pytest.mark.conformance("MQMQ-formatname-multiple_element")
@pytest.mark.parametrize(
    "text",
    [
        r"DIRECT=OS:a\q,DIRECT=OS:b\q;JOURNAL",
        rf"DIRECT=OS:a\q,MACHINE={GUID};DEADLETTER",
        rf"DIRECT=OS:a\q,MACHINE={GUID}",
        rf"PRIVATE={GUID}\1;JOURNAL,DIRECT=OS:a\q",
        r"DIRECT=OS:a\q,",
        r",DIRECT=OS:a\q",
        r"DIRECT=OS:a\q,,DIRECT=OS:b\q",
    ],
)
def test_list_with_a_read_only_or_empty_element_is_refused(text: str) -> None:
    with pytest.raises(MQError) as refusal:
        parse_format_names(text)
    assert refusal.value.status is HResult.MQ_ERROR_ILLEGAL_FORMATNAME


def test_destination_in_a_user_header() -> None:
    assert to_destination(FormatName.parse(r"DIRECT=OS:a\q")) == (7, r"OS:a\q", None)
    assert to_destination(FormatName.private(GUID, 4)) == (3, 4, GUID)
    assert to_destination(FormatName.parse(f"PUBLIC={GUID}")) == (5, GUID, None)
    with pytest.raises(MQError) as refusal:
        to_destination(FormatName.parse("MULTICAST=234.1.1.1:1"))
    assert refusal.value.status is HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION


@pytest.mark.parametrize(
    ("name", "kind", "wire"),
    [
        (None, QueueFormatType.NONE, None),
        (FormatName.private(GUID, 5), QueueFormatType.PRIVATE_ON_SOURCE, 5),
        (FormatName.private(OTHER, 5), QueueFormatType.PRIVATE_ON_DESTINATION, 5),
        (FormatName.private(THIRD, 5), QueueFormatType.PRIVATE_ON_OTHER, (THIRD, 5)),
        (FormatName.parse(f"PUBLIC={GUID}"), QueueFormatType.PUBLIC, GUID),
        (FormatName.parse(r"DIRECT=OS:a\q"), QueueFormatType.DIRECT, r"OS:a\q"),
    ],
)
def test_administration_queue_in_a_user_header(
    name: FormatName | None, kind: QueueFormatType, wire: Any
) -> None:
    assert to_other_queue(name, GUID, OTHER) == (kind, wire)
    assert from_user_header(kind, wire, GUID, OTHER) == name


def test_response_queue_that_refers_to_the_administration_queue() -> None:
    admin = FormatName.private(THIRD, 9)
    assert from_user_header(1, None, GUID, OTHER, admin) is admin
    assert from_user_header(4, 8, GUID, OTHER, admin) == FormatName.private(THIRD, 8)
    direct = FormatName.parse(r"DIRECT=OS:a\q")
    assert from_user_header(4, 8, GUID, OTHER, direct) == FormatName.private(UUID(int=0), 8)


def test_direct_text_of_a_packet_is_kept_though_it_breaks_the_grammar() -> None:
    assert str(direct_from_wire("OS:host\\a,b")) == "DIRECT=OS:host\\a,b"
    assert direct_from_wire(r"OS:a\q") == FormatName.parse(r"DIRECT=OS:a\q")


@given(st.text(max_size=60), st.sampled_from(["", "DIRECT=", "DIRECT=OS:", "PRIVATE=", "DL="]))
def test_any_text_is_read_or_refused(text: str, prefix: str) -> None:
    try:
        names = parse_format_names(prefix + text)
    except MQError as refusal:
        status = refusal.status
    else:
        status = HResult.MQ_ERROR_ILLEGAL_FORMATNAME
        assert parse_format_names(format_names(names)) == names
    assert status is HResult.MQ_ERROR_ILLEGAL_FORMATNAME
