#include "file/data_file.hpp"

#include <cstring>
#include <string_view>

#include "core/protobuf.hpp"
#include "file/page_layout.hpp"

namespace lance {

namespace {

// The last bytes of a file (format 2.0, container).
constexpr uint64_t kFooterSize = 40;

void understand(bool ok, const char* what) {
  if (!ok) [[unlikely]]
    throw NotUnderstood(what);
}

std::string_view text(Span bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

// What an encoding that is stored in place holds: the bytes of a message of the type `name`.
Span stored_in_place(const Message& encoding, std::string_view name) {
  understand(encoding.alternative() == 2, "an encoding is stored in another way");
  Message described(encoding.message(2).message(1));
  std::string_view type = text(described.bytes(1).value_or(Span{}));
  size_t slash = type.rfind('/');
  understand(slash != std::string_view::npos && type.substr(slash + 1) == name,
             "an encoding is of another type");
  return described.bytes(2).value_or(Span{});
}

std::vector<Range> buffers_of(const Message& page, uint64_t file_size) {
  std::vector<uint64_t> offsets = page.numbers(1), sizes = page.numbers(2);
  understand(offsets.size() == sizes.size(), "a page has another number of buffer offsets than of sizes");
  std::vector<Range> buffers(offsets.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    understand(offsets[i] <= file_size && sizes[i] <= file_size - offsets[i],
               "a buffer lies outside the file");
    buffers[i] = {offsets[i], sizes[i]};
  }
  return buffers;
}

}  // namespace

std::vector<PagePtr> make_pages(Span metadata, uint64_t file_size) {
  Message column(metadata);
  stored_in_place(column.message(1), "lance.encodings.ColumnEncoding");
  std::vector<PagePtr> pages;
  for (const Message& page : column.messages(2)) {
    Span layout = stored_in_place(page.message(4), "lance.encodings21.PageLayout");
    pages.push_back(make_page(layout, page.number(3), buffers_of(page, file_size)));
  }
  return pages;
}

DataFile::DataFile(const std::string& path, uint64_t size) : source_(MappedSource::open(path)) {
  uint64_t actual = source_->size();
  understand(size == 0 || size == actual, "the file has another size than the manifest says");
  understand(actual >= kFooterSize, "the file is too short");
  Span footer = source_->view(actual - kFooterSize, kFooterSize);
  auto columns = footer.at<uint64_t>(0);
  column_table_ = footer.at<uint64_t>(8);
  auto global_table = footer.at<uint64_t>(16);
  auto num_global = footer.at<uint32_t>(24);
  num_columns_ = footer.at<uint32_t>(28);
  auto major = footer.at<uint16_t>(32), minor = footer.at<uint16_t>(34);
  understand(std::memcmp(footer.data + 36, "LANC", 4) == 0, "the file does not end in 'LANC'");
  understand(major == 2 && (minor == 1 || minor == 2), "the file is of another version");
  const uint64_t end = actual - kFooterSize;
  understand(columns <= column_table_ && column_table_ <= end && num_columns_ <= (end - column_table_) / 16 &&
                 global_table <= end && num_global <= (end - global_table) / 16,
             "the footer points outside the file");
}

std::vector<PagePtr> DataFile::pages(uint32_t column) const {
  understand(column < num_columns_, "the file has fewer columns than the manifest says");
  Span entry = source_->view(column_table_ + uint64_t{column} * 16, 16);
  Span metadata = source_->view(entry.at<uint64_t>(0), entry.at<uint64_t>(8));
  return make_pages(metadata, source_->size());
}

DataFiles::DataFiles(const std::vector<Place>& places) {
  files_.reserve(places.size());
  for (const Place& place : places) {
    files_.emplace_back(place.path, place.size);
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
    understand(rows % per_row == 0 && rows / per_row == rows_[i],
               "a column has other rows than its fragment");
    sources.resize(pages.size(), files_[i].source());
  }
  return std::make_shared<LeafColumn>(std::move(name), std::move(type), std::move(path), std::move(pages),
                                      std::move(sources));
}

}  // namespace lance
