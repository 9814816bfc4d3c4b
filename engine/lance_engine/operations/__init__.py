"""Operations on existing datasets: rows, columns, versions, files."""
