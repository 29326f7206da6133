// Storage of a decoder's parameters in the files of its family. In memory every family has the
// names and the layout of Llama; loading and saving convert with the types below.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/models/spec.h"

namespace troupe::engine::models {

/// Consecutive rows of a stored tensor that belong to one parameter; a vector is one column.
struct Rows {
  std::string parameter;
  std::int64_t first = 0,
               count = 0;  ///< of the parameter: whole heads where their order differs
  HeadOrder order = {};    ///< order of the rows of each head in the file

  /// Row of the parameter that the file stores at index `stored` (0 .. count - 1) of these rows.
  std::int64_t row(std::int64_t stored) const;
};

/// One tensor of the files: blocks of rows of parameters, concatenated.
struct StoredTensor {
  std::string name;
  bool transposed = false;  ///< stored transposed (Conv1D of GPT-2)
  std::vector<Rows> rows;
  std::int64_t columns = 1;
  bool vector = false;  ///< has one axis
  /// Size of one more axis, the first, over which the rows are divided; 0: there is none.
  std::int64_t stacked = 0;
  /// Its axes where they are not those that follow from the rows; as many values.
  std::vector<std::int64_t> axes = {};

  std::int64_t row_count() const;
  std::vector<std::int64_t> shape() const;  ///< in the file
  /// Whether it is one parameter, possibly renamed, without any conversion.
  bool plain() const;
};

/// Several modules of a layer stored as one tensor.
struct Fusion {
  enum class Order {
    blocks,  ///< all rows of the first module, then of the second, ...
    groups,  ///< for each key/value head: its query heads, its key head, its value head
  };
  std::string module;              ///< "self_attn.qkv_proj", inside a layer
  std::vector<std::string> parts;  ///< "self_attn.q_proj", ..., the canonical modules
  Order order = Order::blocks;
  std::int64_t stacked = 0;  ///< of the stored tensor
};

/// Names and layout of a family's files.
struct Storage {
  std::string layers = "model.layers.";  ///< prefix of a layer's number
  /// Canonical and stored name, of a module or of one of its tensors; for modules of a layer, the
  /// part after its number.
  std::vector<std::pair<std::string, std::string>> modules;
  std::vector<Fusion> fusions;
  bool transposed = false;            ///< the matrices of layers are stored transposed
  std::int64_t stacked_bias = 0;      ///< StoredTensor::stacked of the bias of a router's choice
  std::string token_score = "score";  ///< the score head of a token classifier
};

/// All tensors of this model's files, in the order of parameter_list, without those of adapters.
std::vector<StoredTensor> stored_tensors(const DecoderSpec& spec);

/// Copies the rows of one parameter from the values of a stored tensor to `into`, [rows, columns].
void extract_parameter(const StoredTensor& tensor, const float* values,
                       const std::string& parameter, float* into);

}  // namespace troupe::engine::models
