#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/source.hpp"
#include "decode/column.hpp"

namespace lance {

// A data file of version 2.1 or 2.2 that is mapped, or all of which was fetched. Throws as `open_pages`.
class DataFile {
 public:
  // `size` is what the manifest says; 0 where it does not.
  DataFile(std::shared_ptr<const Source> source, uint64_t size);

  const std::shared_ptr<const Source>& source() const { return source_; }
  std::vector<PagePtr> pages(uint32_t column) const;

 private:
  std::shared_ptr<const Source> source_;
  uint64_t column_table_ = 0;
  uint32_t num_columns_ = 0;
};

// Data files with the same columns, read as if the rows of one followed those of the other.
class DataFiles {
 public:
  struct Place {
    std::shared_ptr<const Source> source;
    uint64_t size;  // as for DataFile
    uint64_t rows;
  };
  explicit DataFiles(const std::vector<Place>& places);

  // The column with this number in every file, `per_row` items of which make a row.
  LeafColumnPtr leaf_column(std::string name, LeafType type, std::vector<Layer> path, uint32_t column,
                            uint64_t per_row) const;

 private:
  std::vector<DataFile> files_;
  std::vector<uint64_t> rows_;
};

}  // namespace lance
