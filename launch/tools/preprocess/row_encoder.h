// RowEncoder: turns a row of data into the documents of the token files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/readers/row_reader.h"

namespace troupe::launch::tools::preprocess {

/// One document: its sequences of token ids.
using TokenDocument = std::vector<std::vector<std::int32_t>>;

class RowEncoder {
 public:
  virtual ~RowEncoder() = default;
  /// What the files are called between PREFIX_ and _document: one document of each is made of a
  /// row.
  virtual const std::vector<std::string>& outputs() const = 0;
  /// A document for each output; empty: the row is skipped. Errc::bad_input with the row's
  /// position. May be called by several threads at once.
  virtual Result<std::vector<TokenDocument>> encode(const engine::data::Row& row) const = 0;
};

}  // namespace troupe::launch::tools::preprocess
