// The end of a file of lines that is too long to be read whole at each start.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/errors/error.h"
#include "engine/base/files/output_folder.h"

namespace troupe::launch::journal {

/// Truncates FOLDER/NAME after the last line whose "step" is at most `step`. Lines are read from
/// the end, in blocks, up to that line: the steps of a file ascend. Returns the size that is left,
/// 0 if the file is missing. Errc::io.
Result<std::uint64_t> truncate_tail_after(const OutputFolder& folder, const std::string& name,
                                          std::int64_t step);

}  // namespace troupe::launch::journal
