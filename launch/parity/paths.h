// The paths by which the program computes log-probabilities, each by the functions of the engine
// that it uses in a run, a command or the server.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/generate/sampling_params.h"
#include "engine/models/decoder.h"
#include "launch/parity/values.h"

namespace troupe::launch::parity {

struct PathInputs {
  engine::models::Decoder& decoder;
  engine::ops::Precision precision;
  const engine::generate::SamplingParams& sampling;
  std::span<const Text> texts;
};

/// What a path promises about its values, compared with those of the path `score`.
enum class Promise : std::uint8_t { equal, bound, none };

struct Path {
  std::string_view name;
  std::string_view what;  ///< for the documentation
  Promise promise;
  bool samples;  ///< computes the tokens after the prompt only, by generating them
  bool trains;   ///< needs a decoder with gradients, into which it adds
  /// PathValues::texts.
  std::vector<TextValues> (*compute)(const PathInputs& in);
};

/// The first one is `score`, with which the others are compared.
std::span<const Path> paths();
/// nullptr: there is none of this name.
const Path* find_path(std::string_view name);

/// Continues prompts, each alone and token by token: texts of sampling.max_new_tokens more tokens,
/// or up to the model's maximum length. Collective over the decoder's ranks.
std::vector<Text> continue_prompts(const PathInputs& in);

/// Log-probabilities of the tokens `ids` at position `position` of a text: by scoring and by
/// generation, [ids] each.
struct VocabularyValues {
  std::vector<float> scored, generated;
};
VocabularyValues vocabulary_values(const PathInputs& in, const Text& text, std::int32_t position,
                                   const std::vector<std::int32_t>& ids);

}  // namespace troupe::launch::parity
