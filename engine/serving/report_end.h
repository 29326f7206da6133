// The callbacks of a job of an engine: what they throw ends this job and no other.
#pragma once

#include <exception>
#include <functional>
#include <optional>

#include "engine/base/errors/error.h"
#include "engine/serving/engine.h"

namespace troupe::engine::serving {

/// The error of an exception: of a Failure, of the environment (Errc::full without memory), or
/// Errc::internal.
Error error_of(const std::exception& problem);

/// Calls a callback. Returns the error of what it throws, with which the job shall end; a message
/// that is not meant for clients is logged instead.
std::optional<Error> contained(const std::function<void()>& callback);

/// Calls on_end, if there is one, and again with the error if that has thrown, so that somebody
/// answers. Does not throw.
void report_end(const Job& job, Result<generate::Generation> result);

}  // namespace troupe::engine::serving
