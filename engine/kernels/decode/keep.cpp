// Drops the rows that a mask leaves out right after they were decoded, while they are in the cache.

#include "decode/page.hpp"
#include "decode/row_mask.hpp"

namespace lance {
namespace {

template <typename T>
uint64_t keep_each(uint8_t* values, uint64_t count, RowMask mask) {
  uint8_t* to = values;
  mask.visit(count, [&](uint64_t row) {
    const T value = load<T>(values + row * sizeof(T));
    std::memcpy(to, &value, sizeof(T));
    to += sizeof(T);
  });
  return static_cast<uint64_t>(to - values);
}

// Moves the wanted ones of `count` values of `width` bytes together; gives the bytes that they take.
uint64_t keep_fixed(uint8_t* values, uint64_t width, uint64_t count, RowMask mask) {
  switch (width) {
    case 1:
      return keep_each<uint8_t>(values, count, mask);
    case 2:
      return keep_each<uint16_t>(values, count, mask);
    case 4:
      return keep_each<uint32_t>(values, count, mask);
    case 8:
      return keep_each<uint64_t>(values, count, mask);
    case 16:
      return keep_each<unsigned __int128>(values, count, mask);
    default: {
      uint8_t* to = values;
      mask.visit(count, [&](uint64_t row) {
        std::memmove(to, values + row * width, width);
        to += width;
      });
      return static_cast<uint64_t>(to - values);
    }
  }
}

void keep_tail(Bytes& bytes, uint64_t before, uint64_t width, uint64_t count, RowMask mask) {
  bytes.shrink_to(before + keep_fixed(bytes.data() + before, width, count, mask));
}

// The offset in front of the first of the strings is at `offsets`; gives the end of the last one kept.
template <typename Offset>
uint64_t keep_strings(uint8_t* offsets, uint8_t* bytes, uint64_t count, RowMask mask) {
  constexpr uint64_t kShort = 16;
  auto offset = [&](uint64_t i) -> uint64_t { return load<Offset>(offsets + i * sizeof(Offset)); };
  uint64_t end = offset(0), kept = 0;
  mask.visit(count, [&](uint64_t row) {
    const uint64_t from = offset(row), to = offset(row + 1), size = to - from;
    // A store of fixed size must not touch strings that are still to be moved.
    if (size <= kShort && end + kShort <= to) {
      const auto value = load<unsigned __int128>(bytes + from);
      std::memcpy(bytes + end, &value, kShort);
    } else if (size) {
      std::memmove(bytes + end, bytes + from, size);
    }
    end += size;
    store<Offset>(offsets + ++kept * sizeof(Offset), static_cast<Offset>(end));
  });
  return end;
}

}  // namespace

void Bits::keep(uint64_t before, RowMask mask) {
  Bits tail;
  const uint64_t count = length_ - before;
  tail.append_bits(data(), before, count);
  truncate(before);
  mask.words(count, [&](uint64_t wanted, uint64_t first, uint64_t size) {
    const uint64_t word = load_bits(tail.data(), first, size);
    uint64_t kept = 0;
    unsigned length = 0;
    for (; wanted; wanted &= wanted - 1, ++length) kept |= (word >> std::countr_zero(wanted) & 1) << length;
    append_word(kept, length);
  });
}

void Validity::keep(uint64_t before, RowMask mask) {
  if (!bits_started_) {
    length_ = before + mask.count(length_ - before);
    return;
  }
  null_count_ -= zeros_from(before);
  bits_.keep(before, mask);
  null_count_ += zeros_from(before);
}

uint64_t Validity::zeros_from(uint64_t first) const {
  const uint64_t count = bits_.length() - first;
  return count - RowMask{bits_.data(), first}.count(count);
}

void LeafValues::keep(uint64_t before, uint64_t bytes_before, RowMask mask) {
  const uint64_t count = length_ - before, kept = mask.count(count);
  if (type_->kind == LeafKind::kBits) {
    bits.keep(before, mask);
  } else if (type_->kind == LeafKind::kFixed) {
    keep_tail(data, bytes_before, type_->width, count, mask);
  } else if (type_->variable()) {
    const unsigned width = type_->offset_width();
    data.reserve(1);  // there may be no bytes at all
    uint8_t* first = offsets.data() + before * width;
    data.shrink_to(width == 4 ? keep_strings<uint32_t>(first, data.data(), count, mask)
                              : keep_strings<uint64_t>(first, data.data(), count, mask));
    offsets.shrink_to((before + kept + 1) * width);
  }
  length_ = before + kept;
}

LeafOutput::Mark LeafOutput::mark() const {
  return {layers.front().validity.length(),
          values.length(),
          values.data.size(),
          codes.size(),
          narrowed.size(),
          numbers.size()};
}

void LeafOutput::keep(const Mark& before, RowMask mask, uint64_t rows, bool has_dictionary) {
  for (LayerValues& layer : layers) {
    check(layer.validity.length() - before.rows == rows, "a page has another number of levels than rows");
    layer.validity.keep(before.rows, mask);
  }
  if (sieve && has_dictionary) return;  // only what is wanted was looked up
  if (strings) {
    const unsigned width = strings->width();
    check(numbers.size() == before.numbers + rows * width, "a page has another number of values than rows");
    return keep_tail(numbers, before.numbers, width, rows, mask);
  }
  const bool of_codes = coded && has_dictionary;
  const bool narrow_already = narrowed.size() > before.narrowed;
  const uint64_t found = of_codes         ? (codes.size() - before.codes) / sizeof(int32_t)
                         : narrow_already ? (narrowed.size() - before.narrowed) / 8
                                          : values.length() - before.values;
  check(found == rows, "a page has another number of values than rows");
  if (narrow_already) return keep_tail(narrowed, before.narrowed, 8, rows, mask);
  if (of_codes) return keep_tail(codes, before.codes, sizeof(int32_t), rows, mask);
  values.keep(before.values, before.bytes, mask);
  if (!coded) return;
  codes.shrink_to(before.codes);
  add_identity_codes(before.values);
}

}  // namespace lance
