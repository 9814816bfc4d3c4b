"""The only importer of the native module. Its names and their types are those of the bindings."""

from lance_engine._kernels import *  # noqa: F403
