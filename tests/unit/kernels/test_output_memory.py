"""Output memory of any size near the border between small and pooled blocks can be given back."""

from lance_engine import kernels
from lance_engine.format.pb import encodings21_pb2 as pb


def test_sizes_around_the_smallest_pooled_block() -> None:
    flat = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=8))
    decoder = kernels.block_decoder(flat.SerializeToString())
    for size in range((64 << 10) - 200, (64 << 10) + 200):
        data = bytes(size)
        assert decoder.decode(data, size) == data
