// Beam search over a Decoder, with the results of transformers (beam_selection.h has the rules).
// Beams share the pages of common prefixes; a shared page is copied before a beam writes to it.
#pragma once

#include <vector>

#include "engine/base/errors/error.h"
#include "engine/generate/generator.h"

namespace troupe::engine::generate {

/// Returns the beams.returned best sequences, best first; fewer where bans leave fewer. Each has
/// its `score`, and `logp` with the bits of Generator; `sampling_logp` equals it, `top` and
/// `versions` are empty. Stop strings end a sequence as end tokens do. Uses page_size, pages (0: as
/// many as needed, at most 8 GiB), tokens_per_step, precision, eos_ids and decode of `config`;
/// on_token is not called, since no token is final before the end. Params that sample draw the
/// continuations by (seed, sample_id, position, beam, token), after filters, which then change the
/// scores. Errors of Generator::submit; full when the cache is too small; cancelled at a stop
/// (GeneratorConfig). Throws Failure when a logit is not finite or every token of every beam is
/// banned.
Result<std::vector<Generation>> beam_search(models::Decoder& decoder, const Request& request,
                                            const GeneratorConfig& config);

}  // namespace troupe::engine::generate
