#include "core/source.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <system_error>

#ifdef LANCE_SANITIZE
#include <sanitizer/asan_interface.h>
#endif

namespace lance {
namespace {

// What one fault maps around its page on Linux, where the page cache has it.
constexpr uint64_t kWindow = 64 << 10;
constexpr uint8_t kPicksBeforeMapping = 3;
// Longer ranges cost more to copy than to map.
constexpr uint64_t kLongestPick = 16 << 10;
// A file of few windows is soon mapped altogether; and processes may open about a thousand files only.
#ifdef LANCE_SANITIZE
constexpr uint64_t kSmallestToPick = 1;  // damaged files of tests are small
#else
constexpr uint64_t kSmallestToPick = 4 << 20;
#endif
constexpr int kMostOpenFiles = 128;
std::atomic<int> open_files{0};

bool keep_open(uint64_t size) {
  if (size < kSmallestToPick) return false;
  if (open_files.fetch_add(1) < kMostOpenFiles) return true;
  open_files.fetch_sub(1);
  return false;
}

}  // namespace

void Source::require(uint64_t offset, uint64_t length) const {
  try {
    view(offset, length);
  } catch (NotResident& missing) {
    missing.lasting = true;
    throw;
  }
}

std::shared_ptr<MappedSource> MappedSource::open(const std::string& path) {
  // Opening a pipe would wait for its other end.
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) throw std::system_error(errno, std::generic_category(), path);
  struct stat status;
  int error = fstat(file, &status) != 0 ? errno : S_ISREG(status.st_mode) ? 0 : EINVAL;
  if (error != 0) {
    close(file);
    throw std::system_error(error, std::generic_category(), path);
  }
  auto size = static_cast<uint64_t>(status.st_size);
  void* area = nullptr;
  if (size > 0) {
    area = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    error = errno;
    if (area == MAP_FAILED) {
      close(file);
      throw std::system_error(error, std::generic_category(), path);
    }
  }
  if (!keep_open(size)) {
    close(file);
    file = -1;
  }
  return std::shared_ptr<MappedSource>(new MappedSource(static_cast<const uint8_t*>(area), size, file));
}

MappedSource::MappedSource(const uint8_t* data, uint64_t size, int file)
    : Source(size), data_(data), file_(file), picks_(file < 0 ? 0 : size / kWindow + 1) {}

MappedSource::~MappedSource() {
  if (data_) munmap(const_cast<uint8_t*>(data_), size());
  if (file_ < 0) return;
  close(file_);
  open_files.fetch_sub(1);
}

bool MappedSource::first_picks(uint64_t offset, uint64_t length) const {
  bool first = false;
  for (uint64_t window = offset / kWindow; window <= (offset + length - 1) / kWindow; ++window) {
    std::atomic<uint8_t>& picks = picks_[window];
    const uint8_t before = picks.load(std::memory_order_relaxed);
    if (before >= kPicksBeforeMapping) continue;
    picks.store(before + 1, std::memory_order_relaxed);
    first = true;
  }
  return first;
}

Span MappedSource::pick(uint64_t offset, uint64_t length, Bytes& room) const {
  Span mapped = view(offset, length);
  if (file_ < 0 || length == 0 || length > kLongestPick || !first_picks(offset, length)) return mapped;
  room.clear();
  const ssize_t got = pread(file_, room.extend(length), length, static_cast<off_t>(offset));
  // If the file can't be read in one piece, the mapping handles it.
  return got == static_cast<ssize_t>(length) ? Span{room.data(), length} : mapped;
}

void SegmentSource::add(uint64_t offset, Span bytes) {
  check_range(offset, bytes.size);
  if (holds(offset, bytes.size)) return;
  auto copy = std::make_shared<Bytes>();
  copy_bytes(copy->extend(bytes.size), bytes.data, bytes.size);
#ifdef LANCE_SANITIZE
  // Decoders may write past the end of their output, but not read past the end of their input.
  ASAN_POISON_MEMORY_REGION(copy->data() + bytes.size, copy->capacity() + kSlack - bytes.size);
#endif
  Span copied{copy->data(), bytes.size};
  std::unique_lock lock(mutex_);
  segments_.emplace(offset, Segment{copied, std::move(copy)});
}

void SegmentSource::share(uint64_t offset, Span bytes, std::shared_ptr<const void> owner) {
  check_range(offset, bytes.size);
  if (holds(offset, bytes.size)) return;
  std::unique_lock lock(mutex_);
  segments_.emplace(offset, Segment{bytes, std::move(owner)});
}

Span SegmentSource::find(uint64_t offset, uint64_t length) const {
  {
    std::shared_lock lock(mutex_);
    for (auto after = segments_.upper_bound(offset); after != segments_.begin();) {
      auto& [start, segment] = *--after;
      uint64_t inside = offset - start;
      if (inside <= segment.bytes.size && length <= segment.bytes.size - inside)
        return {segment.bytes.data + inside, length};
    }
  }
  return parent_ ? parent_->find(offset, length) : Span{};
}

Span SegmentSource::view(uint64_t offset, uint64_t length) const {
  check_range(offset, length);
  static const uint8_t nothing[kSlack] = {};
  if (length == 0) return {nothing, 0};
  Span found = find(offset, length);
  if (!found.data) throw NotResident(identity(), offset, length);
  return found;
}

}  // namespace lance
