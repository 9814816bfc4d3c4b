"""The obstore library, in every process: its threads do not survive a fork."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ExtensionFileLoader
from types import ModuleType
from typing import Any, Final

from lance_engine.errors import UnsupportedFeatureError

_EXTENSION: Final = "obstore._obstore"
_loaded: Any = None
# Where the library is, in a process that has inherited it and needs a copy.
_original: str | None = None
# What a forked process has inherited. It is never freed: that could wait for threads that are not there.
_inherited: list[Any] = []


def obstore() -> Any:
    """The module `obstore`, whose requests work in this process."""
    global _loaded, _original
    if _loaded is None:
        if _original is not None:
            _replace(_original)
            _original = None
        try:
            importlib.import_module("obstore.store")
        except ImportError as error:
            raise UnsupportedFeatureError(
                "Object stores need the package obstore", remedy="pip install obstore"
            ) from error
        _loaded = sys.modules["obstore"]
    return _loaded


def keep_inherited(value: object) -> None:
    """Never free what the parent process of a fork created with the library."""
    _inherited.append(value)


def _forget() -> None:
    global _loaded, _original
    _loaded = None
    library = sys.modules.get("obstore")
    if library is not None and _original is None:
        folder = os.path.dirname(str(library.__file__))
        names = [name for name in os.listdir(folder) if name.startswith("_obstore.") and ".py" not in name]
        _original = os.path.join(folder, names[0]) if names else None


os.register_at_fork(after_in_child=_forget)


def _replace(original: str) -> None:
    """Replace the modules by new ones around a copy of the library, with separate state and threads."""
    for name in [name for name in sys.modules if name == "obstore" or name.startswith("obstore.")]:
        keep_inherited(sys.modules.pop(name))
    # The system loads each library file once: a copy of the file is loaded again.
    with _copy(original) as path:
        sys.modules[_EXTENSION] = _extension(path)


def _extension(path: str) -> ModuleType:
    loader = ExtensionFileLoader(_EXTENSION, path)
    spec = importlib.util.spec_from_file_location(_EXTENSION, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@contextmanager
def _copy(path: str) -> Iterator[str]:
    """The path of a copy, in memory if the system supports it."""
    with open(path, "rb") as source:
        content = source.read()
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("obstore"), "wb") as target:
            target.write(content)
            target.flush()
            yield f"/proc/self/fd/{target.fileno()}"
        return
    with tempfile.NamedTemporaryFile(suffix=os.path.splitext(path)[1]) as temporary:
        temporary.write(content)
        temporary.flush()
        yield temporary.name
