#include "file/data_file.hpp"

#include <utility>

#include "file/footer.hpp"
#include "page/column.hpp"

namespace lance {

DataFile::DataFile(std::shared_ptr<const Source> source, uint64_t size) : source_(std::move(source)) {
  uint64_t actual = source_->size();
  check(size == 0 || size == actual, "the file has another size than the manifest says");
  check(actual >= Footer::kSize, "the file is too short");
  const Footer footer = parse_footer(source_->view(actual - Footer::kSize, Footer::kSize), actual);
  check(footer.version != "2.0", "the file is of another version");
  column_table_ = footer.column_table;
  num_columns_ = footer.num_columns;
}

std::vector<PagePtr> DataFile::pages(uint32_t column) const {
  check(column < num_columns_, "the file has fewer columns than the manifest says");
  Span entry = source_->view(column_table_ + uint64_t{column} * 16, 16);
  const Range place = parse_table_entry(entry, source_->size());
  Span metadata = source_->view(place.offset, place.length);
  return open_pages(metadata, source_->size(), nullptr);
}

DataFiles::DataFiles(const std::vector<Place>& places) {
  files_.reserve(places.size());
  for (const Place& place : places) {
    files_.emplace_back(place.source, place.size);
    rows_.push_back(place.rows);
  }
}

LeafColumnPtr DataFiles::leaf_column(std::string name, LeafType type, std::vector<Layer> path,
                                     uint32_t column, uint64_t per_row) const {
  std::vector<PagePtr> pages;
  std::vector<std::shared_ptr<const Source>> sources;
  for (size_t i = 0; i < files_.size(); ++i) {
    uint64_t rows = 0;
    for (PagePtr& page : files_[i].pages(column)) {
      rows += page->rows();
      pages.push_back(std::move(page));
    }
    check(rows % per_row == 0 && rows / per_row == rows_[i], "a column has other rows than its fragment");
    sources.resize(pages.size(), files_[i].source());
  }
  return std::make_shared<LeafColumn>(std::move(name), std::move(type), std::move(path), std::move(pages),
                                      std::move(sources));
}

}  // namespace lance
