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

namespace {

// Each value coded alone; the coded values stand in a variable buffer.
template <typename Stored>
class Fsst : public ValueDecoder {
 public:
  Fsst(Span table, ValueDecoderPtr verbatim) : table_(table), verbatim_(std::move(verbatim)) {}

  void check_type(const LeafType& type) const override { verbatim_->check_type(type); }

  void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out,
              Scratch& scratch) const override {
    if (!table_.coded()) return verbatim_->decode(chunk, skip, count, out, scratch);
    const Span& buffer = chunk.buffers[0];
    Span stored = buffer.sub(skip * sizeof(Stored), (count + 1) * sizeof(Stored));
    auto start = load<Stored>(stored.data);
    auto end = load<Stored>(stored.data + count * sizeof(Stored));
    check(start <= end && end <= buffer.size, "string offsets run past their chunk");
    check(start >= (chunk.num_values + 1) * sizeof(Stored), "string offsets point into themselves");
    uint64_t base = out.data.size();
    uint64_t bound = FsstTable::bound(end - start);
    uint8_t* begin = out.data.extend(bound);
    uint8_t* at = begin;
    Stored* target = out.extend_offsets<Stored>(count);
    Stored from = start;
    for (uint64_t i = 0; i < count; ++i) {
      auto to = load<Stored>(stored.data + (i + 1) * sizeof(Stored));
      check(from <= to && to <= end, "string offsets decrease");
      at = table_.decode(buffer.data + from, to - from, at);
      target[i] = static_cast<Stored>(base + static_cast<uint64_t>(at - begin));
      from = to;
    }
    out.data.shrink_to(base + static_cast<uint64_t>(at - begin));
    check_offset_range<Stored>(out.data.size());
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
