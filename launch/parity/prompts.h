// The prompts of a comparison.
#pragma once

#include <vector>

#include "engine/parallel/communicator.h"
#include "launch/model/model.h"
#include "launch/parity/settings.h"

namespace troupe::launch::parity {

/// Of the file ParityOptions::data, or random ones, of which every second one begins as the one
/// before. The same for the same options. Errors of reading; Errc::bad_input for a line that is no
/// prompt of the model, Errc::usage where there are none.
Result<std::vector<Text>> prompts_of(const Settings& settings, model::Model& model);

/// Sends the texts of rank 0 to the others. Collective.
void share_texts(engine::parallel::Communicator& world, std::vector<Text>& texts);

}  // namespace troupe::launch::parity
