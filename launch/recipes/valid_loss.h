// A loss from its settings, refused where they make no sense.
#pragma once

#include <string>
#include <utility>

#include "engine/base/fields.h"

namespace troupe::launch {

/// `fields` as the loss names them; absent ones keep their defaults. Errc::usage: a word or a
/// number that the loss refuses.
template <class L>
Result<L> valid_loss(const Json& fields, const std::string& where) {
  auto loss = fields_from_json<L>(fields, where);
  if (!loss) return loss;
  RETURN_IF_ERROR(loss->validate());
  return loss;
}

}  // namespace troupe::launch
