#!/usr/bin/env bash
# Whether SimpleDataSourceStreamReader.read may return a generator.
#
# Versions    pyspark 4.3.0, pyarrow 26.0.1, Java 17 or newer, Python 3.11
# Guess       It may return any iterator of rows, as its type says: Tuple[Iterator[Tuple], dict].
# Behaviour   Spark keeps the iterator and copies it with copy.copy before it reads it, so that a batch
#             can be planned again. A generator cannot be copied: the query fails at its first batch.
# Hurt        Whoever writes the source of a queue or a socket in the natural way, with `yield`: all
#             works in a test that calls read(), and under Spark the stream ends with an error that
#             speaks of pickling and names nothing of the program. The rows have been taken by then.
# Seen        an iterator of a list: 3 rows
#             a generator: TypeError: cannot pickle 'generator' object
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command -v java >/dev/null || { echo "needs Java 17 or newer" >&2; exit 2; }
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyspark==4.3.0 pyarrow==26.0.1
cat >"$folder/try.py" <<'PYTHON'
import re
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

folder = Path(sys.argv[1])
LAST = 3


class Reader(SimpleDataSourceStreamReader):
    def __init__(self, kind):
        self.kind = kind

    def initialOffset(self):
        return {"n": 0}

    def read(self, start):
        rows = ((n,) for n in range(start["n"], LAST))
        return (iter(list(rows)) if self.kind == "list" else rows), {"n": LAST}

    def readBetweenOffsets(self, start, end):
        return iter([(n,) for n in range(start["n"], end["n"])])

    def commit(self, end):
        pass


class Numbers(DataSource):
    @classmethod
    def name(cls):
        return "numbers"

    def schema(self):
        return "n int"

    def simpleStreamReader(self, schema):
        return Reader(self.options["kind"])


spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
spark.dataSource.register(Numbers)


def told(kind):
    stream = spark.readStream.format("numbers").option("kind", kind).load().writeStream
    checkpoint = str(folder / f"{kind}.checkpoint")
    query = stream.format("parquet").option("checkpointLocation", checkpoint)
    query = query.start(str(folder / kind))
    try:
        query.processAllAvailable()
    except Exception as error:
        found = re.search(r"\w+Error: cannot [^\n]*", str(error))
        return found[0] if found else type(error).__name__
    finally:
        query.stop()
    return f"{spark.read.parquet(str(folder / kind)).count()} rows"


listed, generated = told("list"), told("generator")
spark.stop()
print(f"an iterator of a list: {listed}")
print(f"a generator: {generated}")
sys.exit((listed, generated) != ("3 rows", "TypeError: cannot pickle 'generator' object"))
PYTHON
cd "$folder"
PYSPARK_PYTHON=$folder/venv/bin/python "$folder/venv/bin/python" try.py "$folder" 2>"$folder/errors" || {
    tail -5 "$folder/errors" >&2
    echo "not as it was seen" >&2
    exit 1
}
echo "as it was seen"
