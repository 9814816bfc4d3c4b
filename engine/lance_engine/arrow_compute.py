"""``pyarrow.compute``, imported when something is called that needs it.

That module makes a Python function, with documentation, of each function of the compute library when it is
imported, which takes longer than many a query. Most calls have no options: they go to the compute library
directly, with the same results. Methods of arrays such as `filter`, `take` and `is_valid` import the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lance_engine.arrow_values import scalar
from lance_engine.interrupts import load

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    import pyarrow as pa

    #: What `pyarrow.compute` calls the functions whose names are words of Python.
    _NAMES: Final = {"and_": "and", "or_": "or"}
    _VALUES: Final = (pa.Array, pa.ChunkedArray, pa.Scalar, pa.RecordBatch, pa.Table)
    #: Classes of the options of functions that the first queries of a process may call with some.
    _OPTIONS: Final = {
        "is_in": "SetLookupOptions",
        "match_like": "MatchSubstringOptions",
        "match_substring": "MatchSubstringOptions",
        "min_max": "ScalarAggregateOptions",
        "starts_with": "MatchSubstringOptions",
        "ends_with": "MatchSubstringOptions",
    }
    _PLAIN: Final = (bool, int, float, str, bytes)

    class _Compute:
        """The module: its functions can be named before it is imported."""

        def __getattr__(self, name: str) -> Any:
            if name[:1].isupper():  # classes are those of the compute library
                return getattr(load("pyarrow._compute"), name)
            found = self.__dict__[name] = _WRITTEN_HERE.get(name) or _Function(name)
            return found

    class _Function:
        """A function of the module by its name."""

        def __init__(self, name: str) -> None:
            self._name = name
            self._options = _OPTIONS.get(name)
            self._registered: Any = None

        def __call__(self, *arguments: Any, **options: Any) -> Any:
            if self._registered is None:
                self._registered = _registered(self._name)
            values = None
            if self._registered:
                arity = self._registered.arity
                count = len(arguments) if arity is Ellipsis else arity
                has_options = bool(options) or len(arguments) > count
                if len(arguments) >= count and not (has_options and self._options is None):
                    values = _as_values(arguments[:count])
            if values is None:
                return getattr(load("pyarrow.compute"), self._name)(*arguments, **options)
            made = getattr(pc, self._options)(*arguments[count:], **options) if has_options else None
            return self._registered.call(values, made, None)

    def _registered(name: str) -> Any:
        """The function of the compute library; False for what only Python knows."""
        try:
            return load("pyarrow._compute").get_function(_NAMES.get(name, name))
        except KeyError:
            return False

    def _as_values(arguments: tuple[Any, ...]) -> list[Any] | None:
        """The arguments as Arrow values; None if some are something else, such as expressions."""
        values = [scalar(given) if type(given) in _PLAIN else given for given in arguments]
        return values if all(isinstance(value, _VALUES) for value in values) else None

    # Functions that `pyarrow.compute` writes in Python.

    def _fill_null(values: Any, fill_value: Any) -> Any:
        if fill_value is False and isinstance(values, pa.BooleanArray) and values.null_count:
            # Arrow goes through runs of nulls; the conjunction of two bitmaps takes a hundredth of that.
            valid, true = (
                pa.Array.from_buffers(values.type, len(values), [None, bits], offset=values.offset)
                for bits in values.buffers()
            )
            return pc.and_(valid, true)
        if isinstance(values, _VALUES):
            if not isinstance(fill_value, _VALUES):
                fill_value = scalar(fill_value, values.type)
            if values.type == fill_value.type:
                return pc.coalesce(values, fill_value)
        return load("pyarrow.compute").fill_null(values, fill_value)

    def _index(data: Any, value: Any) -> Any:
        if not isinstance(value, pa.Scalar):
            value = scalar(value, data.type)
        if data.type != value.type:
            return load("pyarrow.compute").index(data, value)
        compute = load("pyarrow._compute")
        return compute.call_function("index", [data], compute.IndexOptions(value))

    def _cast(values: Any, target_type: Any = None, safe: Any = None, **options: Any) -> Any:
        if safe is not None or options or not isinstance(target_type, pa.DataType):
            return load("pyarrow.compute").cast(values, target_type, safe, **options)
        compute = load("pyarrow._compute")
        return compute.call_function("cast", [values], compute.CastOptions.safe(target_type))

    _WRITTEN_HERE: Final = {"cast": _cast, "fill_null": _fill_null, "index": _index}

    pc = _Compute()

__all__ = ["pc"]
