"""Commands of `rpcqm pipeline`, one after the other in one session of Spark.

spark-submit tests/support/pipeline/pipeline_programs.py COMMAND…

A command's words are separated by line feeds. Ends with 1 when one of them fails.
"""

import sys

from rpcqm.cli.main import main
from rpcqm.pipeline.session import spark_session

if __name__ == "__main__":
    spark = spark_session(name="commands")
    failed = [words for words in sys.argv[1:] if main(["pipeline", *words.split("\n")]) != 0]
    spark.stop()
    sys.exit(bool(failed))
