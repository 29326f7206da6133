// Examples as JSON, for `troupe explain --examples`.
#pragma once

#include "launch/commands/explain/data_preview.h"
#include "launch/commands/explain/token_runs.h"

namespace troupe::launch::commands {

/// {"sequences": [{"name"?, "parts"?: [{"role", "text", "trained", "weight"?, "label"?, members of
/// the message...}], "runs": [{"text", "trained", "weight"?, "ids"}]}], "tools"?, "answer"?,
/// "margin"?, "classes"?}. Parts are the texts of the row; runs are what the model reads of them,
/// within train.max_length: the tokens of the template, the texts, and the end token. A weight is
/// given where it is neither 0 nor 1.
Json example_json(const ShownExample& example, const TokenText& text);

}  // namespace troupe::launch::commands
