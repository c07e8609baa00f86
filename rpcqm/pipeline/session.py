"""A Spark session with the project's data sources."""

import os
import sys
import tempfile
from typing import TYPE_CHECKING

from rpcqm.pipeline.java import require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*]"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Where spark-submit tells a program of its session."""


def spark_session(
    master: str | None = None, name: str = "rpcqm", **settings: str
) -> "SparkSession":
    """A session that knows the formats `msmq` and `msmq_capture`.

    Without a master it is what spark-submit was told, else DEFAULT_MASTER. JavaMissingError.
    """
    require_java()
    if master is None and _SUBMITTED not in os.environ:
        master = DEFAULT_MASTER
    if (master or "").startswith("local"):
        # Other machines have no business with a session that runs here only.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Workers run on the Python that has what we need.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "rpcqm-warehouse"),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.log.level": "ERROR",
    }
    for key, value in (defaults | settings).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def register(spark: "SparkSession") -> None:
    """Make the data sources known to a session."""
    from rpcqm.pipeline.capture_source import CaptureSource
    from rpcqm.pipeline.queue_source import QueueSource

    spark.dataSource.register(CaptureSource)
    spark.dataSource.register(QueueSource)
