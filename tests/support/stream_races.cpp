// Streams that end early while their threads are at work, for ThreadSanitizer: built and run by
// tests/unit/kernels/test_stream_races.py.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "decode/array_builder.hpp"
#include "stream/batch_stream.hpp"

namespace lance {

// The host below reads every batch itself, so that the stream never decodes.
uint64_t ArrayBuilder::owned_bytes(const ArrowArray&) {
  std::abort();
}
void Columns::decode(const Selection&, const Overlays&, ArrowArray&) const {
  std::abort();
}

}  // namespace lance

namespace {

using namespace lance;

constexpr uint64_t kTasks = 24;
constexpr uint64_t kRows = 10;

std::atomic<int64_t> made{0}, released{0};
const std::thread::id consumer = std::this_thread::get_id();

// Slow in a thread of the stream: others get to what it may be moving meanwhile.
void release(ArrowArray* array) {
  if (std::this_thread::get_id() != consumer) std::this_thread::sleep_for(std::chrono::microseconds(500));
  delete static_cast<int*>(array->private_data);  // a second release of the same array is a double free
  array->release = nullptr;
  ++released;
}

Batch new_batch() {
  Batch batch;
  batch.array.length = kRows;
  batch.array.release = release;
  batch.array.private_data = new int(0);
  batch.bytes = 100;
  ++made;
  return batch;
}

class Host : public StreamHost {
 public:
  explicit Host(uint64_t failing) : failing_(failing) {}

  bool more(std::vector<StreamTask>& tasks) override {
    for (uint64_t i = 0; i < kTasks; ++i) {
      StreamTask& task = tasks.emplace_back();
      task.number = i;
      task.end = kRows;
      task.divisible = false;
    }
    return false;
  }
  std::vector<Batch> read(const StreamTask& task) override {
    if (task.number == failing_) throw std::runtime_error("a damaged page");
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    std::vector<Batch> batches;
    batches.push_back(new_batch());
    return batches;
  }
  void report(const StreamStatistics&, bool) override {}
  void check() override {}
  void unlocked(const std::function<void()>& wait) override { wait(); }

 private:
  uint64_t failing_;
};

// Reads until the end, `most` batches or an error, and drops the stream.
void run(uint64_t limit, uint64_t most, uint64_t failing) {
  StreamOptions options;
  options.batch_rows = kRows;
  options.read_ahead = 1 << 20;
  options.threads = 3;
  options.limit = limit;
  auto stream = std::make_shared<BatchStream>(std::make_unique<Host>(failing), options);
  try {
    for (uint64_t i = 0; i < most; ++i)
      if (!stream->next().array.release) break;
  } catch (const std::runtime_error&) {
  }
  stream->cancel();
}

}  // namespace

int main(int, char** arguments) {
  const int rounds = std::atoi(arguments[1]);
  for (int round = 0; round < rounds; ++round) {
    run(UINT64_MAX, UINT64_MAX, UINT64_MAX);                    // to its end
    run(kRows * (round % kTasks) + 5, UINT64_MAX, UINT64_MAX);  // LIMIT
    run(UINT64_MAX, round % kTasks, UINT64_MAX);                // dropped by its reader
    run(UINT64_MAX, UINT64_MAX, round % kTasks);                // an error
  }
  lance::stop_streams();  // waits for the threads
  std::printf("%lld %lld\n", static_cast<long long>(made), static_cast<long long>(released));
}
