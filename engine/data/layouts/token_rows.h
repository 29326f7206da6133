// Rows that are token ids already: input_ids and labels as in Hugging Face's collators (-100 is not
// trained on).
#pragma once

#include "engine/data/layouts/columns.h"
#include "engine/data/layouts/sample.h"

namespace troupe::engine::data {

/// Errc::bad_input, without the location.
Result<Sample> token_sample(const Columns& row, const LayoutOptions& options);

}  // namespace troupe::engine::data
