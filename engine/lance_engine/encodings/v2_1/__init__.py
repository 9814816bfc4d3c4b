"""How pages of versions 2.1 and 2.2 are written: `table` names everything, `column` chooses."""
