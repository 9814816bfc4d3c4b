"""Output memory of any size near the border between small and pooled blocks can be given back."""

from lance_engine import kernels


def test_sizes_around_the_smallest_pooled_block() -> None:
    decoder = kernels.block_flat(8)
    for size in range((64 << 10) - 200, (64 << 10) + 200):
        data = bytes(size)
        assert decoder.decode(data, size) == data
