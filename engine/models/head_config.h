// The head of a decoder in config.json: a language head (*ForCausalLM), or a score head for
// sequences or for tokens (*ForSequenceClassification, *ForTokenClassification), whose linear layer
// transformers calls "score".
#pragma once

#include <string>
#include <string_view>

#include "engine/models/spec.h"

namespace troupe::engine::models {

/// The first of "architectures", or "".
std::string architecture_of(const Json& config);
/// Whether `suffix` names a score head: "ForSequenceClassification" or "ForTokenClassification".
bool is_score_head(std::string_view suffix);

/// Sets labels and score_bias of a spec from "architectures", "id2label" and "num_labels" (default
/// 2, as in transformers). "problem_type" is validated; it does not affect scores. Errc::bad_input.
Result<> read_head(const Json& config, const std::string& where, DecoderSpec& spec);

/// Sets the architecture of a config.json to one with a score head: for tokens with `bias`, for
/// sequences without. Keeps the names of the labels where their number matches.
void write_head(Json& config, int labels, bool bias);

}  // namespace troupe::engine::models
