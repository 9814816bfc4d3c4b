"""Inverted indices: which documents have a word, how often and where."""
