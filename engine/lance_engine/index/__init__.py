"""Indices: finding rows without reading all of them."""
