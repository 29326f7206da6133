#include "engine/generate/validate_request.h"

#include "engine/base/text/text.h"
#include "engine/generate/fast_sample.h"

namespace troupe::engine::generate {

Result<> validate_request(const Request& request, const models::DecoderSpec& spec, bool has_text) {
  const std::string where = cat("request ", request.id, ": ");
  if (auto ok = validate(request.params, spec.vocabulary); !ok)
    return fail(ok.error().code, where + ok.error().what);
  if (!request.params.stop_strings.empty() && !has_text) {
    return fail(
        Errc::usage,
        where + "stop strings need a tokenizer, and this generator has none; use stop_tokens");
  }
  const auto length = static_cast<std::int64_t>(request.prompt.size());
  if (length == 0)
    return fail(
        Errc::bad_input,
        where + "the prompt is empty; it must have at least one token (a BOS token will do)");
  if (length >= spec.max_positions) {
    return fail(Errc::bad_input,
                cat(where, "the prompt has ", length, " tokens, but the model is limited to ",
                    spec.max_positions, " tokens of prompt and output; shorten it"));
  }
  for (const std::int32_t id : request.prompt) {
    if (id < 0 || id >= spec.vocabulary) {
      return fail(Errc::bad_input,
                  cat(where, "token ", id, " is not in the vocabulary, which ends at ",
                      spec.vocabulary - 1));
    }
  }
  if (request.scored_from < 0 || request.scored_from > length)
    return fail(Errc::usage, cat(where, "scored_from is ", request.scored_from,
                                 "; expected a place of the prompt's ", length, " tokens"));
  for (const std::int32_t id : request.reported) {
    if (id >= 0 && id < spec.vocabulary) continue;
    return fail(Errc::bad_input,
                cat(where, "the reported token ", id, " is not in the vocabulary, which ends at ",
                    spec.vocabulary - 1));
  }
  return {};
}

std::vector<std::int32_t> end_tokens(const SamplingParams& params,
                                     const std::vector<std::int32_t>& eos_ids) {
  std::vector<std::int32_t> ends = params.stop_tokens;
  if (!params.ignore_eos) ends.insert(ends.end(), eos_ids.begin(), eos_ids.end());
  return ends;
}

void require_finite_logits(std::span<const float> row, const Request& request,
                           std::size_t position) {
  const std::int64_t bad = first_nonfinite(row);
  if (bad < 0) return;
  throw Failure(Error{
      Errc::bad_input,
      cat("generate: request ", request.id, " (sample ", request.sample_id, "), position ",
          position, ": the logit of token ", bad, " is ",
          double{row[static_cast<std::size_t>(bad)]},
          ", expected a finite number; the weights are damaged or the training has diverged")});
}

}  // namespace troupe::engine::generate
