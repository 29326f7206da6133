#include "engine/serving/report_end.h"

#include <utility>

#include "engine/base/environment_error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"

namespace troupe::engine::serving {

Error error_of(const std::exception& problem) {
  if (const auto* failure = dynamic_cast<const Failure*>(&problem)) return failure->error();
  return environment_error(problem).value_or(Error{Errc::internal, problem.what()});
}

void report_end(const Job& job, Result<generate::Generation> result) {
  try {
    return job.on_end(std::move(result));
  } catch (const std::exception& problem) {
    result = fail(error_of(problem));
    log_error(cat("the end of a request: ", result.error().what));
  }
  try {
    job.on_end(std::move(result));
  } catch (const std::exception& problem) {
    log_error(cat("a request is not answered: ", problem.what()));
  }
}

}  // namespace troupe::engine::serving
