#include "file/data_file.hpp"

#include <cstring>
#include <utility>

#include "page/column.hpp"

namespace lance {

namespace {

// The last bytes of a file (format 2.0, container).
constexpr uint64_t kFooterSize = 40;

}  // namespace

DataFile::DataFile(std::shared_ptr<const Source> source, uint64_t size) : source_(std::move(source)) {
  uint64_t actual = source_->size();
  check(size == 0 || size == actual, "the file has another size than the manifest says");
  check(actual >= kFooterSize, "the file is too short");
  Span footer = source_->view(actual - kFooterSize, kFooterSize);
  auto columns = footer.at<uint64_t>(0);
  column_table_ = footer.at<uint64_t>(8);
  auto global_table = footer.at<uint64_t>(16);
  auto num_global = footer.at<uint32_t>(24);
  num_columns_ = footer.at<uint32_t>(28);
  auto major = footer.at<uint16_t>(32), minor = footer.at<uint16_t>(34);
  check(std::memcmp(footer.data + 36, "LANC", 4) == 0, "the file does not end in 'LANC'");
  check(major == 2 && (minor == 1 || minor == 2), "the file is of another version");
  const uint64_t end = actual - kFooterSize;
  check(columns <= column_table_ && column_table_ <= end && num_columns_ <= (end - column_table_) / 16 &&
            global_table <= end && num_global <= (end - global_table) / 16,
        "the footer points outside the file");
}

std::vector<PagePtr> DataFile::pages(uint32_t column) const {
  check(column < num_columns_, "the file has fewer columns than the manifest says");
  Span entry = source_->view(column_table_ + uint64_t{column} * 16, 16);
  Span metadata = source_->view(entry.at<uint64_t>(0), entry.at<uint64_t>(8));
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
