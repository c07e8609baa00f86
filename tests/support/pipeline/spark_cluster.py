"""A Spark standalone cluster on loopback: a master and two workers of the pyspark package."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

import pyspark

from tests.support.ports import reserved_port
from tests.support.waiting import PATIENCE

SPARK = Path(pyspark.__file__).parent
WORKERS = 2
HOST = "127.0.0.1"

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for programs that are over before its second compiler pays."""
_SETTINGS = f"""\
spark.driver.defaultJavaOptions {QUICK_START}
spark.executor.defaultJavaOptions {QUICK_START}
spark.sql.codegen.wholeStage false
spark.driver.host {HOST}
spark.driver.bindAddress {HOST}
spark.executor.memory 512m
spark.cores.max {WORKERS}
spark.sql.shuffle.partitions 2
spark.default.parallelism 2
"""


class SparkCluster:
    """Runs as long as the ``with`` block lasts; `environment` is what its clients need."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self.environment = {
            **os.environ,
            "SPARK_CONF_DIR": str(directory / "conf"),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_DIRS": str(directory / "local"),
        }

    def __enter__(self) -> Self:
        (self.directory / "conf").mkdir(parents=True)
        (self.directory / "conf" / "spark-defaults.conf").write_text(_SETTINGS)
        port, web_port = reserved_port(), reserved_port()
        self.master = f"spark://{HOST}:{port}"
        self._status = f"http://{HOST}:{web_port}/json/"
        try:
            self._start("master.Master", "--port", port, "--webui-port", web_port)
            self._await(self._serves)
            for number in range(WORKERS):
                place = ("--work-dir", self.directory / f"worker-{number}", "--webui-port", 0)
                self._start("worker.Worker", "--cores", 1, "--memory", "600m", *place, self.master)
            self._await(lambda: self.status()["aliveworkers"] == WORKERS)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def status(self) -> dict[str, Any]:
        """What the master tells of workers and applications."""
        with urllib.request.urlopen(self._status, timeout=PATIENCE) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def _serves(self) -> bool:
        """Whether the master answers; its pages come before what they tell (ValueError)."""
        try:
            self.status()
        except (OSError, ValueError):
            return False
        return True

    def _start(self, what: str, *words: object) -> None:
        command = [SPARK / "bin" / "spark-class", f"org.apache.spark.deploy.{what}", "--host", HOST]
        log = (self.directory / f"log-{len(self._processes)}").open("wb")
        with log:
            self._processes.append(
                subprocess.Popen(
                    [*map(str, (*command, *words))], env=self.environment, stdout=log, stderr=log
                )
            )

    def _await(self, condition: Any) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            ended = [each for each in self._processes if each.poll() is not None]
            if ended or time.monotonic() > end:
                logs = (each.read_text()[-2000:] for each in self.directory.glob("log-*"))
                raise AssertionError("the cluster does not start:\n" + "\n".join(logs))
            time.sleep(0.1)

    def _stop(self) -> None:
        for each in reversed(self._processes):
            each.terminate()
        for each in self._processes:
            each.wait()
