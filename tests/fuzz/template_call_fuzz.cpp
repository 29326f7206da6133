// The filters, tests and methods of the template language with arguments of every type: a text or a
// sentence. Input: the choices of tests/support/template_calls.h.
#include <cstdint>
#include <cstdlib>

#include "engine/tokenizer/chat_template.h"
#include "tests/support/template_calls.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;  // NOLINT: a program of one page
  using engine::tokenizer::ChatTemplate;
  std::size_t at = 0;
  const auto choose = [&](std::size_t below) -> std::size_t {
    return at < size ? data[at++] % below : 0;
  };
  std::string source;
  while (at < size && source.size() < 4000) source += testing_support::random_call(choose);
  const auto parsed = ChatTemplate::parse(source, "fuzz");
  if (!parsed) return 0;
  engine::tokenizer::RenderInput input;
  input.messages = Json(Json::Array{});
  input.now = "2025-01-15T12:00:00";
  const auto rendered = parsed->render(input);
  if (!rendered && rendered.error().code != Errc::bad_input) std::abort();
  return 0;
}
