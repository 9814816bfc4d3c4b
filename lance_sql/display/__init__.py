"""What people read: amounts in words, rows as tables, errors in one line."""
