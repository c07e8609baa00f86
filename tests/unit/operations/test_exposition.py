"""The text that Prometheus reads, by its own parsers."""

from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rpcqm.base.metrics import Histogram
from rpcqm.operations.exposition import MESSAGES, NANOSECONDS, Writer, labels
from rpcqm.operations.metric_families import COUNTER, GAUGE, HISTOGRAM, Family

QUEUE = Family("rpcqm_queue_messages", GAUGE, "Messages in a queue", ("queue",))
HOSTILE = ['a"b', "a\\b", "a\nb", '"} 1\nfoo{x="', "\ud800", "\ud801", "größe", "", " # x", "a\\nb"]


def read_again(text: str) -> list[tuple[str, dict[str, str], float]]:
    return [
        (sample.name, dict(sample.labels), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def test_names_of_queues_stay_values_of_labels_whatever_is_in_them() -> None:
    places = [labels(QUEUE, name) for name in HOSTILE]
    told = read_again("".join(Writer().series(QUEUE, places, range(len(HOSTILE)))))
    assert [value for _, _, value in told] == [*range(len(HOSTILE))]
    assert {name for name, _, _ in told} == {QUEUE.name}
    names = [found["queue"] for _, found, _ in told]
    whole = [name for name in HOSTILE if "\ud800" not in name and "\ud801" not in name]
    assert [name for name in names if "ud80" not in name] == whole
    assert len(set(names)) == len(HOSTILE)


@pytest.mark.parametrize(("open_metrics", "name"), [(False, "c_total"), (True, "c")])
def test_counters_are_named_as_the_format_wants(open_metrics: bool, name: str) -> None:
    writer = Writer(open_metrics)
    text = "".join(writer.series(Family("c", COUNTER, "What"), ("",), (3,)))
    assert f"# TYPE {name} counter\n" in text
    assert text.endswith("\nc_total 3\n")


def histogram_of(*values: int) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


def written(found: Histogram, bits: tuple[int, ...], unit: float) -> Iterator[tuple[str, float]]:
    family = Family("h", HISTOGRAM, "How long", ("a",))
    for name, told, value in read_again(
        "".join(Writer().histograms(family, [(("x",), found)], bits, unit))
    ):
        yield told.get("le", name), value


def test_each_value_is_in_every_bucket_that_it_is_below() -> None:
    nanosecond = 1e-9
    found = histogram_of(0, 16_383, 16_384, 1 << 20, 1 << 36, 5 * 10**12)
    told = dict(written(found, NANOSECONDS, nanosecond))
    assert told["1.6384e-05"] == 2
    assert told["6.5536e-05"] == 3
    assert told["0.004194304"] == 4
    assert told["68.719476736"] == 4
    assert told["+Inf"] == told["h_count"] == 6
    assert told["h_sum"] == pytest.approx(5068.72, abs=0.01)


def test_numbers_of_messages_have_whole_bounds() -> None:
    told = dict(written(histogram_of(0, 1, 3, 4, 5000), MESSAGES, 1.0))
    assert (told["0.0"], told["3.0"], told["15.0"], told["4095.0"]) == (1, 3, 4, 4)
    assert (told["h_sum"], told["h_count"]) == (5008, 5)
