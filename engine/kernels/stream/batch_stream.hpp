#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stream/host.hpp"
#include "stream/schema.hpp"

namespace lance {

struct StreamOptions {
  uint64_t batch_rows = 0;      // at most this many rows in a batch
  uint64_t row_bytes = 1;       // a first guess; replaced by what decoding shows
  uint64_t read_ahead = 0;      // bytes of batches that wait or are being made, beyond the next one
  unsigned threads = 1;         // none: the consumer does all the work
  uint64_t skip = 0;            // rows to leave out at the start
  uint64_t limit = UINT64_MAX;  // rows after these
};

// Batches in the order of their rows, made ahead by threads and taken by one consumer at a time.
//
// Nothing is made before the first batch is requested, and what fits one batch is made by the consumer
// itself. Once the stream is cancelled, threads stop before the end of their batch.
class BatchStream : public std::enable_shared_from_this<BatchStream> {
 public:
  BatchStream(std::unique_ptr<StreamHost> host, StreamOptions options);
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;

  // The next batch, whose `array.release` is null at the end. Throws std::runtime_error with the text of the
  // first error, again on every later call.
  Batch next();
  void cancel() noexcept;

  // An Arrow C stream over `stream`, which is cancelled when that is released.
  static void export_to(std::shared_ptr<BatchStream> stream, SharedSchema schema, ArrowArrayStream& out);

 private:
  using Lock = std::unique_lock<std::mutex>;

  // The place of one piece of work in the order of the batches.
  struct Slot {
    bool done = false;
    std::deque<Batch> batches;
    std::string error;
  };

  bool finished() const { return exhausted_ && tasks_.empty() && !asking_; }
  bool may_ask() const { return tasks_.empty() && !exhausted_ && !asking_; }
  bool may_decode() const;
  Batch take();
  void start(Lock& lock);
  void start_thread();
  static void run(std::shared_ptr<BatchStream> self);
  void work();
  bool step(Lock& lock);
  void ask(Lock& lock);
  void decode_next(Lock& lock);
  StreamTask cut();
  std::vector<Batch> decode(const StreamTask& task);
  bool trim(Batch& batch);
  void end(Lock& lock) noexcept;
  void report(Lock& lock, bool last) noexcept;
  void check(Lock& lock);

  std::unique_ptr<StreamHost> host_;
  const StreamOptions options_;
  const uint64_t process_;

  std::mutex mutex_;
  std::condition_variable work_, ready_;
  std::deque<StreamTask> tasks_;
  std::deque<Slot> slots_;
  uint64_t held_ = 0;  // bytes in slots, with a guess for those in the making
  uint64_t seen_rows_ = 0, seen_bytes_ = 0;
  uint64_t skip_, left_;
  unsigned alive_ = 0;
  bool started_ = false, asking_ = false, exhausted_ = false, cancelled_ = false;
  bool reported_ = false;
  StreamStatistics statistics_;
  unsigned unreported_ = 0;  // decoded batches
  unsigned reporting_ = 0;   // reports that the host is processing
  std::string error_;
};

// Ends all streams that are being read and waits for their threads; from now on a new one is empty. For the
// exit of the interpreter.
void stop_streams() noexcept;
// Whether that has happened: nothing may request the interpreter any more.
bool streams_stopped() noexcept;

}  // namespace lance
