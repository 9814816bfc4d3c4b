#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/arrow_abi.hpp"
#include "decode/column.hpp"

namespace lance {

// An Arrow array that is released with its owner, and the memory that it keeps.
struct Batch {
  Batch() = default;
  Batch(Batch&& other) noexcept : array(std::exchange(other.array, {})), bytes(other.bytes) {}
  Batch& operator=(Batch&& other) noexcept {
    std::swap(array, other.array);
    std::swap(bytes, other.bytes);
    return *this;
  }
  ~Batch() {
    if (array.release) array.release(&array);
  }

  ArrowArray array{};
  uint64_t bytes = 0;
};

// Rows [begin, end) to read, in the numbering of `columns`.
struct StreamTask {
  uint64_t number = 0;  // the host's name for it
  uint64_t begin = 0;
  uint64_t end = 0;
  const Columns* columns = nullptr;  // null: only the host can read these rows
  bool divisible = true;             // whether a part of it can be read
  std::vector<uint32_t> required;    // children that must not have nulls
};

// What a stream did since the last report.
struct StreamStatistics {
  uint64_t batches = 0;  // handed out, and their rows
  uint64_t rows = 0;
  uint64_t decoded_rows = 0;  // not those that the host read
  uint64_t bytes_read = 0;    // of files, for these
  double seconds = 0;         // spent on them, by all threads
};

// What a stream leaves to the program that uses it. Its methods throw std::exception, whose text the consumer
// of the stream sees.
class StreamHost {
 public:
  virtual ~StreamHost() = default;
  // Appends what to read next, in order; false at the end.
  virtual bool more(std::vector<StreamTask>& tasks) = 0;
  // Reads what decoding alone cannot, or what it failed on: then this is where a good error comes from.
  virtual std::vector<Batch> read(const StreamTask& task) = 0;
  // Called now and then with what was done so far; with `last` once, at the end of the stream.
  virtual void report(const StreamStatistics& statistics, bool last) = 0;
  // Called now and then by a waiting consumer; throws to cancel the stream.
  virtual void check() = 0;
  // Calls `wait`, which blocks, without a lock that the other methods need.
  virtual void unlocked(const std::function<void()>& wait) = 0;
};

}  // namespace lance
