#include <nanobind/nanobind.h>

#include "bindings/bindings.hpp"

namespace nb = nanobind;

NB_MODULE(_kernels, m) {
  m.doc() = "Native kernels of lance_engine. Import them through lance_engine.kernels only.";
  // Users should not see warnings about what Python's caches still hold when the interpreter exits.
  nb::set_leak_warnings(false);
  lance::bind_errors(m);
  lance::bind_page_decoders(m);
  lance::bind_entries(m);
  lance::bind_decode(m);
  lance::bind_encode(m);
  lance::bind_gather(m);
  lance::bind_hash(m);
  lance::bind_jsonb(m);
  lance::bind_messages(m);
  lance::bind_search(m);
  lance::bind_stream(m);
  lance::bind_text(m);
  lance::bind_text_index(m);
}
