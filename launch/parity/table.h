// The page docs/parity.md.
#pragma once

#include <string>

namespace troupe::launch::parity {

/// The page, with a row for each model folder in `folder`, by name: the promises in f32 and bf16
/// and over grids. A folder without weight files has random weights. Nothing in it depends on the
/// machine. Errc::not_found where there are no models. Throws Failure.
std::string table_page(const std::string& folder);

}  // namespace troupe::launch::parity
