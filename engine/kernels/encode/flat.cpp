#include <algorithm>

#include "encode/values.hpp"

namespace lance::encode {

void copy_bits(const uint8_t* source, uint64_t from, uint64_t count, uint8_t* target) {
  if (count == 0) return;
  const uint64_t bytes = (count + 7) / 8;
  const unsigned shift = from & 7;
  source += from >> 3;
  if (shift == 0) {
    std::memcpy(target, source, bytes);
  } else {
    const uint64_t available = (shift + count + 7) / 8;
    for (uint64_t i = 0; i < bytes; ++i) {
      const unsigned next = i + 1 < available ? source[i + 1] : 0;
      target[i] = static_cast<uint8_t>((source[i] >> shift) | (next << (8 - shift)));
    }
  }
  if (count & 7) target[bytes - 1] &= static_cast<uint8_t>((1u << (count & 7)) - 1);
}

namespace {

// Largest power of two of values of `bits` that keeps a chunk within the format's customary limits.
uint64_t fixed_chunk(uint64_t bits, uint64_t chunk_bytes = kFixedChunkBytes) {
  uint64_t values = kChunkValues;
  while (values > 2 && (values * bits + 7) / 8 >= chunk_bytes) values /= 2;
  return values;
}

}  // namespace

uint64_t estimated_bytes(MiniBlockValues& values, uint64_t chunks) {
  const uint64_t count = values.count();
  uint64_t sampled = 0, bytes = 0, end = 0;
  Output out;
  for (uint64_t chunk = 0; chunk < chunks && end < count; ++chunk) {
    const uint64_t start = std::max(end, count / chunks * chunk);
    const uint64_t length = values.chunk_length(start);
    out.shrink(0);
    for (unsigned buffer = 0; buffer < values.buffers(); ++buffer) values.encode(start, length, buffer, out);
    bytes += out.size();
    sampled += length;
    end = start + length;
  }
  if (sampled == 0) return 0;
  return static_cast<uint64_t>(static_cast<double>(bytes) * static_cast<double>(count) /
                               static_cast<double>(sampled));
}

FlatValues::FlatValues(Bytes bytes, uint64_t bits, uint64_t offset, uint64_t count, uint64_t chunk_bytes)
    : bytes_(std::move(bytes)),
      bits_(bits),
      offset_(offset),
      count_(count),
      chunk_(fixed_chunk(bits, chunk_bytes)) {
  require(bits == 1 || (bits != 0 && bits % 8 == 0), "flat values have 1 bit or whole bytes");
  bytes_.require_values(bits, offset, count);
}

void FlatValues::encode(uint64_t start, uint64_t length, unsigned, Output& out) {
  if (bits_ == 1)
    copy_bits(bytes_.data.data(), offset_ + start, length, out.extend((length + 7) / 8));
  else
    out.append(bytes_.data.data() + (offset_ + start) * (bits_ / 8), length * (bits_ / 8));
}

FixedSizeListValues::FixedSizeListValues(std::vector<FixedSizeListLayer> layers, Bytes items,
                                         uint64_t item_bits, uint64_t offset, uint64_t count)
    : layers_(std::move(layers)),
      items_(std::move(items)),
      item_bits_(item_bits),
      offset_(offset),
      count_(count) {
  require(item_bits == 1 || (item_bits != 0 && item_bits % 8 == 0), "list items have 1 bit or whole bytes");
  require(!layers_.empty(), "a fixed-size list has at least one layer");
  for (const auto& layer : layers_) {
    require(layer.dimension > 0 && layer.dimension < (uint64_t{1} << 31) / items_per_row_,
            "unusable fixed-size list dimension");
    items_per_row_ *= layer.dimension;
  }
  items_.require_values(item_bits, offset, count * items_per_row_);
  uint64_t row_bits = items_per_row_ * item_bits, per_layer = 1;
  for (const auto& layer : layers_) {
    per_layer *= layer.dimension;
    if (layer.validity.present()) row_bits += per_layer;
  }
  chunk_ = fixed_chunk(row_bits);
  if (items_per_row_ * item_bits % 8 != 0 && chunk_ < 8) chunk_ = 8;  // chunks of whole bytes
}

unsigned FixedSizeListValues::buffers() const {
  unsigned buffers = 1;
  for (const auto& layer : layers_) buffers += layer.validity.present();
  return buffers;
}

void FixedSizeListValues::encode(uint64_t start, uint64_t length, unsigned buffer, Output& out) {
  uint64_t per_row = 1;
  for (const auto& layer : layers_) {
    per_row *= layer.dimension;
    if (!layer.validity.present()) continue;
    if (buffer-- == 0) {
      const uint64_t bits = length * per_row;
      copy_bits(layer.validity.data(), layer.validity.offset() + start * per_row, bits,
                out.extend((bits + 7) / 8));
      return;
    }
  }
  const uint64_t from = offset_ + start * per_row, items = length * per_row;
  if (item_bits_ == 1)
    copy_bits(items_.data.data(), from, items, out.extend((items + 7) / 8));
  else
    out.append(items_.data.data() + from * (item_bits_ / 8), items * (item_bits_ / 8));
}

}  // namespace lance::encode
