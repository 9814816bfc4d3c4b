#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "core/memory.hpp"
#include "core/span.hpp"

namespace lance {

// Bytes that this thread looked at in files so far: what a decoding touched is the difference.
inline constinit thread_local uint64_t bytes_viewed = 0;

// The bytes of one file that are in memory. Decoders request absolute ranges.
class Source {
 public:
  virtual ~Source() = default;
  explicit Source(uint64_t size) : size_(size) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  uint64_t size() const { return size_; }
  // Identifies a file; the same for a source and those derived from it.
  virtual const void* identity() const { return this; }
  // Throws CorruptData past the end of the file and NotResident for a range that was not fetched.
  virtual Span view(uint64_t offset, uint64_t length) const = 0;
  // The same for a few bytes among many that nobody requests; they may be put into `room`, and then last
  // until it is used again.
  virtual Span pick(uint64_t offset, uint64_t length, Bytes& room) const {
    static_cast<void>(room);
    return view(offset, length);
  }
  // Throws NotResident where a range is missing that later batches will need as well.
  void require(uint64_t offset, uint64_t length) const;
  // Whether arrays may keep pointing into the source as long as they hold it.
  virtual bool aliasable() const { return false; }

 protected:
  void check_range(uint64_t offset, uint64_t length) const {
    check(offset <= size_ && length <= size_ - offset, "a range lies past the end of the file");
  }

 private:
  uint64_t size_;
};

// A local file, mapped read-only. Data files never change once written, so the mapping stays valid.
//
// The first touch of a mapped page costs about three times as much as a system call that copies the few bytes
// of a row. So the first picks from a window of the file are read, and only windows that are requested again
// and again are touched through the mapping, which from then on costs nothing.
class MappedSource : public Source {
 public:
  static std::shared_ptr<MappedSource> open(const std::string& path);
  ~MappedSource() override;
  Span view(uint64_t offset, uint64_t length) const override {
    check_range(offset, length);
    bytes_viewed += length;
    return {data_ + offset, length};
  }
  Span pick(uint64_t offset, uint64_t length, Bytes& room) const override;
  bool aliasable() const override { return true; }

 private:
  MappedSource(const uint8_t* data, uint64_t size, int file);
  // Counts a pick from the windows of a range, and returns whether it is one of the first from any of them.
  bool first_picks(uint64_t offset, uint64_t length) const;

  const uint8_t* data_;
  int file_;                                         // -1: everything goes through the mapping
  mutable std::vector<std::atomic<uint8_t>> picks_;  // per window
};

// Ranges fetched from a store, added one by one. Lookups go on to `parent` for what is not here, so that what
// one batch needs can be dropped with the batch while the metadata of the file stays.
class SegmentSource : public Source {
 public:
  explicit SegmentSource(uint64_t size) : Source(size) {}
  explicit SegmentSource(std::shared_ptr<const SegmentSource> parent)
      : Source(parent->size()), parent_(std::move(parent)) {}
  // Copies `bytes`. Adding a range again changes nothing; spans handed out stay valid as long as the source.
  void add(uint64_t offset, Span bytes);
  // The same without a copy: `owner` keeps the bytes.
  void share(uint64_t offset, Span bytes, std::shared_ptr<const void> owner);
  Span view(uint64_t offset, uint64_t length) const override;
  const void* identity() const override { return parent_ ? parent_->identity() : this; }
  bool holds(uint64_t offset, uint64_t length) const { return find(offset, length).data != nullptr; }

 private:
  struct Segment {
    Span bytes;
    std::shared_ptr<const void> owner;
  };

  Span find(uint64_t offset, uint64_t length) const;

  std::shared_ptr<const SegmentSource> parent_;
  mutable std::shared_mutex mutex_;
  std::multimap<uint64_t, Segment> segments_;
};

}  // namespace lance
