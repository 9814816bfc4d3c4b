"""Writing pages of version 2.0: `table` lists the encodings, `column` uses them."""
