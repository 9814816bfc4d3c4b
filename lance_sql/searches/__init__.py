"""Searches in statements: functions in FROM, and ordering by a distance."""
