"""What Prometheus reads of a queue manager with a real directory."""

import re
from pathlib import Path

from rpcqm.operations import metric_families
from rpcqm.operations.exposition import Writer
from rpcqm.operations.metrics import DirectoryFigures, MetricsSettings
from rpcqm.operations.operations import Operations
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR


def test_a_queue_manager_with_a_real_directory_tells_how_its_reading_goes(
    qm: RunningQueueManager, operations: Operations
) -> None:
    def lines() -> str:
        pieces = qm.done(operations.metrics.told(ADMINISTRATOR, Writer(), MetricsSettings()))
        return "".join(pieces)

    assert "directory" not in lines()
    figures = DirectoryFigures(True, 12.5, 0.25, 3, 2, 7, 1, {"Queue": 4})
    operations.metrics.directory = lambda: figures
    told = lines()
    assert "rpcqm_directory_age_seconds 12.5" in told
    assert "rpcqm_directory_misses_total 7" in told
    assert 'rpcqm_directory_objects{kind="Queue"} 4' in told


def test_the_page_has_the_names_of_a_directory() -> None:
    page = (Path(__file__).parents[3] / "docs/metrics.md").read_text("utf-8")
    rows = set(re.findall(r"(?m)^\| `(rpcqm_directory_\w+?)(?:_total)?` \| (\w+) \|", page))
    assert rows == {(each.name, each.kind) for each in metric_families.OF_DIRECTORIES}
