#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace lance {

// The bytes contradict themselves or the page description. Python adds path, column and page.
struct CorruptData : std::runtime_error {
  using std::runtime_error::runtime_error;
  // Where it happened, as far as known: the path of the column in the schema, the number of the page, and the
  // encodings of the page from the outermost to the one at fault.
  std::string column;
  int64_t page = -1;
  std::string encoding;
};

// Apparently valid data that nothing here can read. Has the same place information.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
  // Set where a whole encoding has no decoder: its name. The text says what is wrong elsewhere.
  std::string missing;
  int64_t page = -1;
  std::string encoding;
};

// A requested range of the file has not been fetched yet.
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
