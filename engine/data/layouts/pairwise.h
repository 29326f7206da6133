// Preference rows in their published forms: a prompt, a chosen and a rejected completion.
#pragma once

#include "engine/data/layouts/columns.h"
#include "engine/data/layouts/sample.h"

namespace troupe::engine::data {

/// Errc::bad_input, without the location.
Result<Sample> pairwise_sample(const Columns& row, const LayoutOptions& options);

/// Returns the row's "margin", a number, or nullopt. Errc::bad_input, without the location.
Result<std::optional<double>> margin_of(const Columns& row);

}  // namespace troupe::engine::data
