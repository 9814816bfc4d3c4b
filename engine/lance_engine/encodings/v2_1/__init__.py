"""Writing pages of versions 2.1 and 2.2: `table` lists all encodings, `column` chooses between them."""
