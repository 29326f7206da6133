// Rotary embeddings with the scaling types of config.json, in both layouts: "rope_parameters"
// (transformers 5) and "rope_theta" with "rope_scaling" (version 4).
#pragma once

#include "engine/models/config_reader.h"
#include "engine/models/spec.h"

namespace troupe::engine::models {

/// Defaults of a family for fields absent from config.json, and what it supports.
struct RopeStyle {
  double theta = 10000;         ///< default of rope_theta
  double partial = 1;           ///< default of partial_rotary_factor
  bool may_be_partial = false;  ///< allows other values of partial_rotary_factor
  bool interleaved = false;     ///< the files order channels as pairs (2i, 2i + 1)
  /// Names of version 4 for rope_theta and partial_rotary_factor.
  const char* theta_name = "rope_theta";
  const char* partial_name = "partial_rotary_factor";
};

/// Sets the rotary table of a spec, the channel order of its heads in the files and, where scaling
/// extends it, max_positions. Known types: default, linear (kaiokendev's interpolation),
/// dynamic (NTK-aware), yarn (Peng et al. 2023, arXiv:2309.00071), longrope (Ding et al. 2024; also
/// as "su"), llama3 (Dubey et al. 2024). Other types are Errc::unsupported.
void read_rotary(ConfigReader& in, DecoderSpec& spec, const RopeStyle& style = {});

/// Sets two tables: 0 for layers that attend to all keys, 1 for those with a window, and their
/// numbers in spec.layer. Version 5 has an object for each type of layer in rope_parameters; where
/// there is none, table 1 has the parameters `sliding` and table 0 is read as by read_rotary().
void read_rotary_by_layer(ConfigReader& in, DecoderSpec& spec, const RopeStyle& style,
                          const Json& sliding, const RopeStyle& sliding_style);

/// Reads one table from an object with "rope_theta", "rope_type" and the fields of that type.
nn::RotarySpec read_rotary_table(ConfigReader& in, const Json& parameters, DecoderSpec& spec,
                                 const RopeStyle& style);

}  // namespace troupe::engine::models
