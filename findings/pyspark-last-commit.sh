#!/usr/bin/env bash
# Whether Spark tells a Python stream source that the last batch of `availableNow` is kept.
#
# Versions    pyspark 4.3.0, pyarrow 26.0.1, Java 17 or newer, Python 3.11
# Guess       A query with trigger(availableNow=True) that ends well has called
#             DataSourceStreamReader.commit with the offset of each batch that it has written.
# Behaviour   It calls commit for a batch when it plans the batch behind it. So a query of one batch
#             calls it never, and the next run, which starts at the checkpoint, does not make up for
#             that. With a trigger by time the same: of two batches the first is committed.
# Hurt        Whoever empties a queue into files each night, by a source that removes messages in
#             commit: the rows are in Parquet, the job says success, and every message is still in
#             the queue, until its quota is full. The job has to remove what the checkpoint names.
# Seen        one batch, then a run without new rows: 3 rows, committed []
#             two batches by time:                    6 rows, committed [3]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command -v java >/dev/null || { echo "needs Java 17 or newer" >&2; exit 2; }
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyspark==4.3.0 pyarrow==26.0.1
cat >"$folder/try.py" <<'PYTHON'
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

folder = Path(sys.argv[1])
calls, newest = folder / "calls", folder / "newest"


class Rows(InputPartition):
    def __init__(self, begin, end):
        self.begin, self.end = begin, end


class Reader(DataSourceStreamReader):
    def initialOffset(self):
        return {"n": 0}

    def latestOffset(self):
        return {"n": int(newest.read_text())}

    def partitions(self, start, end):
        return [Rows(start["n"], end["n"])]

    def read(self, rows):
        return ((n,) for n in range(rows.begin, rows.end))

    def commit(self, end):
        with calls.open("a") as file:
            file.write(f"{end['n']}\n")


class Numbers(DataSource):
    @classmethod
    def name(cls):
        return "numbers"

    def schema(self):
        return "n int"

    def streamReader(self, schema):
        return Reader()


spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
spark.dataSource.register(Numbers)


def started(name, **trigger):
    writer = spark.readStream.format("numbers").load().writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(folder / f"{name}.checkpoint"))
    return writer.trigger(**trigger).start(str(folder / name))


def told(name):
    rows = spark.read.parquet(str(folder / name)).count()
    return rows, [int(line) for line in calls.read_text().split()]


calls.write_text("")
newest.write_text("3")
for _ in range(2):
    started("once", availableNow=True).awaitTermination()
once = told("once")

calls.write_text("")
query = started("follow", processingTime="0 seconds")
query.processAllAvailable()
newest.write_text("6")
query.processAllAvailable()
query.stop()
follow = told("follow")
spark.stop()

print(f"one batch, then a run without new rows: {once[0]} rows, committed {once[1]}")
print(f"two batches by time:                    {follow[0]} rows, committed {follow[1]}")
sys.exit(once != (3, []) or follow != (6, [3]))
PYTHON
cd "$folder"
PYSPARK_PYTHON=$folder/venv/bin/python "$folder/venv/bin/python" try.py "$folder" 2>"$folder/errors" || {
    tail -5 "$folder/errors" >&2
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
