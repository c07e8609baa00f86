"""A file, a real directory, or one over the other."""

import subprocess
import sys
from uuid import UUID

import pytest

from rpcqm.adm.directory import DirectoryContents, DirectoryUnavailableError
from rpcqm.adm.directory_object import Site
from rpcqm.service.directory_source import LaidOver

LOADED = (
    "import sys; from rpcqm.service.run import serve; "
    "print([each for each in sys.modules if each.startswith(('rpcqm.directory', 'ldap', 'dns'))])"
)


def sites(*named: tuple[int, str]) -> DirectoryContents:
    return DirectoryContents(sites=[Site(UUID(int=number), name) for number, name in named])


def test_nothing_of_a_real_directory_is_imported_without_one() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, check=True)
    assert loaded.stdout.strip() == b"[]"


def test_what_has_the_same_identifier_is_as_the_file_says() -> None:
    source = LaidOver(lambda: file, lambda: below)
    file, below = sites((1, "file")), sites((1, "below"), (2, "other"))
    assert [each.name for each in source().sites] == ["file", "other"]
    assert source() is source()
    below = sites((3, "new"))
    assert [each.name for each in source().sites] == ["file", "new"]


def test_the_file_counts_alone_until_the_directory_can_be_read() -> None:
    def below() -> DirectoryContents:
        if unread:
            raise DirectoryUnavailableError("not yet")
        return sites((2, "other"))

    unread, file = True, sites((1, "file"))
    source = LaidOver(lambda: file, below)
    assert source() is file
    unread = False
    assert len(source().sites) == 2


def test_a_file_that_cannot_be_read_is_not_passed_over() -> None:
    def file() -> DirectoryContents:
        raise DirectoryUnavailableError("no such file")

    with pytest.raises(DirectoryUnavailableError):
        LaidOver(file, DirectoryContents)()


def test_objects_are_found_by_an_index_without_regard_to_case() -> None:
    contents = sites((1, "Berlin"), (2, "PARIS"))
    assert contents.having(Site, "name", "paris") == [contents.sites[1]]
    assert contents.having(Site, "identifier", UUID(int=1)) == [contents.sites[0]]
    assert contents.having(Site, "name", "Rome") == []
