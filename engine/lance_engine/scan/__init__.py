"""Reading rows: scans and look-ups by row id."""

from lance_engine.scan.scanner import Scanner, ScanSplit
from lance_engine.scan.take import take

__all__ = ["ScanSplit", "Scanner", "take"]
