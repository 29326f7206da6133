// The end of a job of the generation service, reported also where memory is exhausted.
#pragma once

#include <exception>

#include "engine/base/error.h"
#include "engine/serving/generation_service.h"

namespace troupe::engine::serving {

/// The error of an exception: of a Failure, of the environment (Errc::full without memory), or
/// Errc::internal.
Error error_of(const std::exception& problem);

/// Calls on_end, and again with the error if that has thrown, so that somebody answers. Does not
/// throw.
void report_end(const Job& job, Result<generate::Generation> result);

}  // namespace troupe::engine::serving
