// The rules of the sampling chain, one function each. Semantics of transformers'
// generation/logits_process.py (classes named
// ...LogitsProcessor and ...LogitsWarper); frequency and presence penalties are the OpenAI API's.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "engine/generate/distribution.h"

namespace troupe::engine::generate::rules {

// Penalties and bans (penalties.cpp).
void prompt_repetition(Row& row, const Context& context);
void repetition(Row& row, const Context& context);
void frequency_and_presence(Row& row, const Context& context);
void no_repeat_ngram(Row& row, const Context& context);
void prompt_no_repeat_ngram(Row& row, const Context& context);
void min_new_tokens(Row& row, const Context& context);

// Words (words.cpp).
void sequence_bias(Row& row, const Context& context);
void bad_words(Row& row, const Context& context);
void forced_first(Row& row, const Context& context);
void forced_last(Row& row, const Context& context);
void length_decay(Row& row, const Context& context);
void suppress(Row& row, const Context& context);
void begin_suppress(Row& row, const Context& context);

// Filters. At least one token is always kept.
void temperature(Row& row, const Context& context);
void top_h(Row& row, const Context& context);
void top_k(Row& row, const Context& context);
void top_p(Row& row, const Context& context);
void min_p(Row& row, const Context& context);
void typical(Row& row, const Context& context);
void epsilon(Row& row, const Context& context);
void eta(Row& row, const Context& context);

void ban(Row& row, const std::set<std::int32_t>& ids);

/// Probabilities of row.kept, in its order; they add up to 1.
std::vector<double> probabilities(const Row& row);

}  // namespace troupe::engine::generate::rules
