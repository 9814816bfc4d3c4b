#pragma once

#include <memory>
#include <vector>

#include "core/arrow_abi.hpp"
#include "core/bitmap.hpp"
#include "core/source.hpp"

namespace lance {

// An Arrow array in the making: owns its buffers and children until it is moved out.
class ArrayBuilder {
 public:
  explicit ArrayBuilder(uint64_t length) : held_(std::make_unique<Held>()), length_(length) {}

  uint64_t length() const { return length_; }
  void add_validity(Validity& validity);
  void add_all_valid() { held_->buffers.push_back(nullptr); }
  void add_buffer(Bytes&& bytes);
  void add_alias(Span bytes, std::shared_ptr<const Source> source);
  void add_child(ArrayBuilder&& child);
  // Makes decimals of 128 bits, which are all of the array, decimals of 64 bits: throws CorruptData where a
  // value that is not null has more bits.
  void narrow_decimals();
  // Makes lists of bytes strings: the values of the only child become its own values.
  void join_bytes();
  void set_dictionary(ArrayBuilder&& dictionary);
  // Hands everything over to `out`, whose release callback frees it.
  void move_to(ArrowArray& out);
  // The memory that an array handed over by `move_to` keeps; not what it aliases.
  static uint64_t owned_bytes(const ArrowArray& array);

 private:
  // Bytes of a source that stays open for them.
  struct Alias {
    Span bytes;
    std::shared_ptr<const Source> source;
  };
  // What an exported array points to. Children are separate arrays: a consumer may move one out and keep
  // it longer.
  struct Held {
    ~Held();
    std::vector<const void*> buffers;
    std::vector<Bytes> bytes;
    std::vector<Alias> aliases;
    std::vector<std::unique_ptr<ArrowArray>> children;
    std::vector<ArrowArray*> child_pointers;
    std::unique_ptr<ArrowArray> dictionary;
  };
  static void release(ArrowArray* array);

  std::unique_ptr<Held> held_;
  uint64_t length_;
  uint64_t null_count_ = 0;
};

}  // namespace lance
