"""A dataset as Arrow tables: versions, fragments, files, columns, pages, zones, indices; what is wrong."""
