#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lance::encode {

// At most `limit` bytes that are not greater than `value`. Text stays valid UTF-8; nothing for text that is
// not.
std::optional<std::string> truncated_minimum(std::string_view value, size_t limit, bool text);

// About `limit` bytes that are not less than `value` or anything that starts with the same bytes.
// Nothing if no such bytes exist: when all that is kept is the largest byte or character.
std::optional<std::string> truncated_maximum(std::string_view value, size_t limit, bool text);

}  // namespace lance::encode
