"""What leads to rows without reading them all."""
