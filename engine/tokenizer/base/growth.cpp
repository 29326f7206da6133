#include "engine/tokenizer/base/growth.h"

#include "engine/base/errors/error.h"
#include "engine/base/text/text.h"

namespace troupe::engine::tokenizer {

void check_growth(std::size_t bytes, std::size_t limit, std::string_view who) {
  if (bytes > limit)
    throw Failure(
        {Errc::bad_input, cat("the tokenizer's ", who, " makes more than ", limit,
                              " bytes of this text, ", "the most that its length allows")});
}

}  // namespace troupe::engine::tokenizer
