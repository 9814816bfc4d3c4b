"""Reading rows: scans and look-ups by row id."""

from lance_engine.scan.scanner import Scanner
from lance_engine.scan.splits import ScanSplit, split_rows
from lance_engine.scan.take import take

__all__ = ["ScanSplit", "Scanner", "split_rows", "take"]
