// Any text as a regular expression, a JSON schema or a grammar: refused, or run on any text within
// the limits. Input: r, s or g, the constraint, a NUL, the text.
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "engine/base/text/utf8.h"
#include "engine/constraints/compile.h"
#include "engine/constraints/constraint.h"
#include "tests/fuzz/scratch_file.h"

namespace {

using namespace troupe;  // NOLINT: a program of one page

Result<engine::constraints::Grammar> compile(char kind, const std::string& text) {
  if (kind == 'r') return engine::constraints::compile_regex(text);
  if (kind == 'g') return engine::constraints::compile_ebnf(text);
  const auto schema = parse_json(text, "fuzz");
  if (!schema) return fail(schema);
  return engine::constraints::compile_schema(*schema);
}

void run(engine::constraints::Grammar grammar, const std::string& text) {
  static const auto table = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    return std::make_shared<const engine::constraints::TokenTable>(tokens);
  }();
  engine::constraints::Constraint constraint(std::move(grammar), table,
                                             {.paths = 256, .bytes = 1 << 22});
  auto state = constraint.start();
  for (const char byte : text) {
    // Every state can be continued or is an end.
    const bool continues = !constraint.allowed(state)->empty();
    if (!continues && !constraint.may_end(state)) std::abort();
    if (continues == constraint.must_end(state)) std::abort();
    state = constraint.after(state, static_cast<unsigned char>(byte));
    if (state == engine::constraints::Automaton::dead) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(fuzz::text_of(data, size));
  if (input.empty()) return 0;
  const std::size_t end = std::min(input.find('\0'), input.size());
  auto grammar = compile(input[0], repair_utf8(input.substr(1, end - 1)));
  if (!grammar) {
    const Errc code = grammar.error().code;
    if (code != Errc::bad_input && code != Errc::unsupported && code != Errc::full) std::abort();
    return 0;
  }
  try {
    run(std::move(*grammar), end < input.size() ? input.substr(end + 1) : "");
  } catch (const Failure& failure) {
    if (failure.error().code != Errc::full) std::abort();
  }
  return 0;
}
