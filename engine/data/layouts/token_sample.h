// Rows of token ids, with labels or masks.
#pragma once

#include "engine/data/layouts/sample.h"

namespace troupe::engine::data {

/// input_ids with labels, completion_mask, assistant_masks or loss_mask (of TRL and verl: 0 is not
/// trained on); of pairs chosen_input_ids and rejected_input_ids, alone or behind prompt_input_ids
/// (TRL). attention_mask, position_ids and seq_lengths must say that the row is one sequence
/// without padding. Errc::bad_input, without the location.
Result<Sample> token_sample(const Columns& row, const LayoutOptions& options);

}  // namespace troupe::engine::data
