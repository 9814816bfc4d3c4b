#include <cstring>

#include "core/jsonb.hpp"
#include "decode/value_test.hpp"

namespace lance {

namespace {

// Binary JSON documents that contain some bytes; other values, such as text, pass.
class StoredJsonTest : public ValueTest {
 public:
  explicit StoredJsonTest(std::string wanted) : wanted_(std::move(wanted)) {
    if (wanted_.empty()) throw std::invalid_argument("nothing to look for");
  }
  bool fits(const LeafType& type) const override { return type.variable() && type.dims.empty(); }
  void test(const LeafValues& values, Bits& out) const override {
    const uint8_t* bytes = values.aliased.data ? values.aliased.data : values.data.data();
    if (values.type().offset_width() == 4)
      test_plain<uint32_t>(bytes, values.offsets.data(), values.length(), out);
    else
      test_plain<uint64_t>(bytes, values.offsets.data(), values.length(), out);
  }

 private:
  static bool is_binary(uint8_t first) {
    return first == jsonb::kScalar >> 24 || first == jsonb::kObject >> 24 || first == jsonb::kArray >> 24;
  }

  template <typename Offset>
  void test_plain(const uint8_t* bytes, const uint8_t* offsets, uint64_t count, Bits& out) const {
    auto place = [&](uint64_t i) { return bytes + load<Offset>(offsets + i * sizeof(Offset)); };
    if (count == 0) return;
    const uint8_t* end = place(count);
    // The bytes are looked for in all documents at once; most lack them.
    auto search = [&](const uint8_t* from) {
      const void* found = from < end
                              ? memmem(from, static_cast<size_t>(end - from), wanted_.data(), wanted_.size())
                              : nullptr;
      return found ? static_cast<const uint8_t*>(found) : end;
    };
    const uint8_t* hit = search(place(0));
    append_tests(out, count, [&](uint64_t i) {
      const uint8_t *begin = place(i), *stop = place(i + 1);
      bool found = begin == stop || !is_binary(*begin);
      if (hit < stop) {
        found |= static_cast<size_t>(stop - hit) >= wanted_.size();
        hit = search(stop);
      }
      return found;
    });
  }

  std::string wanted_;
};

}  // namespace

ValueTestPtr make_stored_json(std::string wanted) {
  return std::make_shared<StoredJsonTest>(std::move(wanted));
}

}  // namespace lance
