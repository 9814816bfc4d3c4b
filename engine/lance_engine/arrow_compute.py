"""``pyarrow.compute``, imported when the first of its functions is called.

It reads the documentation of all its functions when it is imported, which takes longer than many a query, and
many need none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lance_engine.interrupts import load

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:

    class _Compute:
        """The module: its functions can be named before it is imported, its classes cannot."""

        def __getattr__(self, name: str) -> Any:
            if name[:1].isupper():
                return getattr(load("pyarrow.compute"), name)

            def call(*arguments: Any, **options: Any) -> Any:
                return getattr(load("pyarrow.compute"), name)(*arguments, **options)

            self.__dict__[name] = call
            return call

    pc = _Compute()

__all__ = ["pc"]
