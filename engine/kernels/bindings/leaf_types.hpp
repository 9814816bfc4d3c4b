#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "decode/leaf.hpp"

namespace lance {

// Widths as files store them: no check accepts one that is truncated here.
inline unsigned narrow(uint64_t width) {
  return static_cast<unsigned>(std::min<uint64_t>(width, UINT32_MAX));
}

// What Python calls a kind of leaf.
inline LeafKind leaf_kind(const std::string& kind) {
  if (kind == "null") return LeafKind::kNull;
  if (kind == "bits") return LeafKind::kBits;
  if (kind == "fixed") return LeafKind::kFixed;
  if (kind == "variable32") return LeafKind::kVariable32;
  if (kind == "variable64") return LeafKind::kVariable64;
  throw std::invalid_argument("unknown kind of leaf " + kind);
}

}  // namespace lance
