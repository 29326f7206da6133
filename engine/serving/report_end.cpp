#include "engine/serving/report_end.h"

#include <utility>

#include "engine/base/files/environment_error.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"

namespace troupe::engine::serving {

Error error_of(const std::exception& problem) {
  if (const auto* failure = dynamic_cast<const Failure*>(&problem)) return failure->error();
  return environment_error(problem).value_or(Error{Errc::internal, problem.what()});
}

std::optional<Error> contained(const std::function<void()>& callback) {
  try {
    callback();
    return std::nullopt;
  } catch (const Failure& failure) {
    return failure.error();
  } catch (const std::exception& problem) {
    log_error(cat("an answer: ", problem.what()));
    return environment_error(problem).value_or(
        Error{Errc::internal, "the answer could not be written; see the server's log"});
  }
}

void report_end(const Job& job, Result<generate::Generation> result) {
  if (!job.on_end) return;
  auto thrown = contained([&] { job.on_end(std::move(result)); });
  if (!thrown) return;
  thrown = contained([&] { job.on_end(fail(*thrown)); });
  if (thrown) log_error(cat("a request is not answered: ", thrown->what));
}

}  // namespace troupe::engine::serving
