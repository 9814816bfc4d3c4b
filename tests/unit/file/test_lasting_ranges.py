"""What several threads want of a remote file at the same time is fetched once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest
from lance_engine.file.lasting import LastingRanges

Range = tuple[int, int]
Fetch = Callable[[Sequence[Range]], None]


class Reader:
    """A thread that wants ranges, and what it fetched itself."""

    def __init__(self, file: LastingRanges, wanted: list[Range], fetch: Fetch) -> None:
        self.fetched: list[Range] = []
        self.error: BaseException | None = None
        self.began = threading.Event()

        def noted(ranges: Sequence[Range]) -> None:
            self.fetched += ranges
            self.began.set()
            fetch(ranges)

        def run() -> None:
            try:
                file.fetch(wanted, noted)
            except OSError as error:
                self.error = error

        self.thread = threading.Thread(target=run)
        self.thread.start()


@pytest.fixture
def file() -> LastingRanges:
    return LastingRanges("file", 1000)


def added(file: LastingRanges) -> Fetch:
    def fetch(ranges: Sequence[Range]) -> None:
        for offset, length in ranges:
            file.source.share(offset, bytes(length))

    return fetch


def test_others_wait_for_what_is_under_way(file: LastingRanges) -> None:
    answered = threading.Event()

    def slow(ranges: Sequence[Range]) -> None:
        assert answered.wait(60)
        added(file)(ranges)

    first = Reader(file, [(0, 10), (100, 50)], slow)
    assert first.began.wait(60)
    second = Reader(file, [(110, 20), (500, 10)], added(file))
    assert second.began.wait(60)
    third = Reader(file, [(0, 10)], added(file))
    answered.set()
    for reader in (first, second, third):
        reader.thread.join(60)
    assert first.fetched == [(0, 10), (100, 50)]
    assert second.fetched == [(500, 10)]
    assert third.fetched == []
    assert all(file.source.holds(*span) for span in [(0, 10), (100, 50), (500, 10)])


def test_who_waited_tries_again_after_a_failure(file: LastingRanges) -> None:
    failing = threading.Event()

    def fail(ranges: Sequence[Range]) -> None:
        assert failing.wait(60)
        raise OSError("the store is away")

    first = Reader(file, [(0, 10)], fail)
    assert first.began.wait(60)
    second = Reader(file, [(0, 10)], added(file))
    failing.set()
    first.thread.join(60)
    second.thread.join(60)
    assert str(first.error) == "the store is away"
    assert second.error is None
    assert second.fetched == [(0, 10)]
    file.fetch([(0, 10)], fail)  # held: nothing is fetched


def test_a_forked_process_does_not_wait(file: LastingRanges, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(ranges: Sequence[Range]) -> None:
        monkeypatch.setattr("os.getpid", lambda: -1)  # as if the process were forked here
        file.fetch(ranges, added(file))

    file.fetch([(0, 10)], fetch)
    assert file.source.holds(0, 10)
