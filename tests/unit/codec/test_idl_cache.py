from pathlib import Path

from rpcqm.codec.idl.cache import kept


def test_what_was_made_is_read_again(tmp_path: Path) -> None:
    made: list[str] = []

    def make() -> str:
        made.append("once")
        return "tree"

    assert kept(tmp_path, "a", [b"source"], make) == "tree"
    assert kept(tmp_path, "a", [b"source"], make) == "tree"
    assert made == ["once"]


def test_a_changed_source_is_made_anew_and_replaces_the_old(tmp_path: Path) -> None:
    assert kept(tmp_path, "a", [b"old"], lambda: 1) == 1
    assert kept(tmp_path, "a", [b"new"], lambda: 2) == 2
    assert kept(tmp_path, "ab", [b"other"], lambda: 3) == 3
    assert len(list((tmp_path / "__pycache__").glob("a.*.tree"))) == 1
    assert len(list((tmp_path / "__pycache__").iterdir())) == 2


def test_a_damaged_copy_is_made_anew(tmp_path: Path) -> None:
    kept(tmp_path, "a", [b"source"], lambda: 1)
    (copy,) = (tmp_path / "__pycache__").iterdir()
    for damage in (b"", b"nonsense", copy.read_bytes()[:-1]):
        copy.write_bytes(damage)
        assert kept(tmp_path, "a", [b"source"], lambda: 2) == 2
        copy.write_bytes(damage)


def test_a_directory_that_cannot_be_written_is_no_obstacle() -> None:
    assert kept(Path("/proc"), "a", [b"source"], lambda: 1) == 1
