"""The interactive shell: an editor of statements, commands of its own, completion."""
