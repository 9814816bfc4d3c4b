"""Vector indices: partitions around centroids (IVF), in which vectors are stored as they are or as codes."""
