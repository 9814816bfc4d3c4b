#include "bindings/bindings.hpp"

namespace lance {

void bind_encode(nanobind::module_&) {}

}  // namespace lance
