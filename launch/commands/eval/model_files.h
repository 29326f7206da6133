// Files of a model, for evaluations that continue only with the same model.
#pragma once

#include <string>

#include "engine/base/json/json.h"

namespace troupe::launch::commands {

/// Checksums of the files of a model or adapter folder, which identify it wherever it lies; an
/// empty object for an empty name. Throws Failure.
Json checksums(const std::string& folder);

}  // namespace troupe::launch::commands
