// Columns that the layout of a row does not read.
#pragma once

#include <string>
#include <vector>

#include "engine/data/layouts/columns.h"

namespace troupe::engine::data {

/// Errc::bad_input, without the location, for one of `unread` (names in the file) that other tools
/// read and that would change the result: a weight other than 1, images and sounds, texts and
/// settings of the prompt. Empty values pass, and so do columns that nobody can know.
Result<> check_unread(const Columns& row, const std::vector<std::string>& unread);

}  // namespace troupe::engine::data
