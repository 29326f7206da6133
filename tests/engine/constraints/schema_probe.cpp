// Checks schemas for tests/engine/constraints/schemas.py: for each line of standard input, an
// object with `schema`, and perhaps `texts`, `draws` and `seed`, writes a line: whether the schema
// compiles (`error`: why not), the processor's seconds that took, which of the texts the grammar
// has, and finished random texts of it.
#include <array>
#include <ctime>
#include <iostream>
#include <random>
#include <string>

#include "engine/base/json/json.h"
#include "tests/engine/constraints/texts.h"

namespace {

using namespace troupe;
using engine::constraints::Automaton;

constexpr std::size_t max_bytes = 2'000;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// A text of the automaton; bytes that end a part are preferred more and more. Empty when it has
/// not ended after max_bytes.
std::string random_text(Automaton& automaton, std::mt19937& random) {
  constexpr std::string_view closing = "\"}]";
  std::string out;
  Automaton::State state = automaton.start();
  while (out.size() < max_bytes) {
    std::array<Automaton::State, 256> next{};
    std::string all, ends;
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      next[static_cast<std::size_t>(byte)] =
          automaton.step(state, static_cast<unsigned char>(byte));
      if (next[static_cast<std::size_t>(byte)] == Automaton::dead) continue;
      (closing.find(c) != std::string_view::npos ? ends : all) += c;
    }
    const bool may_end = automaton.accepts(state);
    if (may_end && (random() % 4 == 0 || all.size() + ends.size() == 0)) return out;
    const bool close = !ends.empty() && (all.empty() || random() % 1000 < 100 + out.size());
    const std::string& from = close ? ends : all;
    if (from.empty()) return "";
    const char byte = from[random() % from.size()];
    out += byte;
    state = next[static_cast<unsigned char>(byte)];
  }
  return "";
}

void answer_to(const Json& request, Json& answer) {
  const double begin = processor_seconds();
  auto grammar = engine::constraints::compile_schema(*request.find("schema"));
  answer.set("seconds", processor_seconds() - begin);
  if (!grammar) {
    answer.set("error", grammar.error().what);
    return;
  }
  Automaton automaton(std::move(*grammar), {});
  Json::Array matched, drawn;
  if (const Json* texts = request.find("texts"))
    for (const Json& text : texts->array())
      matched.emplace_back(test::matches(automaton, text.string()));
  const Json* draws = request.find("draws");
  const Json* seed = request.find("seed");
  std::mt19937 random(static_cast<unsigned>(seed == nullptr ? 1 : seed->integer()));
  for (std::int64_t i = 0; draws != nullptr && i < draws->integer(); ++i)
    drawn.emplace_back(random_text(automaton, random));
  answer.set("matched", std::move(matched)).set("drawn", std::move(drawn));
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    Json answer = Json::Object{};
    const auto request = parse_json(line, "request", {.depth = 200});
    try {
      if (request)
        answer_to(*request, answer);
      else
        answer.set("error", request.error().what);
    } catch (const Failure& failure) {
      answer.set("limit", failure.error().what);
    }
    std::cout << answer.dump() << std::endl;
  }
}
