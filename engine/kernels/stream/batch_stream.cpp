#include "stream/batch_stream.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "decode/array_builder.hpp"

namespace lance {
namespace {

// Batches end at multiples of this, so that few chunks of a file are decoded twice.
constexpr uint64_t kAlignment = 8192;
// While the width of rows is unknown.
constexpr uint64_t kFirstRows = 32 << 10;
constexpr uint64_t kFirstBytes = 1 << 20;
// A batch of wide rows has fewer of them: so many bytes are enough to make the cost per batch small.
constexpr uint64_t kBatchBytes = 32 << 20;
// However little may be read ahead, batches are not cut smaller than this.
constexpr uint64_t kSmallBatchBytes = 1 << 20;

// So many small batches may wait for the consumer, who then need not be woken for each.
constexpr size_t kMostSlots = 64;

// This many batches are decoded before progress is reported.
// A waiting consumer checks this often whether it should stop.
constexpr std::chrono::milliseconds kBetweenChecks{20};
constexpr unsigned kBatchesToReport = 32;

std::atomic<bool> stopping{false}, all_stopped{false};

// Streams with threads, and how many threads there are.
struct Registry {
  std::mutex mutex;
  std::condition_variable idle;
  std::vector<std::weak_ptr<BatchStream>> streams;
  unsigned threads = 0;
};

Registry& registry() {
  static Registry* instance = new Registry;  // never destroyed: threads may outlive static destruction
  return *instance;
}

void enlist(const std::shared_ptr<BatchStream>& stream) {
  std::lock_guard lock(registry().mutex);
  std::erase_if(registry().streams, [](const auto& other) { return other.expired(); });
  registry().streams.push_back(stream);
}

// Keeps the rows [skip, skip + rows) of a batch.
void slice(ArrowArray& batch, uint64_t skip, uint64_t rows) {
  batch.length = static_cast<int64_t>(rows);
  for (int64_t i = 0; i < batch.n_children; ++i) {
    ArrowArray& child = *batch.children[i];
    child.offset += static_cast<int64_t>(skip);
    child.length = static_cast<int64_t>(rows);
    if (child.null_count != 0) child.null_count = -1;
  }
}

}  // namespace

BatchStream::BatchStream(std::unique_ptr<StreamHost> host, StreamOptions options)
    : host_(std::move(host)),
      options_(options),
      process_(static_cast<uint64_t>(getpid())),
      skip_(options.skip),
      left_(options.limit) {
  exhausted_ = left_ == 0;
}

BatchStream::~BatchStream() {
  Lock lock(mutex_);
  end(lock);
}

// The last report comes after those that other threads are still making: then the numbers are complete.
void BatchStream::end(Lock& lock) noexcept {
  if (reported_) return;
  reported_ = true;
  ready_.wait(lock, [&] { return reporting_ == 0; });
  report(lock, true);
}

void BatchStream::report(Lock& lock, bool last) noexcept {
  StreamStatistics statistics = std::exchange(statistics_, {});
  unreported_ = 0;
  ++reporting_;
  lock.unlock();
  try {
    host_->report(statistics, last);
  } catch (const std::exception&) {
    // Only statistics are lost; the rows are correct.
  }
  lock.lock();
  if (--reporting_ == 0) ready_.notify_all();
}

Batch BatchStream::next() {
  Batch batch;
  host_->unlocked([&] { batch = take(); });
  return batch;
}

Batch BatchStream::take() {
  host_->check();
  Lock lock(mutex_);
  if (process_ != static_cast<uint64_t>(getpid()))
    throw std::runtime_error("a stream of batches cannot be read on in a forked process");
  if (!started_) start(lock);
  while (true) {
    if (!error_.empty()) {
      end(lock);
      throw std::runtime_error(error_);
    }
    if (cancelled_ || left_ == 0 || (slots_.empty() && finished())) {
      end(lock);
      return {};
    }
    if (!slots_.empty() && slots_.front().done) {
      Slot& slot = slots_.front();
      if (!slot.batches.empty()) {
        Batch batch = std::move(slot.batches.front());
        slot.batches.pop_front();
        held_ -= batch.bytes;
        work_.notify_one();
        if (trim(batch)) return batch;
        continue;
      }
      error_ = std::move(slot.error);
      slots_.pop_front();
      if (!error_.empty()) cancelled_ = true;
      work_.notify_all();
      continue;
    }
    if (alive_ == 0 && step(lock)) continue;
    if (ready_.wait_for(lock, kBetweenChecks) == std::cv_status::timeout) check(lock);
  }
}

// Ends the stream if the waiting consumer should stop.
void BatchStream::check(Lock& lock) {
  lock.unlock();
  try {
    host_->check();
  } catch (const std::exception&) {
    cancel();
    throw;
  }
  lock.lock();
}

// Applies `skip` and `limit`; false if no rows of the batch are left.
bool BatchStream::trim(Batch& batch) {
  auto rows = static_cast<uint64_t>(batch.array.length);
  uint64_t skip = std::min(skip_, rows), kept = std::min(rows - skip, left_);
  skip_ -= skip;
  if (left_ != UINT64_MAX) left_ -= kept;
  if (left_ == 0) {
    cancelled_ = true;
    work_.notify_all();
  }
  if (kept != rows) slice(batch.array, skip, kept);
  statistics_.batches += kept > 0;
  statistics_.rows += kept;
  return kept > 0;
}

void BatchStream::cancel() noexcept {
  std::deque<Batch> dropped;
  {
    Lock lock(mutex_);
    cancelled_ = true;
    for (Slot& slot : slots_)
      if (slot.done) std::move(slot.batches.begin(), slot.batches.end(), std::back_inserter(dropped));
  }
  work_.notify_all();
  ready_.notify_all();
}

// Asks for tasks once before it starts threads: many scans have one batch.
void BatchStream::start(Lock& lock) {
  started_ = true;
  if (stopping) cancelled_ = true;
  if (cancelled_ || exhausted_) return;
  ask(lock);
  uint64_t rows = 0;
  for (const StreamTask& task : tasks_) rows += task.end - task.begin;
  if (cancelled_ || (exhausted_ && (rows <= options_.batch_rows || tasks_.size() == 0))) return;
  enlist(shared_from_this());
  try {
    while (alive_ < options_.threads) {
      start_thread();
      ++alive_;
    }
  } catch (const std::system_error&) {
    // Fewer threads, or none: then the consumer does the work.
  }
}

void BatchStream::start_thread() {
  std::lock_guard lock(registry().mutex);
  std::thread(run, shared_from_this()).detach();
  ++registry().threads;
}

void BatchStream::run(std::shared_ptr<BatchStream> self) {
  self->work();
  self.reset();
  std::lock_guard lock(registry().mutex);
  --registry().threads;
  registry().idle.notify_all();
}

void BatchStream::work() {
  Lock lock(mutex_);
  while (!cancelled_ && !finished())
    if (!step(lock)) work_.wait(lock);
  --alive_;
  ready_.notify_all();
}

// Does one piece of work, if one is ready.
bool BatchStream::step(Lock& lock) {
  if (cancelled_) return false;
  if (may_ask()) {
    ask(lock);
    return true;
  }
  if (!may_decode()) return false;
  decode_next(lock);
  return true;
}

void BatchStream::ask(Lock& lock) {
  asking_ = true;
  std::vector<StreamTask> tasks;
  std::string error;
  bool last = true;
  lock.unlock();
  try {
    last = !host_->more(tasks);
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  lock.lock();
  asking_ = false;
  exhausted_ = last;
  for (StreamTask& task : tasks)
    if (task.begin < task.end) tasks_.push_back(std::move(task));
  if (!error.empty()) {
    Slot& slot = slots_.emplace_back();
    slot.done = true;
    slot.error = std::move(error);
  }
  work_.notify_all();
  ready_.notify_all();
}

bool BatchStream::may_decode() const {
  if (tasks_.empty()) return false;
  if (slots_.empty()) return true;
  if (slots_.size() < 2 * options_.threads + 2) return held_ < options_.read_ahead;
  return held_ < std::min(options_.read_ahead, kSmallBatchBytes) && slots_.size() < kMostSlots;
}

// Takes rows for one batch off the front of the tasks.
StreamTask BatchStream::cut() {
  StreamTask& task = tasks_.front();
  uint64_t row_bytes = seen_rows_ ? seen_bytes_ / seen_rows_ : options_.row_bytes;
  uint64_t bytes = std::clamp(options_.read_ahead / (options_.threads + 1), kSmallBatchBytes, kBatchBytes);
  // The host makes batches of what it reads; only their bytes matter.
  uint64_t most = task.columns ? options_.batch_rows : UINT64_MAX;
  uint64_t rows = std::max<uint64_t>(1, std::min(most, bytes / std::max<uint64_t>(row_bytes, 1)));
  // The first rows show how large others are. That matters little for narrow ones, and calls of the host
  // take time.
  if (seen_rows_ == 0) {
    uint64_t narrow = task.columns ? 0 : kFirstBytes / std::max<uint64_t>(options_.row_bytes, 1);
    rows = std::min(rows, std::max(kFirstRows, narrow));
  }
  uint64_t end = std::min(task.end, task.begin + rows);
  uint64_t aligned = end / kAlignment * kAlignment;
  if (end < task.end && aligned > task.begin) end = aligned;
  StreamTask part = task;
  part.end = end;
  if (!task.divisible || end == task.end) {
    part.end = task.end;
    tasks_.pop_front();
  } else {
    task.begin = end;
  }
  return part;
}

void BatchStream::decode_next(Lock& lock) {
  StreamTask task = cut();
  Slot& slot = slots_.emplace_back();  // its address is stable: it cannot be taken before it is done
  uint64_t rows = task.end - task.begin;
  uint64_t guess = rows * (seen_rows_ ? seen_bytes_ / seen_rows_ : options_.row_bytes);
  held_ += guess;
  work_.notify_one();
  lock.unlock();
  std::vector<Batch> batches;
  std::string error;
  try {
    batches = decode(task);
  } catch (const std::exception& failure) {
    error = failure.what();
    if (error.empty()) error = "a batch could not be read";
  }
  lock.lock();
  held_ -= guess;
  seen_rows_ += rows;
  slot.error = std::move(error);
  for (Batch& batch : batches) {
    seen_bytes_ += batch.bytes;
    held_ += batch.bytes;
    slot.batches.push_back(std::move(batch));
  }
  slot.done = true;
  const bool first = &slot == &slots_.front();
  if (cancelled_) {
    // Taken under the lock, since `cancel` takes them too; freed without it.
    std::deque<Batch> dropped = std::exchange(slot.batches, {});
    lock.unlock();
    dropped.clear();
    lock.lock();
  }
  if (first || cancelled_) ready_.notify_all();  // nothing waits for later ones
  if (unreported_ >= kBatchesToReport && !cancelled_ && !reported_) report(lock, false);
}

std::vector<Batch> BatchStream::decode(const StreamTask& task) {
  if (!task.columns) return host_->read(task);
  try {
    const auto begin = std::chrono::steady_clock::now();
    const uint64_t before = bytes_viewed;
    RowRange range{task.begin, task.end};
    std::vector<Batch> batches(1);
    ArrowArray& array = batches[0].array;
    task.columns->decode(Selection::of(std::span<const RowRange>(&range, 1)), {}, array);
    batches[0].bytes = ArrayBuilder::owned_bytes(array);
    bool complete = std::all_of(task.required.begin(), task.required.end(),
                                [&](uint32_t child) { return array.children[child]->null_count == 0; });
    if (complete) {
      Lock lock(mutex_);
      if (array.n_children > 0) statistics_.decoded_rows += task.end - task.begin;
      ++unreported_;
      statistics_.bytes_read += bytes_viewed - before;
      statistics_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      return batches;
    }
  } catch (const std::exception&) {
    // The host tries again, and reports what is wrong.
  }
  return host_->read(task);
}

namespace {

// Behind an exported Arrow C stream.
struct Exported {
  std::shared_ptr<BatchStream> stream;
  SharedSchema schema;
  std::string error;
};

Exported& exported(ArrowArrayStream* stream) {
  return *static_cast<Exported*>(stream->private_data);
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  exported(stream).schema.copy_to(*out);
  return 0;
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  Exported& self = exported(stream);
  try {
    Batch batch = self.stream->next();
    *out = std::exchange(batch.array, {});
    return 0;
  } catch (const std::exception& error) {
    self.error = error.what();
    return EINVAL;
  }
}

const char* get_last_error(ArrowArrayStream* stream) {
  const std::string& error = exported(stream).error;
  return error.empty() ? nullptr : error.c_str();
}

void release_stream(ArrowArrayStream* stream) {
  auto* self = static_cast<Exported*>(stream->private_data);
  self->stream->cancel();
  delete self;
  stream->release = nullptr;
}

}  // namespace

void BatchStream::export_to(std::shared_ptr<BatchStream> stream, SharedSchema schema, ArrowArrayStream& out) {
  out = {get_schema, get_next, get_last_error, release_stream,
         new Exported{std::move(stream), std::move(schema), {}}};
}

void stop_streams() noexcept {
  stopping = true;
  std::vector<std::shared_ptr<BatchStream>> streams;
  std::unique_lock lock(registry().mutex);
  for (const auto& stream : registry().streams)
    if (auto alive = stream.lock()) streams.push_back(std::move(alive));
  registry().streams.clear();
  lock.unlock();
  for (const auto& stream : streams) stream->cancel();
  streams.clear();
  lock.lock();
  registry().idle.wait(lock, [] { return registry().threads == 0; });
  all_stopped = true;
}

bool streams_stopped() noexcept {
  return all_stopped;
}

}  // namespace lance
