#include "launch/run/starting_model.h"

#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"

namespace troupe::launch {

Result<> want_head(engine::models::DecoderSpec& spec, const std::string& folder,
                   const ScoreHeadWanted& wanted) {
  if (spec.labels == wanted.labels) return {};
  if (wanted.labels == 0)
    return fail(Errc::usage,
                cat(folder, ": expected a language model, found one with a score head of ",
                    spec.labels, " labels"));
  if (spec.labels != 0)
    return fail(Errc::usage, cat(folder, ": expected a language model or a score head of ",
                                 wanted.labels, " labels, found one of ", spec.labels));
  spec.labels = wanted.labels, spec.score_bias = wanted.bias, spec.tied = false;
  return {};
}

Result<std::unique_ptr<engine::models::Decoder>> load_starting_model(
    engine::ops::Device& device, const std::string& folder, const ScoreHeadWanted& wanted,
    std::uint64_t seed, engine::parallel::Communicator* tp) {
  auto spec = engine::checkpoint::read_folder_spec(folder);
  RETURN_IF_ERROR(spec);
  const bool fresh = spec->labels == 0 && wanted.labels > 0;
  RETURN_IF_ERROR(want_head(*spec, folder, wanted));
  auto model = engine::checkpoint::load_decoder(device, folder, std::move(*spec), true, tp);
  if (model && fresh && wanted.deviation > 0)
    engine::checkpoint::draw_score_head(**model, wanted.deviation, seed);
  return model;
}

}  // namespace troupe::launch
