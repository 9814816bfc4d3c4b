#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/arrow_abi.hpp"
#include "decode/array_builder.hpp"
#include "decode/page.hpp"
#include "decode/selection.hpp"
#include "decode/string_numbers.hpp"

namespace lance {

// Sources to read instead of the ones that the columns were built with, for the bytes of one batch.
using Overlays = std::vector<std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>>>;

inline const Source& overlaid(const std::shared_ptr<const Source>& source, const Overlays& overlays) {
  for (const auto& [base, overlay] : overlays)
    if (base == source) return *overlay;
  return *source;
}

// All pages of one leaf, in one file or in several that are read as one.
class LeafColumn {
 public:
  // `sources` are those of the pages, one each.
  LeafColumn(std::string name, LeafType type, std::vector<Layer> path, std::vector<PagePtr> pages,
             std::vector<std::shared_ptr<const Source>> sources);

  const std::string& name() const { return name_; }
  const LeafType& type() const { return type_; }
  const std::vector<Layer>& path() const { return path_; }
  uint64_t rows() const { return starts_.back(); }
  bool gives_codes() const;
  // Entries of the largest dictionary of a page.
  uint64_t dictionary_entries() const;
  // There are no more distinct values than these: the entries of dictionaries, and other values.
  uint64_t most_distinct() const;
  // The most bytes that all dictionaries together can decode to.
  uint64_t dictionary_bytes() const;
  // Bytes in the file of the pages that have several values, and no dictionary.
  uint64_t plain_bytes() const;
  // Adds the strings of pages without a dictionary to a list, and all dictionaries if `dictionaries`.
  void number_pages(StringNumbers& strings, bool dictionaries) const;
  // First row of each page, then the number of rows.
  const std::vector<uint64_t>& page_starts() const { return starts_; }

  void decode(const Selection& selection, const Overlays& overlays, LeafOutput& out, Scratch& scratch) const;
  // What ascending ranges of rows need, neighbours as one.
  std::vector<Range> metadata_ranges(std::span<const RowRange> rows) const;
  std::vector<Range> data_ranges(std::span<const RowRange> rows) const;
  // Per page: the file ranges of all its parts.
  std::vector<std::vector<Range>> page_buffers() const;

 private:
  void decode_wanted(const RowRange& range, RowMask mask, const Overlays& overlays, LeafOutput& out,
                     Scratch& scratch) const;
  void reduce_range(uint64_t begin, uint64_t end, const Overlays& overlays, LeafOutput& out,
                    Scratch& scratch) const;
  void decode_range(uint64_t begin, uint64_t end, const Overlays& overlays, LeafOutput& out,
                    Scratch& scratch) const;
  void decode_rows(std::span<const uint32_t> rows, const Overlays& overlays, LeafOutput& out,
                   Scratch& scratch) const;
  template <typename Visit>
  void visit_all(Visit visit) const;
  template <typename Visit>
  void visit_pages(uint64_t begin, uint64_t end, Visit visit) const;
  void reserve(uint64_t begin, uint64_t end, LeafOutput& out) const;
  bool alias(const RowRange& range, const Overlays& overlays, LeafOutput& out) const;

  std::string name_;
  LeafType type_;
  std::vector<Layer> path_;
  std::vector<PagePtr> pages_;
  std::vector<uint64_t> starts_;
  std::vector<std::shared_ptr<const Source>> sources_;
};

using LeafColumnPtr = std::shared_ptr<const LeafColumn>;

// A field of a projection, nested ones with everything below them.
class Field {
 public:
  virtual ~Field() = default;
  // The selected slots as an Arrow array.
  virtual ArrayBuilder decode(const Selection& selection, const Overlays& overlays,
                              Scratch& scratch) const = 0;
  // Whether selections may have a mask.
  virtual bool takes_masks() const { return false; }
  // The same field, or the only value below structs of one field each, of which comes the outcome of a test;
  // null if it cannot be tested while decoding.
  virtual std::shared_ptr<const Field> tested(ValueTestPtr) const { return nullptr; }
  // The same field of decimals of 128 bits, which come in 64 bits; null if it decodes them at full width.
  virtual std::shared_ptr<const Field> narrowed() const { return nullptr; }
  // The same field of strings, of which come the numbers in a list; null for other fields.
  virtual std::shared_ptr<const Field> numbered(StringNumbersPtr) const { return nullptr; }
};

using FieldPtr = std::shared_ptr<const Field>;

// `inner`, whose arrays `alter` changes when they are decoded.
FieldPtr make_altered_field(FieldPtr inner, void (ArrayBuilder::*alter)());

// The columns of a projection; decodes them together into one Arrow struct array.
class Columns {
 public:
  explicit Columns(std::vector<FieldPtr> fields) : fields_(std::move(fields)) {}

  void decode(const Selection& selection, const Overlays& overlays, ArrowArray& out) const;
  // Whether all fields do.
  bool take_masks() const;
  // The same columns, of which those at `indices`, decimals of 128 bits, come in 64 bits.
  Columns narrowed(const std::vector<uint32_t>& indices) const;

 private:
  std::vector<FieldPtr> fields_;
};

}  // namespace lance
