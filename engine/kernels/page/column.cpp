#include "page/column.hpp"

#include "page/description.hpp"
#include "page/layout.hpp"

namespace lance {

namespace {

constexpr std::string_view kColumnEncoding = "lance.encodings.ColumnEncoding";
constexpr std::string_view kArrayEncoding = "lance.encodings.ArrayEncoding";
constexpr std::string_view kPageLayout = "lance.encodings21.PageLayout";

// Numbers of the alternatives of Encoding.
enum : uint64_t { kInPlace = 2, kAlternatives = 3 };

struct StoredEncoding {
  std::string_view name;
  Span message;
};

// The contents of an encoding that is stored in place.
StoredEncoding stored_encoding(const Message& encoding) {
  Message::Alternative found = encoding.alternative(kAlternatives);
  if (found.number != kInPlace) unsupported("an indirectly stored encoding is not supported");
  Message described = found.body.message(1);
  std::string_view url = described.text(1);
  size_t slash = url.rfind('/');
  if (slash == std::string_view::npos)
    throw CorruptData("an encoding has the malformed type name '" + printable(url) + "'");
  return {url.substr(slash + 1), described.bytes(2).value_or(Span{})};
}

std::vector<Range> buffers_of(const Message& message, uint32_t offsets_field, uint32_t sizes_field,
                              uint64_t file_size) {
  std::vector<uint64_t> offsets = message.numbers(offsets_field), sizes = message.numbers(sizes_field);
  check(offsets.size() == sizes.size(), "a page lists different numbers of buffer offsets and buffer sizes");
  std::vector<Range> buffers(offsets.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    check(offsets[i] <= file_size && sizes[i] <= file_size - offsets[i], "a page buffer is outside the file");
    buffers[i] = {offsets[i], sizes[i]};
  }
  return buffers;
}

// Calls with_page(); what it throws is about the page with this number.
template <typename WithPage>
auto on_page(uint64_t number, WithPage with_page) {
  try {
    return with_page();
  } catch (CorruptData& error) {
    error.page = static_cast<int64_t>(number);
    throw;
  } catch (Unsupported& error) {
    error.page = static_cast<int64_t>(number);
    throw;
  }
}

// A column whose pages hold its values.
StoredColumn column_of_values(Span metadata, uint64_t file_size) {
  StoredColumn column = stored_column(metadata, file_size);
  if (column.name != kColumnEncoding)
    unsupported("the column encoding '" + printable(column.name) + "' is not known");
  return column;
}

// The page that `open` makes of the message `name`, or `custom` of another.
template <typename Open>
PagePtr open_page(const StoredPage& page, std::string_view name, const OpenCustom& custom, Open open) {
  return on_page(page.number, [&] {
    if (page.name == name) return open(Message(page.message));
    PagePtr found = custom ? custom(page) : nullptr;
    if (!found) without_decoder(printable(page.name));
    return found;
  });
}

}  // namespace

StoredColumn stored_column(Span metadata, uint64_t file_size) {
  Message message(metadata);
  StoredEncoding described = stored_encoding(message.message(1));
  StoredColumn column{described.name, described.message, {}, buffers_of(message, 3, 4, file_size)};
  for (const Message& page : message.messages(2)) {
    const uint64_t number = column.pages.size();
    column.pages.push_back(on_page(number, [&] {
      StoredEncoding encoding = stored_encoding(page.message(4));
      return StoredPage{number,        page.number(3),   page.number(5),
                        encoding.name, encoding.message, buffers_of(page, 1, 2, file_size)};
    }));
  }
  return column;
}

std::vector<PagePtr> open_pages(Span metadata, uint64_t file_size, const OpenCustom& custom) {
  std::vector<PagePtr> pages;
  for (StoredPage& page : column_of_values(metadata, file_size).pages)
    pages.push_back(open_page(page, kPageLayout, custom, [&](const Message& layout) {
      return open_layout(layout, page.rows, page.buffers);
    }));
  return pages;
}

std::vector<PagePtr> open_array_pages(Span metadata, uint64_t file_size, const LeafType& type,
                                      bool is_dictionary, bool is_blob, const OpenCustom& custom) {
  std::vector<PagePtr> pages;
  StoredColumn column = column_of_values(metadata, file_size);
  for (const StoredPage& page : column.pages) {
    if (page.rows == 0) continue;
    pages.push_back(open_page(page, kArrayEncoding, custom, [&](const Message& encoding) {
      v2_0::ArrayContext context{page.buffers, column.buffers, type, is_dictionary};
      if (is_blob) return v2_0::open_blob(encoding, page.rows, context);
      return v2_0::open_array(encoding, page.rows, context);
    }));
  }
  return pages;
}

std::vector<v2_0::ListPage> open_list_pages(Span metadata, uint64_t file_size) {
  std::vector<v2_0::ListPage> pages;
  for (const StoredPage& page : column_of_values(metadata, file_size).pages) {
    if (page.rows == 0) continue;
    pages.push_back(on_page(page.number, [&] {
      if (page.name != kArrayEncoding) without_decoder(printable(page.name));
      std::optional<Message> list = v2_0::list_of(Message(page.message));
      if (!list) unsupported("a list whose offsets are stored in another way");
      v2_0::ArrayContext context{page.buffers, {}, {LeafKind::kFixed, 8, {}}, false};
      v2_0::ArrayDecoderPtr offsets =
          inside("list", [&] { return v2_0::array_decoder(list->message(1), context); });
      return v2_0::ListPage{page.rows, std::move(offsets), list->number(2), list->number(3)};
    }));
  }
  return pages;
}

std::optional<std::string> array_column_kind(Span metadata, uint64_t file_size) {
  StoredColumn column = column_of_values(metadata, file_size);
  if (column.pages.empty()) return std::nullopt;
  const StoredPage& first = column.pages.front();
  if (first.name != kArrayEncoding) return "";
  return on_page(0, [&] { return v2_0::array_kind(Message(first.message)); });
}

std::string describe_page(std::string_view name, Span message) {
  if (name == kPageLayout) return describe_layout(Message(message));
  if (name == kArrayEncoding) return v2_0::describe_array(Message(message));
  return std::string(name);
}

}  // namespace lance
