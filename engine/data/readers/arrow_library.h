// Parquet and Arrow files, through libtroupe_parquet.so, which is loaded when the first one is
// opened.
#pragma once

#include "engine/base/file.h"
#include "engine/data/readers/row_reader.h"

namespace troupe::engine::data {

/// Opens a parquet file. Errc::unsupported if the library is missing, with the remedy; Errc::io,
/// corrupt for the file.
Result<std::unique_ptr<RowReader>> open_parquet(const std::string& path);
/// Opens an Arrow IPC file or stream, mapped. The same errors.
Result<std::unique_ptr<RowReader>> open_arrow(const std::string& path, MappedFile file);

}  // namespace troupe::engine::data
