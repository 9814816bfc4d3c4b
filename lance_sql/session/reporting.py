"""Progress of long statements, which the user or an error of the callback can stop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lance_sql.engines.statement_run import StatementRun
from lance_sql.session.metrics import rows_so_far

if TYPE_CHECKING:
    from lance_engine.base import ProgressOption

#: Seconds between progress reports.
_INTERVAL = 0.1


@contextmanager
def reported(progress: ProgressOption, run: StatementRun) -> Iterator[None]:
    """Report a statement that runs in the block to `progress`, from a separate thread.

    If `progress` raises, `run` is cancelled, and the block raises that exception.
    """
    if not progress:
        yield
        return
    from lance_engine.base import Reporter

    reporter = Reporter(progress)
    ended = threading.Event()
    failure: list[BaseException] = []

    def watch() -> None:
        try:
            while not ended.wait(_INTERVAL):
                reporter.update(*rows_so_far(run.scans))
        except BaseException as error:
            failure.append(error)
            run.cancel()

    watcher = threading.Thread(target=watch, name="lance-sql progress", daemon=True)
    try:
        reporter.begin("query")
        watcher.start()
        yield
    except Exception:
        if failure:
            raise failure[0] from None
        raise
    finally:
        ended.set()
        if watcher.ident is not None:
            watcher.join()
    if failure:
        raise failure[0]
    reporter.update(*rows_so_far(run.scans))
    reporter.end()
