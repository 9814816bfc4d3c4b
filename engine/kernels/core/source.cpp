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

void Source::require(uint64_t offset, uint64_t length) const {
  try {
    view(offset, length);
  } catch (NotResident& missing) {
    missing.lasting = true;
    throw;
  }
}

std::shared_ptr<MappedSource> MappedSource::open(const std::string& path) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw std::system_error(errno, std::generic_category(), path);
  struct stat status;
  if (fstat(file, &status) != 0) {
    int error = errno;
    close(file);
    throw std::system_error(error, std::generic_category(), path);
  }
  auto size = static_cast<uint64_t>(status.st_size);
  void* area = nullptr;
  if (size > 0) {
    area = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    int error = errno;
    if (area == MAP_FAILED) {
      close(file);
      throw std::system_error(error, std::generic_category(), path);
    }
  }
  close(file);
  return std::shared_ptr<MappedSource>(new MappedSource(static_cast<const uint8_t*>(area), size));
}

MappedSource::~MappedSource() {
  if (data_) munmap(const_cast<uint8_t*>(data_), size());
}

void SegmentSource::add(uint64_t offset, Span bytes) {
  check_range(offset, bytes.size);
  if (holds(offset, bytes.size)) return;
  Bytes copy;
  copy_bytes(copy.extend(bytes.size), bytes.data, bytes.size);
#ifdef LANCE_SANITIZE
  // Decoders may write past the end of their output, but not read past the end of their input.
  ASAN_POISON_MEMORY_REGION(copy.data() + bytes.size, copy.capacity() + kSlack - bytes.size);
#endif
  std::unique_lock lock(mutex_);
  segments_.emplace(offset, std::move(copy));
}

Span SegmentSource::find(uint64_t offset, uint64_t length) const {
  {
    std::shared_lock lock(mutex_);
    for (auto after = segments_.upper_bound(offset); after != segments_.begin();) {
      auto& [start, bytes] = *--after;
      uint64_t inside = offset - start;
      if (inside <= bytes.size() && length <= bytes.size() - inside) return {bytes.data() + inside, length};
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
