#pragma once

#include <cstdint>
#include <span>

#include "core/uniform_layout.hpp"
#include "encode/output.hpp"

namespace lance::encode {

// How many literals each value of 16 bytes needs in an LZ4 block of `UniformLayout`; 0 where values differ
// too much.
unsigned uniform_literals(std::span<const uint8_t> plain);
void write_uniform(std::span<const uint8_t> plain, unsigned literals, Output& out);

// How many sequences a valid LZ4 block has, each of which takes a decoder about the same time.
uint64_t count_sequences(std::span<const uint8_t> block);

}  // namespace lance::encode
