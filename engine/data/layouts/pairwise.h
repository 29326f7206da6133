// Preference rows: a prompt, a chosen and a rejected completion, in the ways that they are
// published.
#pragma once

#include "engine/data/layouts/columns.h"
#include "engine/data/layouts/sample.h"

namespace troupe::engine::data {

/// Errc::bad_input, without the place.
Result<Sample> pairwise_sample(const Columns& row, const LayoutOptions& options);

/// The row's "margin", a number; nothing when it has none. Errc::bad_input, without the place.
Result<std::optional<double>> margin_of(const Columns& row);

}  // namespace troupe::engine::data
