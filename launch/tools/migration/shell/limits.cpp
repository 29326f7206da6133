#include "launch/tools/migration/shell/limits.h"

#include "engine/base/text/text.h"

namespace troupe::launch::tools::migration::shell {
namespace {

constexpr std::size_t max_steps = 100'000, max_work = std::size_t{64} << 20;
constexpr const char* advice =
    "; write the settings of the command into the script, or into a YAML file";

}  // namespace

void too_large(std::string_view what, std::size_t limit) {
  throw Failure({Errc::usage, cat("expected at most ", limit, " bytes of ", what,
                                  " of the script, found more", advice)});
}

void too_deep(std::string_view where) {
  throw Failure({Errc::usage, cat("expected at most ", max_depth,
                                  " variables within defaults of others, or commands within "
                                  "others, found more in ",
                                  quote(where, 80), advice)});
}

void Budget::step(std::size_t line) {
  if (++steps_ > max_steps)
    throw Failure({Errc::usage, cat("line ", line, ": expected at most ", max_steps,
                                    " commands and iterations of the script, found more", advice)});
}

void Budget::work(std::size_t characters) {
  work_ += characters;
  if (work_ > max_work) too_large("values that are compared and copied", max_work);
}

void Budget::expand(std::size_t bytes) {
  expanded_ += bytes;
  if (expanded_ > max_expanded) too_large("the words", max_expanded);
}

}  // namespace troupe::launch::tools::migration::shell
