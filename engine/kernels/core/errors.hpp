#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace lance {

// The bytes contradict themselves or the page description. Python adds path, column and page.
struct CorruptData : std::runtime_error {
  using std::runtime_error::runtime_error;
  // Where it happened, as far as known: the path of the column in the schema and the number of the page.
  std::string column;
  int64_t page = -1;
};

// A range of the file was asked for that nobody has fetched yet.
struct NotResident : std::runtime_error {
  NotResident(const void* source, uint64_t offset, uint64_t length)
      : std::runtime_error("bytes of the file were not fetched"),
        source(source),
        offset(offset),
        length(length) {}
  const void* source;  // the file, as `Source::identity`
  uint64_t offset;
  uint64_t length;
  bool lasting = false;  // worth keeping: later batches will need it, too
};

inline void check(bool ok, const char* what) {
  if (!ok) [[unlikely]]
    throw CorruptData(what);
}

}  // namespace lance
