"""What lets the scans of a statement read less: one rule a module; `settings` lists them."""
