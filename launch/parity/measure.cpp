#include "launch/parity/measure.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/parity/prompts.h"
#include "launch/parity/vocabulary.h"

namespace troupe::launch::parity {
namespace {

using engine::ops::Precision;
using engine::parallel::Grid;
using engine::parallel::Mesh;

constexpr std::int64_t tokens_at_a_time = 8192;

void add_pair(Report& report, PairResult pair) {
  const auto same = [&](const PairResult& other) {
    return other.first == pair.first && other.second == pair.second;
  };
  const auto found = std::ranges::find_if(report.pairs, same);
  if (found == report.pairs.end())
    report.pairs.push_back(std::move(pair));
  else
    found->add(pair);
}

/// Groups of consecutive prompts whose texts have at most tokens_at_a_time tokens, or of one.
std::size_t end_of_group(std::span<const Text> prompts, std::size_t begin, std::int64_t more) {
  std::int64_t tokens = 0;
  std::size_t end = begin;
  while (end < prompts.size() &&
         (end == begin || tokens + prompts[end].prompt + more <= tokens_at_a_time))
    tokens += prompts[end++].prompt + more;
  return end;
}

void compare_paths(const Settings& settings, PathRunner& runner, std::span<const Text> texts,
                   Measured& out) {
  const std::size_t number = out.texts.size();
  const PathValues scores = runner.run(*settings.paths.front(), texts, nullptr);
  for (const Path* path : settings.paths) {
    if (path == settings.paths.front()) continue;
    const PathValues values = runner.run(*path, texts, &scores);
    PairResult pair = compare(scores, values, *path, path->promise, {runner.spec(), texts, number});
    if (pair.broken && settings.options.locate)
      pair.location = runner.locate(*path, texts, pair.broken->text - number, *pair.broken);
    add_pair(out.report, std::move(pair));
  }
  if (settings.options.targets != 0)
    add_pair(out.report, compare_vocabulary(settings, runner, texts, number));
  out.scores.texts.insert(out.scores.texts.end(), scores.texts.begin(), scores.texts.end());
}

/// Whether a grid has what a path needs.
bool runs_on(const Path& path, const Grid& grid) {
  if (path.promise == Promise::none) return false;
  if (grid.cp > 1) return !path.samples && path.name != "prompt";
  return grid.pp == 1 || !path.trains;
}

/// Stages change no bit. Sums over ranks do, and in bf16 such a bit can change the rounding of an
/// operand.
Promise promise_of(const Grid& grid, Precision precision) {
  if (grid.tp == 1 && grid.cp == 1) return Promise::equal;
  return precision == Precision::f32 ? Promise::bound : Promise::none;
}

}  // namespace

bool Report::kept() const {
  return std::ranges::none_of(pairs,
                              [](const PairResult& pair) { return pair.broken.has_value(); });
}

Measured measure_alone(const Settings& settings, Precision precision) {
  PathRunner runner(settings, precision);
  Measured out{{precision, runner.spec().architecture}, {}, {}};
  const std::vector<Text> prompts = value_or_throw(prompts_of(settings, runner.model()));
  const std::int64_t more = settings.options.max_new_tokens;
  for (std::size_t begin = 0; begin < prompts.size();) {
    const std::size_t end = end_of_group(prompts, begin, more);
    const auto group = std::span(prompts).subspan(begin, end - begin);
    const std::vector<Text> texts = continue_prompts(runner.inputs(group));
    compare_paths(settings, runner, texts, out);
    out.texts.insert(out.texts.end(), texts.begin(), texts.end());
    begin = end;
  }
  out.report.texts = std::ssize(out.texts);
  for (const Text& text : out.texts) out.report.tokens += std::ssize(text.tokens);
  return out;
}

void measure_grid(const Settings& settings, Precision precision, const Mesh& mesh,
                  Measured& measured) {
  std::vector<Text> texts = measured.texts;
  share_texts(mesh.world(), texts);
  PathRunner runner(settings, precision, &mesh);
  const std::string suffix = cat(" (", to_string(mesh.grid()), ")");
  const auto add = [&](PairResult pair, bool first_of_grid) {
    if (!mesh.is_root()) return;
    if (first_of_grid) pair.first += suffix;
    pair.second += suffix;
    add_pair(measured.report, std::move(pair));
  };
  const Path& score = *settings.paths.front();
  const PathValues scores = runner.run(score, texts, nullptr);
  const ComparedTexts of{runner.spec(), texts};
  if (mesh.is_root())
    add(compare(measured.scores, scores, score, promise_of(mesh.grid(), precision), of), false);
  for (const Path* path : settings.paths) {
    if (path == &score || !runs_on(*path, mesh.grid())) continue;
    const PathValues values = runner.run(*path, texts, &scores);
    add(compare(scores, values, *path, Promise::equal, of), true);
  }
}

}  // namespace troupe::launch::parity
