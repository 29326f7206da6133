// Reader of parquet files through the Arrow library, part of libtroupe_parquet.so.
#pragma once

#include <memory>
#include <string>

#include "engine/data/readers/row_reader.h"

namespace troupe::engine::data {

/// Stores a reader or an error in `out`.
extern "C" __attribute__((visibility("default"))) void troupe_open_parquet(
    const std::string& path, Result<std::unique_ptr<RowReader>>& out);

}  // namespace troupe::engine::data
