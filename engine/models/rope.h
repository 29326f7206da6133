// Rotary positions with the scaling rules of config.json, in both layouts: "rope_parameters"
// (transformers 5) and "rope_theta" with "rope_scaling" (version 4).
#pragma once

#include "engine/models/config_reader.h"
#include "engine/models/spec.h"

namespace troupe::engine::models {

/// What a family means where its config.json is silent, and what it can.
struct RopeStyle {
  double theta = 10000;         ///< of an absent rope_theta
  double partial = 1;           ///< of an absent partial_rotary_factor
  bool may_be_partial = false;  ///< only some channels of a head turn
  bool interleaved = false;     ///< files order channels as pairs (2i, 2i + 1)
};

/// Sets the one rotary table of a spec, the order of its heads in the files and, where scaling
/// makes room for more, max_positions. Known types: default, linear (kaiokendev's interpolation),
/// dynamic (NTK-aware), yarn (Peng et al. 2023, arXiv:2309.00071), longrope (Ding et al. 2024; also
/// as "su"), llama3 (Dubey et al. 2024). Another type is Errc::unsupported, by name.
void read_rotary(ConfigReader& in, DecoderSpec& spec, const RopeStyle& style = {});

/// One table from an object that is in both layouts' form: "rope_theta", "rope_type" and the type's
/// fields stand in it.
nn::RotarySpec read_rotary_table(ConfigReader& in, const Json& parameters, DecoderSpec& spec,
                                 const RopeStyle& style);

}  // namespace troupe::engine::models
