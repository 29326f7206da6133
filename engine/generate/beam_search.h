// Beam search over a Decoder: the sequences of the highest score that a few beams find, equal to
// transformers' (beam_selection.h has the rules). Beams share the pages of what they have in
// common; a page with two holders is copied before one of them writes to it.
#pragma once

#include <vector>

#include "engine/base/error.h"
#include "engine/generate/generator.h"

namespace troupe::engine::generate {

/// The params' beams.returned best sequences, best first; fewer where bans leave fewer. Each has
/// its `score`, and `logp` as Generator gives it, bit for bit; `sampling_logp` is the same, `top`
/// and `versions` are empty. Stop strings end a sequence as end tokens do. Of `config`: page_size,
/// pages (0: what the search needs, at most 8 GiB), tokens_per_step, precision, eos_ids and decode;
/// on_token is not called, as no token is certain before the end. Errc::usage, bad_input as
/// Generator::submit, and for params that draw; full when the cache has no room. Throws Failure
/// when a logit is not finite, or the rules ban every token of every beam.
Result<std::vector<Generation>> beam_search(models::Decoder& decoder, const Request& request,
                                            const GeneratorConfig& config);

}  // namespace troupe::engine::generate
