// The rules of the sampling chain, one function each. Semantics of transformers' generation/logits_process.py (classes named
// ...LogitsProcessor and ...LogitsWarper); frequency and presence penalties are the OpenAI API's.
#pragma once

#include <vector>

#include "engine/generate/distribution.h"

namespace troupe::engine::generate::rules {

// Penalties and bans.
void repetition(Row& row, const Context& context);
void frequency_and_presence(Row& row, const Context& context);
void no_repeat_ngram(Row& row, const Context& context);
void min_new_tokens(Row& row, const Context& context);

// Filters. At least one token is always kept.
void temperature(Row& row, const Context& context);
void top_k(Row& row, const Context& context);
void top_p(Row& row, const Context& context);
void min_p(Row& row, const Context& context);
void typical(Row& row, const Context& context);
void epsilon(Row& row, const Context& context);

/// Probabilities of row.kept, in its order; they add up to 1.
std::vector<double> probabilities(const Row& row);

}  // namespace troupe::engine::generate::rules
