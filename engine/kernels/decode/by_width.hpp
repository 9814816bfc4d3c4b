#pragma once

#include <cstdint>
#include <memory>

#include "core/errors.hpp"

namespace lance {

// A `Decoder` of integers of this many bits, as a `Base`; `refusal` says why other widths are corrupt.
template <typename Base, template <typename> class Decoder, typename... Arguments>
std::shared_ptr<Base> for_bits(uint64_t bits, const char* refusal, Arguments... arguments) {
  switch (bits) {
    case 8:
      return std::make_shared<Decoder<uint8_t>>(arguments...);
    case 16:
      return std::make_shared<Decoder<uint16_t>>(arguments...);
    case 32:
      return std::make_shared<Decoder<uint32_t>>(arguments...);
    case 64:
      return std::make_shared<Decoder<uint64_t>>(arguments...);
    default:
      throw CorruptData(refusal);
  }
}

// What `run` gives for unsigned integers of this many bytes, such as the indices of a dictionary.
template <typename Run>
auto of_width(const uint8_t* integers, unsigned width, Run run) {
  switch (width) {
    case 1:
      return run(integers);
    case 2:
      return run(reinterpret_cast<const uint16_t*>(integers));
    case 4:
      return run(reinterpret_cast<const uint32_t*>(integers));
    default:
      return run(reinterpret_cast<const uint64_t*>(integers));
  }
}

inline constexpr const char* kPackedWidths = "bit-packed values must be 8, 16, 32 or 64 bits wide";
inline constexpr const char* kRunWidths = "run-length coded values must be 8, 16, 32 or 64 bits wide";

}  // namespace lance
