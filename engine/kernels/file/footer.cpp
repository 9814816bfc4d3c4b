#include "file/footer.hpp"

#include <cstring>
#include <string>

#include "page/description.hpp"

namespace lance {

namespace {

std::string_view version_of(uint16_t major, uint16_t minor) {
  // Files of version 2.0 say 0.3.
  if ((major == 0 && minor == 3) || (major == 2 && minor == 0)) return "2.0";
  if (major == 2 && minor == 1) return "2.1";
  if (major == 2 && minor == 2) return "2.2";
  unsupported("file version " + std::to_string(major) + "." + std::to_string(minor) + " is not supported");
}

}  // namespace

Footer parse_footer(Span tail, uint64_t file_size) {
  if (tail.size < Footer::kSize || std::memcmp(tail.data + tail.size - 4, "LANC", 4) != 0)
    throw CorruptData("This is not a Lance data file, or it is truncated: it does not end in 'LANC'");
  Span data = tail.sub(tail.size - Footer::kSize, Footer::kSize);
  Footer footer;
  const auto columns = data.at<uint64_t>(0);
  footer.column_table = data.at<uint64_t>(8);
  footer.global_table = data.at<uint64_t>(16);
  footer.num_global_buffers = data.at<uint32_t>(24);
  footer.num_columns = data.at<uint32_t>(28);
  footer.version = version_of(data.at<uint16_t>(32), data.at<uint16_t>(34));
  check(file_size >= Footer::kSize, "The file is too short");
  const uint64_t end = file_size - Footer::kSize;
  check(columns <= footer.column_table && footer.column_table <= end &&
            footer.num_columns <= (end - footer.column_table) / 16 && footer.global_table <= end &&
            footer.num_global_buffers <= (end - footer.global_table) / 16,
        "The footer points outside the file");
  return footer;
}

Range parse_table_entry(Span entry, uint64_t file_size) {
  check(entry.size == 16, "A table of offsets is truncated");
  const auto position = entry.at<uint64_t>(0), size = entry.at<uint64_t>(8);
  check(position <= file_size && size <= file_size - position, "A table of offsets points outside the file");
  return {position, size};
}

}  // namespace lance
