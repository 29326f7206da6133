// What stands on a decoder, in the words of config.json: a language head (*ForCausalLM), or scores
// of a sequence or of every token
// (*ForSequenceClassification, *ForTokenClassification), whose linear layer transformers calls
// "score".
#pragma once

#include <string>
#include <string_view>

#include "engine/models/spec.h"

namespace troupe::engine::models {

/// The first of "architectures", or "".
std::string architecture_of(const Json& config);
/// Whether this follows a family's stem in the name of a model with a score head:
/// "ForSequenceClassification", "ForTokenClassification".
bool is_score_head(std::string_view suffix);

/// Sets labels and score_bias of a spec from "architectures", "id2label" and "num_labels" (2 when
/// neither is there, as in transformers). "problem_type" says how transformers would train the
/// head, and changes no score. Errc::bad_input.
Result<> read_head(const Json& config, const std::string& where, DecoderSpec& spec);

/// Makes a config.json say that the model has a score head: with a bias, one of tokens, else one of
/// sequences. Names of labels stay where there are as many as that.
void write_head(Json& config, int labels, bool bias);

}  // namespace troupe::engine::models
