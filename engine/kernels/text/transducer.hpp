#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace lance {

// The letters that have a short form in transducers.
inline constexpr std::string_view kCommonLetters =
    "te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG";

// The finite-state transducer (version 3 of the crate fst) of ascending tokens, each with its place as its
// number. Equal ends are not shared: most bytes of a token that no other begins with take a byte.
std::vector<uint8_t> transducer_of(uint32_t count, const std::function<std::string_view(uint32_t)>& token);

}  // namespace lance
