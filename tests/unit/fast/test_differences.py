"""What becomes of a difference between templates and the careful path."""

import os

import pytest

from tests.support.shadow import comparing as shadow


def test_a_difference_is_told_and_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses: list[int] = []
    monkeypatch.setattr(os, "_exit", statuses.append)
    shadow.end_process(shadow.Difference("answers", b"careful", b"templated"))
    assert statuses == [86]
    assert "templates differ from the careful path" in capsys.readouterr().err
