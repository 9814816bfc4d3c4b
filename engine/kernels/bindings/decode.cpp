#include "bindings/bindings.hpp"

namespace lance {

void bind_decode(nanobind::module_&) {}

}  // namespace lance
