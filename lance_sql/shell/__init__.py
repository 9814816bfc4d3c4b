"""The interactive shell: a statement editor, shell commands, and completion."""
