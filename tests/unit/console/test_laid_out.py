"""Bodies of one line, in lines."""

import json

import pytest

from rpcqm.console.bodies import LONGEST_BODY, shown_body
from rpcqm.console.charts import line, round_top
from rpcqm.console.laid_out import laid_out

XML = (
    '<?xml version="1.0"?><order id="a>b"><item n=\'1\'>one</item><empty/><none></none>'
    "<!-- a > b --><deep><more>two<b>bold</b> end</more><![CDATA[<x>]]></deep></order>"
)
JSON = '{"a":[1,2.50,{}],"b":{"c":"x,{}\\"y"},"e":[],"n":null}'


def test_xml_has_a_line_for_each_element() -> None:
    assert laid_out(XML, 1000) == "\n".join(
        (
            '<?xml version="1.0"?>',
            '<order id="a>b">',
            "  <item n='1'>one</item>",
            "  <empty/>",
            "  <none></none>",
            "  <!-- a > b -->",
            "  <deep>",
            "    <more>two<b>bold</b> end</more><![CDATA[<x>]]>",
            "  </deep>",
            "</order>",
        )
    )


def test_json_has_a_line_for_each_member_and_keeps_how_it_is_written() -> None:
    found = laid_out(JSON, 1000)
    assert found == "\n".join(
        (
            "{",
            '  "a": [',
            "    1,",
            "    2.50,",
            "    {}",
            "  ],",
            '  "b": {',
            '    "c": "x,{}\\"y"',
            "  },",
            '  "e": [],',
            '  "n": null',
            "}",
        )
    )
    assert json.loads(found) == json.loads(JSON)


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "",
        "<",
        "<a",
        '<a b="',
        "<!-- ",
        "{",
        "[1,]",
        "{\n}",
        "<a>\n<b/></a>",
        "[" * 100_000,
        "[]",
    ],
)
def test_what_is_no_document_of_one_line_stays_as_it_is(text: str) -> None:
    assert laid_out(text, LONGEST_BODY) is None


@pytest.mark.parametrize("text", ["<a>" * 30_000, "<a b='" * 30_000, "[" * 900 + "]" * 900])
def test_what_would_be_longer_than_a_page_shows_stays(text: str) -> None:
    found = laid_out(text, LONGEST_BODY)
    assert found is None or len(found) <= LONGEST_BODY


def test_only_blanks_are_added() -> None:
    for text in (XML, JSON):
        found = laid_out(text, 1000)
        assert found is not None
        assert "".join(found.split()) == "".join(text.split())
        assert laid_out(text, len(text)) is None


def test_a_page_shows_it_and_what_was_sent() -> None:
    shown = shown_body(JSON.encode(), 0)
    assert shown.text.startswith('{\n  "a": [')
    assert shown.original == JSON
    plain = shown_body(b"plain", 0)
    assert (plain.text, plain.original) == ("plain", "")


def test_a_picture_has_a_scale_of_round_numbers() -> None:
    assert [round_top(each) for each in (0, 0.3, 1, 1.1, 4, 7, 10, 11)] == [
        *(1.0, 0.4, 1, 2, 4, 8, 10, 20)
    ]
    picture = line([0, 7])
    assert picture is not None
    assert [mark.value for mark in picture.marks] == [8, 4]
    assert picture.points.endswith("600.0,26.0")
