"""Which files the paths of captures stand for, and which queue an offset is about."""

from pathlib import Path

import pytest

from rpcqm.pipeline.errors import CheckpointError, SourceError
from rpcqm.pipeline.paths import expand, local_path, separated
from rpcqm.pipeline.queue_offsets import Origin


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a", "b1", "b2", "c, d", "e f", "g%20h", "[i]", "s3a:x", "k/l"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b1", "a b1"),
        ("{a,b*},k", "a b1 b2 k/l"),
        ("b?,b1", "b1 b2"),
        ("{{a,b1},b2}", "a b1 b2"),
        ("c, d", "c,_d"),
        ("[i]", "[i]"),
        ("s3a:x", "s3a:x"),
        ("file:HERE/a", "a"),
        ("FILE://HERE/b*", "b1 b2"),
        ("file://localhostHERE/e f", "e_f"),
        ("file://HERE/e%20f", "e_f"),
        ("file://HERE/g%20h", "g%20h"),
    ],
)
def test_paths_stand_for_the_files_that_are_there(directory: Path, text: str, names: str) -> None:
    found = expand(separated(text.replace("HERE", str(directory))))
    relative = [str(directory.joinpath(path).relative_to(directory)) for path in found]
    assert " ".join(sorted(name.replace(" ", "_") for name in relative)) == names


@pytest.mark.parametrize(
    "text", ["s3a://b/a", "hdfs:/a", "dbfs:/a", "abfss://c@d/a", "file://server/a"]
)
def test_paths_elsewhere_are_refused(text: str) -> None:
    with pytest.raises(SourceError, match="is not on a file system of this machine"):
        local_path(text)


@pytest.mark.parametrize("text", ["none", "n*", "{a", "a,none", "file:///none"])
def test_a_path_that_is_not_there_is_refused(directory: Path, text: str) -> None:
    with pytest.raises(SourceError, match="is not there"):
        expand(separated(text))


def test_an_offset_of_an_earlier_version_names_no_queue() -> None:
    origin = Origin("", "/run/rpcqm.sock", r"private$\q")
    origin.check({"batch": 1, "identifiers": "1-3"})
    origin.check(origin.offset(1, [1, 2, 3]))
    for other in (
        Origin("", "/run/other.sock", r"private$\q"),
        Origin("", "/run/rpcqm.sock", r"private$\other"),
    ):
        with pytest.raises(CheckpointError, match=r"The checkpoint is that of the queue private"):
            other.check(origin.offset(1, []))
