"""What a SQL text says about Lance tables: tokens, statements of a script, references to datasets."""
