// How the files of a family store the parameters of a decoder. Inside, every family has the names
// and the layout of Llama; only loading and saving go through what stands here.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/models/spec.h"

namespace troupe::engine::models {

/// Rows of one parameter as they follow one another in a stored tensor; a vector is one column.
struct Rows {
  std::string parameter;
  std::int64_t first = 0,
               count = 0;  ///< rows of the parameter: whole heads where their order differs
  HeadOrder order = {};    ///< how the rows of each head are ordered in the file

  /// The parameter's row that the file has at `stored` (0 .. count - 1) of these.
  std::int64_t row(std::int64_t stored) const;
};

/// One tensor of the files: blocks of rows of parameters, one below the other.
struct StoredTensor {
  std::string name;
  bool transposed = false;  ///< in the file the rows are columns (Conv1D of GPT-2)
  std::vector<Rows> rows;
  std::int64_t columns = 1;
  bool vector = false;  ///< of one axis

  std::int64_t row_count() const;
  std::vector<std::int64_t> shape() const;  ///< as the file has it
  /// One parameter under another name at most.
  bool plain() const;
};

/// Several modules of a layer in one tensor.
struct Fusion {
  enum class Order {
    blocks,  ///< all of the first, then all of the second, ...
    groups,  ///< for each key/value head its query heads, its key head, its value head
  };
  std::string module;              ///< "self_attn.qkv_proj", inside a layer
  std::vector<std::string> parts;  ///< "self_attn.q_proj", ..., the canonical modules
  Order order = Order::blocks;
};

/// The names of a family.
struct Storage {
  std::string layers = "model.layers.";  ///< what stands before a layer's number
  std::vector<std::pair<std::string, std::string>>
      modules;  ///< canonical and stored name; of those in a layer, what follows its number
  std::vector<Fusion> fusions;
  bool transposed = false;            ///< the matrices of layers are stored the other way round
  std::string token_score = "score";  ///< the score head of a token classifier
};

/// Every tensor that the files of this model have, in the order of parameter_list; an adapter's are
/// not among them.
std::vector<StoredTensor> stored_tensors(const DecoderSpec& spec);

/// The values of a stored tensor, as the file has them, from those of the parameters: source(name)
/// gives one's, [rows, columns], and stays valid until all are copied.
template <class Source>
std::vector<float> pack(const StoredTensor& tensor, Source source) {
  const std::int64_t total = tensor.row_count(), columns = tensor.columns;
  std::vector<float> out(static_cast<std::size_t>(total * columns));
  std::int64_t at = 0;
  for (const Rows& block : tensor.rows) {
    const float* values = source(block.parameter);
    for (std::int64_t i = 0; i < block.count; ++i, ++at) {
      const float* row = values + block.row(i) * columns;
      for (std::int64_t c = 0; c < columns; ++c)
        out[static_cast<std::size_t>(tensor.transposed ? c * total + at : at * columns + c)] =
            row[c];
    }
  }
  return out;
}

/// The other way: what a stored tensor has of one parameter goes to its place in `into`, [rows,
/// columns].
void unpack(const StoredTensor& tensor, const float* values, const std::string& parameter,
            float* into);

}  // namespace troupe::engine::models
