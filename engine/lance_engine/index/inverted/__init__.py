"""Inverted indices: which documents contain a word, how often and at which positions."""
