#pragma once

#include <memory>

#include "core/arrow_abi.hpp"

namespace lance {

// An Arrow schema that can be handed out any number of times.
class SharedSchema {
 public:
  // Moves `schema` in; it is left released.
  explicit SharedSchema(ArrowSchema& schema);
  // Fills `out` with a schema of independent lifetime. Strings are shared, as long as a copy lives.
  void copy_to(ArrowSchema& out) const;

 private:
  std::shared_ptr<const ArrowSchema> schema_;
};

}  // namespace lance
