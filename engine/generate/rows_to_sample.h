// The rows of a plan whose next tokens are sampled.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/generate/batch_sampler.h"
#include "engine/generate/scheduler.h"
#include "engine/generate/sequence_state.h"

namespace troupe::engine::generate {

/// The row of the last token of each sequence whose known tokens are computed, and those of its
/// draft. Both must outlive the result. `mask_work`: for the masks of drafts, which end where it is
/// not enough; reduced by the work. Throws RequestFailure where a constraint leaves no token.
std::vector<RowToSample> rows_to_sample(const ScheduledStep& plan, const SequenceStates& sequences,
                                        std::uint64_t& mask_work);

}  // namespace troupe::engine::generate
