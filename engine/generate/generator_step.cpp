// One step of the generator: copy pages, forward the scheduled rows, choose a token for each
// sequence that is ready.
#include <algorithm>
#include <cmath>
#include <exception>
#include <ranges>

#include "engine/base/check.h"
#include "engine/generate/generator_impl.h"
#include "engine/generate/kv_cache.h"
#include "engine/generate/sampler.h"
#include "engine/generate/stop_strings.h"
#include "engine/generate/validate_request.h"
#include "engine/ops/phase.h"
#include "engine/ops/temperature.h"

namespace troupe::engine::generate {

namespace {

constexpr std::int64_t most_logits = 1 << 24;  // logits on the host at a time: 64 MB

/// The n largest logits as log-probabilities at temperature 1; ties by id.
std::vector<Alternative> top_of(std::span<const float> logits, float lse, int wanted) {
  if (wanted == 0) return {};
  std::vector<std::int32_t> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
  const auto n = std::min<std::ptrdiff_t>(wanted, std::ssize(ids));
  std::partial_sort(ids.begin(), ids.begin() + n, ids.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::vector<Alternative> top;
  for (std::ptrdiff_t i = 0; i < n; ++i) top.push_back({ids[i], logits[ids[i]] - lse});
  return top;
}

/// Rows of logits [M, V/tp] on the host. Ranks that share them get all of each beforehand, so that
/// every rank draws the same tokens.
class HostRows {
 public:
  HostRows(models::Decoder& decoder, const Tensor& logits)
      : device_(decoder.device()),
        logits_(logits),
        width_(static_cast<std::size_t>(decoder.spec().vocabulary)),
        whole_(decoder.tp() != nullptr ? decoder.head().whole(logits) : std::vector<float>()) {}
  /// visit(i, row i [V]), several rows at once; what the first of them throws is thrown when all
  /// are done.
  template <class Visit>
  void for_each(Visit visit) const {
    std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(logits_.shape()[0]));
    const auto try_row = [&](std::int64_t i, std::span<const float> row) {
      try {
        visit(static_cast<std::size_t>(i), row);
      } catch (...) {
        thrown[static_cast<std::size_t>(i)] = std::current_exception();
      }
    };
    if (whole_.empty()) device_.visit_rows(logits_, try_row);
    for (std::size_t at = 0; at < whole_.size(); at += width_)
      try_row(static_cast<std::int64_t>(at / width_), std::span(whole_).subspan(at, width_));
    const auto first = std::ranges::find_if(
        thrown, [](const std::exception_ptr& each) { return each != nullptr; });
    if (first != thrown.end()) std::rethrow_exception(*first);
  }

 private:
  ops::Device& device_;
  const Tensor& logits_;
  std::size_t width_;
  std::vector<float> whole_;
};

}  // namespace

void Generator::Impl::step() {
  ops::in_phase(decoder.device(), "generate", [&] { one_step(); });
}

void Generator::Impl::one_step() {
  if (std::exchange(weights_are_new, false)) packed.refresh();
  const Plan plan = scheduler.plan();
  copy_pages(decoder.device(), cache, plan.copies);
  const Tensor hidden = forward(plan);  // [T, D]
  std::vector<Pick> picks;
  std::int32_t end_row = 0;
  for (const Work& work : plan.work) {
    end_row += work.count;
    if (!work.samples) continue;
    Live& l = live.at(work.sequence);
    picks.push_back({work.sequence, &l, end_row - 1,
                     ops::inverse_temperature(
                         l.request.params.is_greedy() ? 0 : l.request.params.temperature)});
  }
  std::vector<Choice> choices = choose_tokens(std::move(picks), hidden);
  std::sort(choices.begin(), choices.end(),
            [](const Choice& a, const Choice& b) { return a.sequence < b.sequence; });
  ++stats.steps;
  stats.rows += plan.rows;
  stats.sampled += std::ssize(choices);
  stats.preemptions += std::ssize(plan.preempted);
  stats.shared_pages += plan.shared_pages;
  stats.copied_pages += std::ssize(plan.copies);
  for (const Choice& choice : choices) {
    if (live.contains(choice.sequence)) apply(choice);  // a callback may have cancelled it
  }
}

Tensor Generator::Impl::forward(const Plan& plan) {
  std::vector<std::int32_t> tokens;  // [T]
  ops::Layout layout;
  layout.offsets.push_back(0);
  std::vector<std::vector<std::int32_t>> pages;
  std::vector<std::int32_t> lengths;
  for (const Work& work : plan.work) {
    const auto& known = live.at(work.sequence).tokens;
    lengths.push_back(static_cast<std::int32_t>(known.size()));
    tokens.insert(tokens.end(), known.begin() + work.first,
                  known.begin() + work.first + work.count);
    for (std::int32_t i = 0; i < work.count; ++i) layout.positions.push_back(work.first + i);
    layout.offsets.push_back(layout.offsets.back() + work.count);
    pages.push_back(work.pages);
  }
  const nn::Pass pass{decoder.device(), layout, config.precision, &cache, pages, nullptr,
                      lengths,          {},     packed.in_use()};
  nn::Saved nothing = nn::Saved::nothing();
  return ops::in_phase(decoder.device(), "forward",
                       [&] { return decoder.forward(tokens, pass, nothing); });
}

std::vector<Choice> Generator::Impl::choose_tokens(std::vector<Pick> picks, const Tensor& hidden) {
  // One call of token_logprob serves one temperature: rows of equal temperature stand together.
  std::stable_sort(picks.begin(), picks.end(), [](const Pick& a, const Pick& b) {
    return a.inverse_temperature < b.inverse_temperature;
  });
  std::vector<Choice> choices;
  const auto block =
      static_cast<std::size_t>(std::max<std::int64_t>(1, most_logits / decoder.spec().vocabulary));
  for (std::size_t i = 0; i < picks.size(); i += block) {
    choose_block(std::span(picks).subspan(i, std::min(block, picks.size() - i)), hidden, choices);
  }
  return choices;
}

void Generator::Impl::choose_block(std::span<const Pick> picks, const Tensor& hidden,
                                   std::vector<Choice>& choices) {
  ops::Device& device = decoder.device();
  const auto count = std::ssize(picks);
  std::vector<std::int32_t> rows;
  for (const Pick& pick : picks) rows.push_back(pick.row);
  Tensor last = device.empty({count, decoder.spec().width});  // [M, D]
  device.gather_rows(hidden, rows, last);
  const nn::Head& head = decoder.head();
  const Tensor logits = head.logits(last, config.precision, packed.in_use());  // [M, V/tp]
  const HostRows host(decoder, logits);

  std::vector<std::int32_t> targets(picks.size());
  host.for_each([&](std::size_t i, std::span<const float> row) {
    const Live& l = *picks[i].live;
    refuse_not_finite(row, l.request, l.tokens.size());
    const Context context{l.request.params, l.tokens, l.request.prompt.size(), l.ends,
                          static_cast<std::size_t>(l.limit)};
    targets[i] = choose(row, context, l.request.sample_id);
  });
  const nn::TokenScores scores = head.scores(logits, targets, 1.0F);
  const std::vector<float> plain = ops::to_host(device, scores.logp),
                           denominators = ops::to_host(device, scores.lse);
  std::vector<float> scaled = plain;
  for (std::ptrdiff_t begin = 0, end = 0; begin < count; begin = end) {
    const float inverse = picks[begin].inverse_temperature;
    while (end < count && picks[end].inverse_temperature == inverse) ++end;
    if (inverse == 1.0F) continue;
    const nn::TokenScores part = head.scores(
        logits.rows(begin, end), std::span(targets).subspan(begin, end - begin), inverse);
    std::ranges::copy(ops::to_host(device, part.logp), scaled.begin() + begin);
  }
  const std::size_t before = choices.size();
  for (std::ptrdiff_t i = 0; i < count; ++i)
    choices.push_back({picks[i].sequence, targets[i], plain[i], scaled[i]});
  const auto wanted = [&](std::size_t i) { return picks[i].live->request.params.top_logprobs; };
  if (std::ranges::none_of(std::views::iota(std::size_t{0}, picks.size()), wanted)) return;
  host.for_each([&](std::size_t i, std::span<const float> row) {
    choices[before + i].top = top_of(row, denominators[i], wanted(i));
  });
}

void Generator::Impl::apply(const Choice& choice) {
  Live& l = live.at(choice.sequence);
  Generation& result = l.result;
  l.tokens.push_back(choice.token);
  result.ids.push_back(choice.token);
  result.logp.push_back(choice.logp);
  result.sampling_logp.push_back(choice.sampling_logp);
  result.versions.push_back(version);
  if (l.request.params.top_logprobs > 0) result.top.push_back(choice.top);
  scheduler.append(choice.sequence);
  if (config.on_token) {
    config.on_token(
        {result.id, static_cast<std::int32_t>(result.ids.size()) - 1, choice.token, choice.logp});
    if (!live.contains(choice.sequence)) return;
  }
  if (std::find(l.ends.begin(), l.ends.end(), choice.token) != l.ends.end())
    return end(choice.sequence, FinishReason::stop);
  if (StopMatch match = find_stop(result.ids, l.request.params.stop_strings, config.decode);
      match.found()) {
    result.stop_string = std::move(match.stop);
    result.text = std::move(match.text);
    return end(choice.sequence, FinishReason::stop);
  }
  if (std::ssize(l.tokens) >= l.limit) return end(choice.sequence, FinishReason::length);
  if (decoder.spec().keys_change_at(std::ssize(l.tokens))) scheduler.recompute(choice.sequence);
}

}  // namespace troupe::engine::generate
