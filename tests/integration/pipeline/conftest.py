"""One Spark for all tests of this directory: starting it takes longer than any of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.pipeline.session import spark_session
from tests.support.pipeline.spark_cluster import QUICK_START


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    directory: Path = tmp_path_factory.mktemp("spark")
    (directory / "events").mkdir()
    session = spark_session(
        "local[2]",
        "tests",
        **{
            "spark.driver.extraJavaOptions": QUICK_START,
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.local.dir": str(directory),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": str(directory / "events"),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        },
    )
    yield session
    session.stop()
