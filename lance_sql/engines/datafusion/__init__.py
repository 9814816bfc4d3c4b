"""Lance datasets in DataFusion."""
