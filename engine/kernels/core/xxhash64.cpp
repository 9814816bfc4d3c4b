#include "core/xxhash64.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace lance {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87ull;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Full;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9ull;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63ull;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5ull;

uint64_t round(uint64_t lane, uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

uint64_t merge(uint64_t hash, uint64_t lane) {
  return (hash ^ round(0, lane)) * kPrime1 + kPrime4;
}

// The little-endian number in the first bytes of `data`; the caller has checked that they exist.
template <typename T>
T number(std::span<const uint8_t> data) {
  T value;
  std::memcpy(&value, data.data(), sizeof value);
  return value;
}

}  // namespace

uint64_t xxhash64(std::span<const uint8_t> data) {
  uint64_t hash = kPrime5;
  const uint64_t length = data.size();
  if (data.size() >= 32) {
    std::array<uint64_t, 4> lanes = {kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
    for (; data.size() >= 32; data = data.subspan(32)) {
      for (size_t lane = 0; lane < lanes.size(); ++lane) {
        lanes[lane] = round(lanes[lane], number<uint64_t>(data.subspan(lane * 8)));
      }
    }
    hash =
        std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (const uint64_t lane : lanes) hash = merge(hash, lane);
  }
  hash += length;
  for (; data.size() >= 8; data = data.subspan(8)) {
    hash = std::rotl(hash ^ round(0, number<uint64_t>(data)), 27) * kPrime1 + kPrime4;
  }
  if (data.size() >= 4) {
    hash = std::rotl(hash ^ (number<uint32_t>(data) * kPrime1), 23) * kPrime2 + kPrime3;
    data = data.subspan(4);
  }
  for (const uint8_t byte : data) hash = std::rotl(hash ^ (byte * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace lance
