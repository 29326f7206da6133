// The plain conversion from parameters to the tensors of a family's files.
#pragma once

#include <vector>

#include "engine/models/storage.h"

namespace troupe::test {

/// Values of a stored tensor from those of the parameters. source(name) returns a parameter's
/// values, [rows, columns], which stay valid until all are copied.
template <class Source>
std::vector<float> assemble_stored(const engine::models::StoredTensor& tensor, Source source) {
  const std::int64_t total = tensor.row_count(), columns = tensor.columns;
  std::vector<float> out(static_cast<std::size_t>(total * columns));
  std::int64_t at = 0;
  for (const engine::models::Rows& block : tensor.rows) {
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

}  // namespace troupe::test
