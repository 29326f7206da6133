#include "engine/generate/draft_model.h"

#include <algorithm>
#include <set>

#include "engine/base/text/text.h"
#include "engine/generate/batch_sampler.h"
#include "engine/generate/kv_cache.h"
#include "engine/ops/temperature.h"

namespace troupe::engine::generate {

Result<> DraftModel::check_model(const models::DecoderSpec& draft,
                                 const models::DecoderSpec& target) {
  if (draft.vocabulary != target.vocabulary) {
    return fail(Errc::usage,
                cat("the draft model's vocabulary has ", draft.vocabulary, " tokens, the model's ",
                    target.vocabulary, "; both must have the same tokenizer"));
  }
  if (draft.max_positions < target.max_positions) {
    return fail(Errc::usage,
                cat("the draft model is limited to ", draft.max_positions, " tokens, the model to ",
                    target.max_positions, "; take a draft model with as many"));
  }
  if (draft.keys_depend_on_length()) {
    return fail(Errc::usage,
                "the draft model's keys depend on the length of the sequence (dynamic NTK, "
                "LongRoPE); take another draft model");
  }
  return {};
}

DraftModel::DraftModel(models::Decoder& model, ops::Precision precision,
                       const SchedulerConfig& sizes, std::int32_t count)
    : model_(model),
      precision_(precision),
      page_size_(sizes.page_size),
      count_(count),
      cache_(model.make_cache(sizes.pages, sizes.page_size)),
      packed_(model, precision) {
  // A page may be shared before its last token is computed here; drafts are then worse, but must
  // not depend on what the memory held before.
  for (auto* side : {&cache_.k, &cache_.v})
    for (Tensor& layer : *side) model.device().fill(layer, 0);
  packed_.refresh();
}

std::int64_t DraftModel::propose(ScheduledStep& plan, Scheduler& scheduler,
                                 SequenceStates& sequences) {
  copy_pages(model_.device(), cache_, plan.copies);
  for (const std::uint64_t each : plan.preempted) sequences.at(each).draft_is_behind = false;
  for (Work& work : plan.work) {
    if (!work.samples) continue;
    SequenceState& state = sequences.at(work.sequence);
    state.proposed = state.tokens;
    scheduler.add_drafts(plan, work, state.draft_tokens(count_));
  }
  std::vector<Draft> drafts;
  RowBatch batch = rows_of(plan, sequences, drafts);
  const std::vector<Draft> all = drafts;
  for (;;) {
    sample(batch, drafts);
    if (drafts.empty()) break;
    batch = {};
    for (Draft& each : drafts) {
      const auto& proposed = each.state->proposed;
      const auto length = static_cast<std::int32_t>(proposed.size());
      each.row = batch.rows();
      batch.add(std::span(proposed).last(1), length - 1, length, each.work->pages);
    }
  }
  std::int64_t drafted = 0;
  for (const Draft& each : all) {
    const auto count =
        static_cast<std::int32_t>(each.state->proposed.size() - each.state->tokens.size());
    scheduler.drop_drafts(plan, *each.work, each.work->drafts - count);
    drafted += count;
  }
  return drafted;
}

/// The rows of the plan without the drafts, and the token before where the draft model lacks it.
RowBatch DraftModel::rows_of(ScheduledStep& plan, SequenceStates& sequences,
                             std::vector<Draft>& drafts) const {
  const auto place = [&](const Work& work, std::int32_t position) {
    return std::pair(work.pages[static_cast<std::size_t>(position / page_size_)],
                     position % page_size_);
  };
  std::set<std::pair<std::int32_t, std::int32_t>> written;  // by a pass, each place once
  for (const Work& work : plan.work)
    for (std::int32_t i = 0; i < work.count - work.drafts; ++i)
      written.insert(place(work, work.first + i));
  RowBatch batch;
  for (Work& work : plan.work) {
    SequenceState& state = sequences.at(work.sequence);
    const std::int32_t known = work.first + work.count - work.drafts;
    std::int32_t first = work.first;
    if (std::exchange(state.draft_is_behind, false) && first > 0 &&
        written.insert(place(work, first - 1)).second)
      --first;
    batch.add(
        std::span(state.tokens)
            .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(known - first)),
        first, known, work.pages);
    if (work.drafts > 0) drafts.push_back({&work, &state, batch.rows() - 1});
  }
  return batch;
}

/// One pass, and the next token of each draft. Only those that want another token stay.
void DraftModel::sample(const RowBatch& batch, std::vector<Draft>& drafts) {
  const Tensor hidden = batch.forward(model_, cache_, precision_, packed_.in_use());
  std::vector<RowToSample> rows;
  for (const Draft& each : drafts) {
    const SamplingParams& params = each.state->request.params;
    rows.push_back({each.work->sequence, &each.state->request, each.state->proposed,
                    each.state->end_tokens, each.state->limit, each.row,
                    ops::inverse_temperature(params.is_greedy() ? 0 : params.temperature), nullptr,
                    true});
  }
  const std::vector<SampledToken> sampled =
      BatchSampler(model_, precision_, packed_.in_use()).sample(std::move(rows), hidden);
  std::erase_if(drafts, [&](const Draft& each) {
    const auto token = std::ranges::find(sampled, each.work->sequence, &SampledToken::sequence);
    const auto& ends = each.state->end_tokens;
    // Nothing follows an end token.
    if (token == sampled.end() || std::ranges::find(ends, token->id) != ends.end()) return true;
    auto& proposed = each.state->proposed;
    proposed.push_back(token->id);
    return std::ssize(proposed) == std::ssize(each.state->tokens) + each.work->drafts;
  });
}

}  // namespace troupe::engine::generate
