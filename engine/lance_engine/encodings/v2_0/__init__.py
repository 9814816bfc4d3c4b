"""How pages of version 2.0 are written: `table` names the encodings, `column` uses them."""
