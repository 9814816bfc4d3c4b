#include "decode/fsst.hpp"

#include "decode/value_decoder.hpp"

namespace lance {

FsstTable::FsstTable(Span bytes) {
  check(bytes.size == 2312, "an FSST symbol table must be 2312 bytes long");
  check(load<uint32_t>(bytes.data + 4) == 0x46535354, "an FSST symbol table lacks its magic number");
  unsigned count = bytes.data[0];
  coded_ = bytes.data[3] != 0;
  const uint8_t* symbols = bytes.data + 8;
  const uint8_t* lengths = symbols + 8 * count;
  for (unsigned code = 0; code < count; ++code) {
    symbols_[code] = load<uint64_t>(symbols + 8 * code);
    lengths_[code] = lengths[code];
    check(lengths_[code] >= 1 && lengths_[code] <= 8, "an FSST symbol must be 1 to 8 bytes long");
  }
}

uint8_t* FsstTable::decode(const uint8_t* in, uint64_t size, uint8_t* out) const {
  const uint8_t* end = in + size;
  // Four codes at a time while none of them is the escape: a whole-word store per code, no branch on its
  // length.
  while (end - in >= 4) {
    auto codes = load<uint32_t>(in);
    uint32_t escapes = (codes & 0x7F7F7F7Fu) + 0x01010101u;
    if (escapes & codes & 0x80808080u) [[unlikely]] {
      if (*in == kEscape) {
        *out++ = in[1];
        in += 2;
      } else {
        store(out, symbols_[*in]);
        out += lengths_[*in++];
      }
      continue;
    }
    unsigned a = codes & 0xFF, b = codes >> 8 & 0xFF, c = codes >> 16 & 0xFF, d = codes >> 24;
    store(out, symbols_[a]);
    out += lengths_[a];
    store(out, symbols_[b]);
    out += lengths_[b];
    store(out, symbols_[c]);
    out += lengths_[c];
    store(out, symbols_[d]);
    out += lengths_[d];
    in += 4;
  }
  while (in < end) {
    if (*in == kEscape) {
      check(end - in >= 2, "an FSST value ends inside an escape");
      *out++ = in[1];
      in += 2;
    } else {
      store(out, symbols_[*in]);
      out += lengths_[*in++];
    }
  }
  return out;
}

// Bytes that `size` codes decode to.
uint64_t FsstTable::decoded_size(const uint8_t* in, uint64_t size) const {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < size; ++i) {
    if (in[i] == kEscape) {
      ++bytes;
      ++i;
    } else {
      bytes += lengths_[in[i]];
    }
  }
  return bytes;
}

void FsstTable::append(Span codes, Bytes& out) const {
  uint64_t base = out.size();
  uint64_t room = bound(codes.size);
  if (base + room > out.capacity()) room = decoded_size(codes.data, codes.size);
  out.reserve(1);  // codes without a symbol decode to nothing, but are stored too
  uint8_t* at = out.extend(room);
  out.shrink_to(base + static_cast<uint64_t>(decode(codes.data, codes.size, at) - at));
}

// Decodes codes without regard to values: no branches that depend on how long these are. places[i] becomes
// where the output of the first i codes ends.
uint64_t FsstTable::decode_stream(const uint8_t* in, uint64_t size, uint8_t* out, uint32_t* places) const {
  constexpr uint64_t kAtOnce = 8;
  uint64_t at = 0, i = 0;
  places[0] = 0;
  auto one = [&] {
    if (in[i] == kEscape) {
      check(i + 2 <= size, "an FSST value ends inside an escape");
      out[at++] = in[i + 1];
      places[i + 1] = kInsideEscape;
      places[i + 2] = static_cast<uint32_t>(at);
      i += 2;
    } else {
      store(out + at, symbols_[in[i]]);
      at += lengths_[in[i]];
      places[++i] = static_cast<uint32_t>(at);
    }
  };
  while (size - i >= kAtOnce) {
    auto codes = load<uint64_t>(in + i);
    uint64_t full = (codes & 0x7F7F7F7F7F7F7F7Fu) + 0x0101010101010101u;
    if (full & codes & 0x8080808080808080u) [[unlikely]] {
      one();
      continue;
    }
#pragma GCC unroll 8
    for (uint64_t k = 0; k < kAtOnce; ++k) {
      unsigned code = codes & 0xFF;
      codes >>= 8;
      store(out + at, symbols_[code]);
      at += lengths_[code];
      places[i + k + 1] = static_cast<uint32_t>(at);
    }
    i += kAtOnce;
  }
  while (i < size) one();
  return at;
}

