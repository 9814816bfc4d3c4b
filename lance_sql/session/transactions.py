"""The transactions of a session, for datasets together with the tables of its engine."""

from __future__ import annotations

from collections.abc import Callable

from lance_engine.errors import LanceError

from lance_sql.catalog.catalog import Catalog
from lance_sql.catalog.transaction import Transaction, already_committed
from lance_sql.engines.base import Engine
from lance_sql.errors import SqlError


class SessionTransactions:
    """Begins and ends the transactions of `catalog` and `engine` together.

    `settle` is called before a transaction ends: it runs planned queries whose datasets are no longer
    available afterwards. `unsettle` is called after it, when names are redefined.
    """

    def __init__(
        self, catalog: Catalog, engine: Engine, settle: Callable[[], None], unsettle: Callable[[], None]
    ) -> None:
        self._catalog = catalog
        self._engine = engine
        self._settle = settle
        self._unsettle = unsettle
        self._begun: Transaction | None = None

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open."""
        return self._begun is not None and self._catalog.transaction is self._begun

    def begin(self, *, serializable: bool) -> None:
        """Begin one."""
        if self._catalog.transaction is not None:
            raise SqlError("A transaction is already open", remedy="End it with COMMIT or ROLLBACK first")
        self._engine.transact("BEGIN")
        self._begun = self._catalog.transaction = Transaction(serializable=serializable)

    def commit(self) -> None:
        """Commit the datasets one after the other, then the tables of the engine.

        After an error nothing more is committed; the transaction is over.
        """
        transaction = self._open()
        self._settle()
        try:
            self._engine.check_transaction()
        except LanceError:
            self.rollback()
            raise
        self._catalog.transaction = None
        try:
            committed = transaction.commit()
        except BaseException:
            self._engine.transact("ROLLBACK")
            self._unsettle()
            raise
        for dataset in committed:
            self._catalog.renew(dataset)
        for dataset in transaction.dropped():
            self._catalog.dropped(dataset)
        try:
            self._engine.transact("COMMIT")
        except LanceError as error:
            if committed:
                error.message = f"{error.message}. {already_committed(committed)}"
            raise
        except BaseException as error:
            error.add_note(f"{already_committed(committed)}. Maybe committed: tables of the SQL engine")
            raise
        finally:
            self._unsettle()

    def rollback(self) -> None:
        """Undo what was changed since the transaction began."""
        transaction = self._open()
        self._settle()
        self._catalog.transaction = None
        try:
            transaction.rollback()
        finally:
            self._engine.transact("ROLLBACK")
            self._unsettle()

    def _open(self) -> Transaction:
        transaction = self._catalog.transaction
        if transaction is None:
            raise SqlError("No transaction is open", remedy="Start one with BEGIN")
        return transaction
