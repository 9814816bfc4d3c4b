#include "decode/packed_row.hpp"

namespace lance {

ValueCodec::ValueCodec(ZipCodec codec, const std::vector<uint8_t>& symbol_table) : codec_(codec) {
  if (codec == ZipCodec::kFsst) table_.emplace(Span{symbol_table.data(), symbol_table.size()});
}

void ValueCodec::append(Span value, Bytes& out) const {
  switch (codec_) {
    case ZipCodec::kFsst:
      if (table_->coded()) {
        uint64_t before = out.size();
        uint8_t* begin = out.extend(FsstTable::bound(value.size));
        uint8_t* end = table_->decode(value.data, value.size, begin);
        out.shrink_to(before + static_cast<uint64_t>(end - begin));
        break;
      }
      [[fallthrough]];
    case ZipCodec::kPlain:
      copy_bytes(out.extend(value.size), value.data, value.size);
      break;
    case ZipCodec::kLz4:
      if (value.size) decompress(Compression::kLz4, value, out);
      break;
    case ZipCodec::kZstd:
      decompress(Compression::kZstd, value, out);
      break;
  }
}

void PackedRow::add(const PackedField& field) {
  check(field.length_bytes == 0 || field.length_bytes == 1 || field.length_bytes == 2 ||
            field.length_bytes == 4 || field.length_bytes == 8,
        "the lengths of a packed struct must be 8, 16, 32 or 64 bits wide");
  check(field.bytes <= kMaxValueBytes, "the fields of a packed struct are impossibly wide");
  check(field.dims.size() == field.has_validity.size(), "a fixed-size list needs a dimension per layer");
  std::vector<std::pair<uint64_t, bool>> bitmaps;
  uint64_t items = 1;
  for (size_t layer = 0; layer < field.dims.size(); ++layer) {
    check(field.dims[layer] > 0 && items <= kMaxValueBytes / field.dims[layer],
          "a fixed-size list is impossibly long");
    items *= field.dims[layer];
    bitmaps.emplace_back(bytes_for_bits(items), field.has_validity[layer]);
  }
  fields_.push_back(
      {field.bytes, field.length_bytes, ValueCodec(field.codec, field.symbol_table), std::move(bitmaps)});
}

void PackedRow::append(Span row, Bytes& out) const {
  uint64_t at = 0;
  for (const Field& field : fields_) {
    for (auto [bytes, is_stored] : field.bitmaps) {
      uint8_t* bitmap = out.extend(bytes);
      if (is_stored) {
        copy_bytes(bitmap, row.sub(at, bytes).data, bytes);
        at += bytes;
      } else {
        std::memset(bitmap, 0xFF, bytes);
      }
    }
    if (field.length_bytes == 0) {
      Span bytes = row.sub(at, field.bytes);
      copy_bytes(out.extend(bytes.size), bytes.data, bytes.size);
      at += field.bytes;
      continue;
    }
    Span stored = row.sub(at, field.length_bytes);
    uint64_t length = 0;
    copy_bytes(&length, stored.data, stored.size);
    at += field.length_bytes;
    uint64_t place = out.size();
    out.extend(sizeof(uint64_t));
    field.codec.append(row.sub(at, length), out);
    store<uint64_t>(out.data() + place, out.size() - place - sizeof(uint64_t));
    at += length;
  }
  check(at == row.size, "a row of a packed struct is longer than its fields");
}

namespace {

template <typename Offset>
void append_variable(Span value, LeafValues& out) {
  copy_bytes(out.data.extend(value.size), value.data, value.size);
  check_offset_range<Offset>(out.data.size());
  *out.extend_offsets<Offset>(1) = static_cast<Offset>(out.data.size());
}

}  // namespace

std::vector<LeafValues> unpack_rows(const LeafValues& rows, const std::vector<LeafType>& children) {
  std::vector<LeafValues> values;
  values.reserve(children.size());
  for (const LeafType& child : children) {
    check(child.variable() || child.kind == LeafKind::kFixed ||
              (child.kind == LeafKind::kBits && !child.dims.empty()),
          "a packed struct cannot hold such a field");
    values.emplace_back(child);
  }
  Span bytes{rows.data.data(), rows.data.size()};
  const auto* offsets = reinterpret_cast<const int64_t*>(rows.offsets.data());
  for (uint64_t i = 0; i < rows.length(); ++i) {
    auto begin = static_cast<uint64_t>(offsets[i]), end = static_cast<uint64_t>(offsets[i + 1]);
    Span row = bytes.sub(begin, end - begin);
    uint64_t at = 0;
    for (LeafValues& out : values) {
      if (row.size == 0) {
        out.append_placeholders(1);
      } else if (!out.type().variable()) {
        uint64_t items = 1;
        for (size_t layer = 0; layer < out.type().dims.size(); ++layer) {
          items *= out.type().dims[layer];
          out.item_validity[layer].append_bits(row.sub(at, bytes_for_bits(items)).data, 0, items);
          at += bytes_for_bits(items);
        }
        const bool bits = out.type().kind == LeafKind::kBits;
        uint64_t width = bits ? bytes_for_bits(items) : out.value_bytes();
        Span value = row.sub(at, width);
        if (bits)
          out.extend_bits(value.data, 0, 1);
        else
          copy_bytes(out.extend_fixed(1), value.data, width);
        at += width;
      } else {
        auto length = row.at<uint64_t>(at);
        at += sizeof(uint64_t);
        Span value = row.sub(at, length);
        if (out.type().kind == LeafKind::kVariable32)
          append_variable<int32_t>(value, out);
        else
          append_variable<int64_t>(value, out);
        at += length;
      }
    }
    check(at == row.size, "the rows of a packed struct do not fit the fields of its type");
  }
  return values;
}

}  // namespace lance