template <typename Offset>
void FsstTable::decode_values(const uint8_t* codes, const uint8_t* ends, uint64_t count, Bytes& out,
                              Offset* targets, Bytes& scratch) const {
  auto end_of = [&](uint64_t i) { return uint64_t{load<Offset>(ends + i * sizeof(Offset))}; };
  scratch.reserve((kStream + 1) * sizeof(uint32_t));
  auto* places = reinterpret_cast<uint32_t*>(scratch.data());
  for (uint64_t first = 0; first < count;) {
    uint64_t start = end_of(first);
    uint64_t last = count;
    if (end_of(last) - start > kStream) {  // as many values as fit, at least one
      uint64_t low = first + 1;
      while (low < last) {
        uint64_t middle = (low + last) / 2;
        if (end_of(middle + 1) - start > kStream)
          last = middle;
        else
          low = middle + 1;
      }
    }
    uint64_t size = end_of(last) - start;
    uint64_t base = out.size();
    uint64_t room = bound(size);
    if (base + room > out.capacity()) room = decoded_size(codes + start, size);
    out.reserve(1);  // as in `append`
    uint8_t* at = out.extend(room);
    if (size > kStream) {
      out.shrink_to(base + static_cast<uint64_t>(decode(codes + start, size, at) - at));
      targets[first] = static_cast<Offset>(out.size());
    } else {
      out.shrink_to(base + decode_stream(codes + start, size, at, places));
      uint32_t seen = 0;
      for (uint64_t i = first; i < last; ++i) {
        uint32_t place = places[end_of(i + 1) - start];
        seen |= place;
        targets[i] = static_cast<Offset>(base + place);
      }
      check(seen < kInsideEscape, "an FSST value ends inside an escape");
    }
    first = last;
  }
  check_offset_range<Offset>(out.size());
}

template void FsstTable::decode_values(const uint8_t*, const uint8_t*, uint64_t, Bytes&, uint32_t*,
                                       Bytes&) const;
template void FsstTable::decode_values(const uint8_t*, const uint8_t*, uint64_t, Bytes&, uint64_t*,
                                       Bytes&) const;

namespace {

// Each value coded alone; the coded values are in a variable buffer.
template <typename Stored>
class Fsst : public ValueDecoder {
 public:
  Fsst(Span table, ValueDecoderPtr verbatim) : table_(table), verbatim_(std::move(verbatim)) {}

  uint64_t most_bytes(uint64_t) const override { return kMostDecompressed; }

  void check_type(const LeafType& type) const override { verbatim_->check_type(type); }

  void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out,
              Scratch& scratch) const override {
    if (!table_.coded()) return verbatim_->decode(chunk, skip, count, out, scratch);
    const Span& buffer = chunk.buffers[0];
    Span stored = checked_offsets<Stored>(chunk, skip, count);
    table_.decode_values(buffer.data, stored.data, count, out.data, out.extend_offsets<Stored>(count),
                         scratch.places);
  }

  void gather(const Chunk& chunk, const uint32_t* positions, size_t count, LeafValues& out,
              Scratch& scratch) const override {
    if (!table_.coded()) return verbatim_->gather(chunk, positions, count, out, scratch);
    Stored* target = out.extend_offsets<Stored>(count);
    for (size_t i = 0; i < count; ++i) {
      Span codes = checked_string<Stored>(chunk, positions[i]);
      table_.append(codes, out.data);
      target[i] = static_cast<Stored>(out.data.size());
    }
    check_offset_range<Stored>(out.data.size());
  }

  bool test(const Chunk& chunk, uint64_t skip, uint64_t count, const ValueTest& test, Bits& out,
            Scratch& scratch) const override {
    if (!table_.coded()) return verbatim_->test(chunk, skip, count, test, out, scratch);
    if (!test.strings()) return false;
    Span stored = checked_offsets<Stored>(chunk, skip, count);
    test.strings()->test_coded<Stored>(table_, chunk.buffers[0].data, stored.data, count, out);
    return true;
  }

 private:
  FsstTable table_;
  ValueDecoderPtr verbatim_;
};

}  // namespace

ValueDecoderPtr make_fsst(Span symbol_table, unsigned bits_per_offset) {
  ValueDecoderPtr verbatim = make_variable(bits_per_offset);
  if (bits_per_offset == 32) return std::make_shared<Fsst<uint32_t>>(symbol_table, std::move(verbatim));
  return std::make_shared<Fsst<uint64_t>>(symbol_table, std::move(verbatim));
}

}  // namespace lance
