#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace lance {

// The numbers that stand for the values of a string column: their places in a list without repetitions.
using Numbers = std::unordered_map<std::string, uint8_t>;
using NumbersPtr = std::shared_ptr<const Numbers>;

}  // namespace lance
