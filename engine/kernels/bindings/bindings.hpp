#pragma once

#include <nanobind/nanobind.h>

namespace lance {

// Each topic binds its own classes and functions into the module.
void bind_errors(nanobind::module_& m);
void bind_decode(nanobind::module_& m);
void bind_encode(nanobind::module_& m);
void bind_entries(nanobind::module_& m);
void bind_gather(nanobind::module_& m);
void bind_hash(nanobind::module_& m);
void bind_jsonb(nanobind::module_& m);
void bind_messages(nanobind::module_& m);
void bind_page_decoders(nanobind::module_& m);
void bind_search(nanobind::module_& m);
void bind_stream(nanobind::module_& m);
void bind_text(nanobind::module_& m);
void bind_text_index(nanobind::module_& m);

}  // namespace lance
