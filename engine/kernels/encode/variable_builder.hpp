#pragma once

#include <limits>
#include <memory>

#include "encode/output.hpp"
#include "encode/values.hpp"

namespace lance::encode {

// Collects values of a new length, one by one, into offsets and bytes that it owns.
class VariableBuilder {
 public:
  VariableBuilder(unsigned offset_bits, uint64_t count) : offset_bits_(offset_bits), count_(count) {
    offsets_.reserve((count + 1) * (offset_bits / 8));
    end_value();
  }

  // Append the bytes of the current value here.
  Output& bytes() { return bytes_; }

  void end_value() {
    const uint64_t end = bytes_.size();
    require(offset_bits_ == 64 || end <= static_cast<uint64_t>(std::numeric_limits<int32_t>::max()),
            "a page has more bytes than its offsets can count");
    offsets_.append(&end, offset_bits_ / 8);
  }

  std::shared_ptr<const VariableInput> finish() {
    return std::make_shared<const VariableInput>(own(std::move(offsets_)), own(std::move(bytes_)),
                                                 offset_bits_, 0, count_, nullptr);
  }

 private:
  static Bytes own(Output output) {
    auto owner = std::make_shared<Output>(std::move(output));
    return {{owner->data(), owner->size()}, owner};
  }

  unsigned offset_bits_;
  uint64_t count_;
  Output offsets_, bytes_;
};

}  // namespace lance::encode
