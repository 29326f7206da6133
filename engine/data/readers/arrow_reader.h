// Reader of Arrow IPC files and streams (Hugging Face's datasets store tables as streams), part of
// libtroupe_parquet.so.
#pragma once

#include <memory>
#include <string>

#include "engine/base/files/file.h"
#include "engine/data/readers/row_reader.h"

namespace troupe::engine::data {

/// Stores a reader or an error in `out`. The caller maps the file: the library has its own copy of
/// the table of mappings (mapped_file_faults.h).
extern "C" __attribute__((visibility("default"))) void troupe_open_arrow(
    const std::string& path, std::shared_ptr<const MappedFile> file,
    Result<std::unique_ptr<RowReader>>& out);

}  // namespace troupe::engine::data
