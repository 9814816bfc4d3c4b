"""`install`: datasets, and searches in them, in the connections and contexts of users."""
