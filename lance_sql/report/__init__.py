"""An HTML report of a dataset: its contents, and what filters can skip."""
