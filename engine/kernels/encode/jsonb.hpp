#pragma once

#include <cstdint>
#include <vector>

#include "core/span.hpp"
#include "encode/output.hpp"

namespace lance::jsonb {

// Makes binary JSON values of texts (RFC 8259); keeps its memory from one to the next.
class Writer {
 public:
  // Appends the value of a text. `Invalid` says what is wrong with the text, and at which byte.
  void append_value(Span text, encode::Output& output);

 private:
  struct Node {
    uint32_t kind = 0;    // of the entry
    uint32_t header = 0;  // of a container: what it is, and how many children it has
    uint64_t length = 0;  // what it takes, without its entry
    uint32_t first = 0;   // container: its first child, 0 if none exists; else: where its bytes begin
    uint32_t next = 0;    // the next child of the same container, 0 after the last
    uint32_t key = 0;     // where the bytes of its key begin
    uint32_t key_length = 0;
  };

  uint32_t parse_value(unsigned depth);
  uint32_t parse_container(bool is_object, unsigned depth);
  uint32_t parse_number();
  uint32_t parse_constant(const char* word, size_t length, uint32_t kind);
  void parse_string(uint32_t& begin, uint32_t& length);
  void parse_escape();
  uint32_t parse_hex();
  void sort_by_key(uint32_t container);
  uint32_t add_number(uint8_t kind, uint64_t bits, size_t width);
  uint32_t add(Node node);

  void write(const Node& node, encode::Output& output) const;
  void put_entry(uint32_t kind, uint64_t length, encode::Output& output) const;

  uint8_t peek();
  void expect(uint8_t wanted, const char* what);
  [[noreturn]] void fail(const char* what) const;

  Span text_;
  uint64_t at_ = 0;
  std::vector<Node> nodes_;     // number 0 is nobody
  std::vector<uint8_t> bytes_;  // of strings and numbers
  std::vector<uint32_t> order_;
};

}  // namespace lance::jsonb
