#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/arrow_abi.hpp"
#include "decode/page.hpp"

namespace lance {

// Sources to read instead of the ones that the columns were built with, for the bytes of one batch.
using Overlays = std::vector<std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>>>;

// All pages of one leaf in one file.
class LeafColumn {
 public:
  LeafColumn(std::string name, LeafType type, std::vector<LayerKind> path, std::vector<PagePtr> pages,
             std::shared_ptr<const Source> source);

  const std::string& name() const { return name_; }
  const LeafType& type() const { return type_; }
  const std::vector<LayerKind>& path() const { return path_; }
  const std::shared_ptr<const Source>& source() const { return source_; }
  uint64_t rows() const { return starts_.back(); }

  void decode_range(uint64_t begin, uint64_t end, const Overlays& overlays, LeafOutput& out,
                    Scratch& scratch) const;
  // `rows` ascending; a row may repeat.
  void decode_rows(const uint32_t* rows, size_t count, const Overlays& overlays, LeafOutput& out,
                   Scratch& scratch) const;
  std::vector<Range> metadata_ranges(uint64_t begin, uint64_t end) const;
  std::vector<Range> data_ranges(uint64_t begin, uint64_t end) const;

 private:
  template <typename Visit>
  void visit_pages(uint64_t begin, uint64_t end, Visit visit) const;
  const Source& source_for(const Overlays& overlays) const;
  void reserve(uint64_t begin, uint64_t end, LeafOutput& out) const;
  bool alias(const Page& page, const Source& source, uint64_t begin, uint64_t end, LeafOutput& out) const;

  std::string name_;
  LeafType type_;
  std::vector<LayerKind> path_;
  std::vector<PagePtr> pages_;
  std::vector<uint64_t> starts_;  // first row of each page, then the number of rows
  std::shared_ptr<const Source> source_;
};

using LeafColumnPtr = std::shared_ptr<const LeafColumn>;

// The shape of one top-level field over its leaves.
struct Node {
  enum class Kind : uint8_t { kLeaf, kStruct, kList, kLargeList };
  Kind kind;
  std::vector<std::shared_ptr<const Node>> children;
  LeafColumnPtr leaf;
};

using NodePtr = std::shared_ptr<const Node>;

// The columns of a projection; decodes them together into one Arrow struct array.
class Columns {
 public:
  explicit Columns(std::vector<NodePtr> fields);

  void decode_range(uint64_t begin, uint64_t end, const Overlays& overlays, ArrowArray& out) const;
  void decode_rows(const uint32_t* rows, size_t count, const Overlays& overlays, ArrowArray& out) const;
  const std::vector<LeafColumnPtr>& leaves() const { return leaves_; }

 private:
  void assemble(std::vector<LeafOutput>& outputs, uint64_t rows, ArrowArray& out) const;

  std::vector<NodePtr> fields_;
  std::vector<LeafColumnPtr> leaves_;
};

}  // namespace lance
