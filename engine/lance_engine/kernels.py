"""The only importer of the native module."""

from lance_engine._kernels import CorruptDataError, NotResidentError

__all__ = ["CorruptDataError", "NotResidentError"]
