#include "engine/generate/generator.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/generate/batch_sampler.h"
#include "engine/generate/constraint_turns.h"
#include "engine/generate/draft_model.h"
#include "engine/generate/generator_sizes.h"
#include "engine/generate/kv_cache.h"
#include "engine/generate/prompt_groups.h"
#include "engine/generate/prompt_lookup.h"
#include "engine/generate/prompt_scores.h"
#include "engine/generate/row_batch.h"
#include "engine/generate/rows_to_sample.h"
#include "engine/generate/scheduler.h"
#include "engine/generate/sequence_state.h"
#include "engine/generate/stop_strings.h"
#include "engine/generate/validate_request.h"
#include "engine/ops/phase.h"

namespace troupe::engine::generate {

namespace {

/// A request whose rows are computed and sampled like those of any other.
bool is_plain(const Request& request) {
  return request.adapter == nullptr && !request.scores_prompt() && request.generates;
}

}  // namespace

struct Generator::Impl {
  models::Decoder& decoder;
  GeneratorConfig config;
  Scheduler scheduler;
  nn::KvCache cache;
  models::PackedWeights packed;
  std::optional<DraftModel> draft_model;
  bool weights_are_new = true;  // and not packed yet
  bool can_repeat = true;       // no token of the last step was appended
  SequenceStates sequences;
  std::unordered_map<std::uint64_t, std::uint64_t> numbers;  // request id -> order of arrival
  PromptGroups groups;
  std::size_t special = 0;  ///< unfinished requests that are not plain
  std::vector<Generation> finished;
  std::uint64_t arrivals = 0, version = 0;
  ConstraintTurns turns;
  GeneratorStats stats;

  Impl(models::Decoder& model, GeneratorConfig how, SchedulerConfig sizes);
  Result<> validate(const Request& request) const;
  const TextDecoder& decoder_of(const Request& request) const {
    return request.decode ? request.decode : config.decode;
  }
  void add(Request request);
  void forget(const Request& request);
  void end(std::uint64_t sequence, FinishReason reason);
  void cancel_all();
  void interrupt(const WeightChange& change);
  void restart(std::uint64_t sequence);

  void step();
  void compute(ScheduledStep& plan);
  void count_admissions(const ScheduledStep& plan);
  void order_by_adapter(ScheduledStep& plan) const;
  void score_prompts(ScheduledStep& plan, const Tensor& hidden);
  void end_prompt(Work& work, SequenceState& state);
  Tensor forward(const ScheduledStep& plan);
  std::vector<SampledToken> sample(const ScheduledStep& plan, const BatchSampler& sampler,
                                   const Tensor& hidden);
  void append(std::span<const SampledToken> sampled);
  void append(const SampledToken& sampled, bool computed);
  std::optional<FinishReason> ending(const SequenceState& state, StopMatch& match) const;
};

Generator::Impl::Impl(models::Decoder& model, GeneratorConfig how, SchedulerConfig sizes)
    : decoder(model),
      config(std::move(how)),
      scheduler(sizes),
      cache(model.make_cache(sizes.pages, sizes.page_size)),
      packed(model, config.precision, config.weights),
      groups(!model.spec().keys_depend_on_length()),
      turns(config.constraint_work, config.constraint_bytes) {
  config.pages = sizes.pages;
  config.tokens_per_step = sizes.tokens_per_step;
  if (decoder.spec().keys_depend_on_length()) {  // they would depend on the drafts
    config.lookup = 0;
    config.draft = nullptr;
  }
  if (config.draft != nullptr)
    draft_model.emplace(*config.draft, config.precision, sizes, config.draft_tokens);
}

Generator::Generator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
}
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;
Generator::~Generator() = default;

Result<Generator> Generator::create(models::Decoder& decoder, GeneratorConfig config) {
  auto sizes = sizes_of(config, decoder.spec());
  RETURN_IF_ERROR(sizes);
  return Generator(std::make_unique<Impl>(decoder, std::move(config), *sizes));
}

Result<> Generator::Impl::validate(const Request& request) const {
  const std::string where = cat("request ", request.id, ": ");
  if (request.params.beams.count > 1)
    return fail(Errc::usage, where + "num_beams is above 1; call beam_search()");
  RETURN_IF_ERROR(
      validate_request(request, decoder.spec(), static_cast<bool>(decoder_of(request))));
  const auto longest =
      std::min(static_cast<std::int64_t>(request.prompt.size()) + request.params.max_new_tokens,
               decoder.spec().max_positions);
  if (const std::int32_t pages = scheduler.pages_for(longest); pages > config.pages) {
    return fail(Errc::full, cat(where, longest, " tokens of prompt and output need ", pages,
                                " pages of ", config.page_size, " tokens, but the cache has ",
                                config.pages, "; enlarge it or lower max_new_tokens"));
  }
  return {};
}

void Generator::Impl::add(Request request) {
  const std::uint64_t number = ++arrivals;
  const auto length = static_cast<std::int32_t>(request.prompt.size());
  SequenceState fresh;
  fresh.limit = static_cast<std::int32_t>(
      std::min(std::int64_t{length} + request.params.max_new_tokens, decoder.spec().max_positions));
  fresh.tokens = request.prompt;
  fresh.end_tokens = end_tokens(request.params, config.eos_ids);
  fresh.constraint = OutputConstraint(request.constraint, request.begins_without_space);
  fresh.result.id = request.id;
  fresh.result.sample_id = request.sample_id;
  fresh.result.prompt_tokens = length;
  numbers.emplace(request.id, number);
  special += is_plain(request) ? 0 : 1;
  fresh.request = std::move(request);
  const SequenceState& state = sequences.emplace(number, std::move(fresh)).first->second;
  try {
    scheduler.add(
        number, length, state.limit, groups.join(state.request),
        state.request.scores_prompt() && state.request.scored_from == 0 ? nullptr : &state.tokens,
        cache_context(state.request));
    if (state.request.scores_prompt())
      scheduler.score_prompt(number, std::max(state.request.scored_from, 1));
  } catch (...) {
    forget(state.request);
    sequences.erase(number);
    throw;
  }
}

void Generator::Impl::forget(const Request& request) {
  groups.leave(request);
  numbers.erase(request.id);
  special -= is_plain(request) ? 0 : 1;
}

void Generator::Impl::end(std::uint64_t sequence, FinishReason reason) {
  const auto found = sequences.find(sequence);
  SequenceState& done = found->second;
  done.result.finish = reason;
  const TextDecoder& decode = decoder_of(done.request);
  if (decode && done.result.stop_string.empty()) done.result.text = decode(done.result.ids);
  scheduler.finish(sequence);
  forget(done.request);
  finished.push_back(std::move(done.result));
  sequences.erase(found);
}

void Generator::Impl::cancel_all() {
  while (!sequences.empty()) end(sequences.begin()->first, FinishReason::cancelled);
  finished.clear();
}

// The weights have changed.
void Generator::Impl::interrupt(const WeightChange& change) {
  if (change.cache == CacheUse::keep)
    scheduler.end_sharing();
  else
    scheduler.drop_cache();
  std::vector<std::uint64_t> restarted;
  for (auto& [number, state] : sequences) {
    if (state.result.ids.empty()) continue;
    ++state.result.interruptions;
    if (change.partial == PartialSamples::restart && state.result.restarts == 0)
      restarted.push_back(number);
  }
  for (const std::uint64_t number : restarted) restart(number);
}

// The sequence is then the last one that arrived.
void Generator::Impl::restart(std::uint64_t sequence) {
  const auto found = sequences.find(sequence);
  Request request = std::move(found->second.request);
  const Generation before = std::move(found->second.result);
  const bool prompt_is_done = found->second.prompt_is_done;
  scheduler.finish(sequence);
  forget(request);
  sequences.erase(found);
  add(std::move(request));
  SequenceState& again = sequences.at(arrivals);
  again.prompt_is_done = prompt_is_done;
  if (prompt_is_done) scheduler.score_prompt(arrivals, false);
  again.result.interruptions = before.interruptions;
  again.result.restarts = before.restarts + 1;
}

void Generator::Impl::step() {
  can_repeat = true;
  if (std::exchange(weights_are_new, false)) packed.refresh();
  std::optional<ScheduledStep> plan;
  try {
    turns.prepare(sequences, scheduler);
    plan = scheduler.plan();
    if (!plan->work.empty()) compute(*plan);  // otherwise all wait for their masks
    stats.preemptions += std::ssize(plan->preempted);
  } catch (const RequestFailure&) {
    throw;  // of ConstraintTurns, sample() and score_prompts()
  } catch (...) {
    if (plan && can_repeat && !draft_model)  // which has a cache of its own
      scheduler.undo(*plan);
    else
      scheduler.drop_cache();
    throw;
  }
}

void Generator::Impl::compute(ScheduledStep& plan) {
  count_admissions(plan);
  if (special > 0) order_by_adapter(plan);
  if (config.lookup > 0)
    stats.drafted += propose_by_lookup(plan, scheduler, sequences, config.lookup);
  if (draft_model) stats.drafted += draft_model->propose(plan, scheduler, sequences);
  copy_pages(decoder.device(), cache, plan.copies);
  const Tensor hidden = forward(plan);  // [T, D], on the last pipeline stage
  if (special > 0) score_prompts(plan, hidden);
  const BatchSampler sampler(decoder, config.precision, packed.in_use());
  std::vector<SampledToken> sampled = sample(plan, sampler, hidden);
  std::ranges::sort(sampled, [](const SampledToken& a, const SampledToken& b) {
    return a.sequence != b.sequence ? a.sequence < b.sequence : a.position < b.position;
  });
  ++stats.steps;
  stats.rows += plan.rows;
  stats.shared_pages += plan.shared_pages;
  stats.copied_pages += std::ssize(plan.copies);
  can_repeat = false;
  append(sampled);
}

std::vector<SampledToken> Generator::Impl::sample(const ScheduledStep& plan,
                                                  const BatchSampler& sampler,
                                                  const Tensor& hidden) {
  try {
    return sampler.sample(rows_to_sample(plan, sequences, turns.left()), hidden);
  } catch (const RequestFailure&) {
    scheduler.repeat_samples(plan);  // the others keep what was computed
    throw;
  }
}

void Generator::Impl::count_admissions(const ScheduledStep& plan) {
  for (const Admission& each : plan.admitted) {
    Generation& result = sequences.at(each.sequence).result;
    result.cached_tokens = each.cached;
    stats.prefix_queries += result.prompt_tokens;
    stats.prefix_hits += each.cached;
  }
}

/// Rows of one adapter become neighbours, in the order of the first ones.
void Generator::Impl::order_by_adapter(ScheduledStep& plan) const {
  std::map<const nn::LoraModel*, std::size_t> places;
  const auto place = [&](const Work& work) {
    const auto* adapter = sequences.at(work.sequence).request.adapter.get();
    return places.emplace(adapter, places.size()).first->second;
  };
  for (const Work& work : plan.work) place(work);
  if (places.size() > 1) std::ranges::stable_sort(plan.work, {}, place);
}

void Generator::Impl::score_prompts(ScheduledStep& plan, const Tensor& hidden) {
  const PromptScorer scorer(decoder, config.precision, packed.in_use());
  std::optional<RequestFailure> failed;  // thrown when all are scored
  std::int64_t row = 0;
  for (Work& work : plan.work) {
    const std::int64_t first = row;
    row += work.count;
    SequenceState& state = sequences.at(work.sequence);
    if (state.prompt_is_done || !(state.request.scores_prompt() || !state.request.generates))
      continue;
    try {
      if (state.request.scores_prompt())
        scorer.score(state.request, {work.first, work.count, first}, hidden, state.prompt_scores);
      end_prompt(work, state);
    } catch (const Failure& failure) {
      failed.emplace(state.request.id, failure.error());
    }
  }
  if (!failed) return;
  scheduler.repeat_samples(plan);
  throw RequestFailure(*failed);
}

/// Where the prompt is computed: reports its scores, and ends a sequence that generates nothing.
void Generator::Impl::end_prompt(Work& work, SequenceState& state) {
  if (work.first + work.count < std::ssize(state.request.prompt)) return;
  state.prompt_is_done = true;
  scheduler.score_prompt(work.sequence, std::nullopt);
  if (config.on_prompt && state.request.scores_prompt())
    config.on_prompt(state.request.id, std::exchange(state.prompt_scores, {}));
  if (state.request.generates) return;
  work.samples = false;
  end(work.sequence, FinishReason::length);
}

Tensor Generator::Impl::forward(const ScheduledStep& plan) {
  RowBatch batch;
  for (const Work& work : plan.work) {
    const SequenceState& state = sequences.at(work.sequence);
    const auto& known = work.drafts > 0 ? state.proposed : state.tokens;
    batch.add(std::span(known).subspan(static_cast<std::size_t>(work.first),
                                       static_cast<std::size_t>(work.count)),
              work.first, static_cast<std::int32_t>(known.size()), work.pages,
              state.request.adapter.get());
  }
  return batch.forward(decoder, cache, config.precision, packed.in_use());
}

/// Appends the tokens of each sequence, in their order, as long as the draft before them is right.
void Generator::Impl::append(std::span<const SampledToken> sampled) {
  bool follows = false;  // the token follows the one before it in `sampled`
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    const SampledToken& each = sampled[i];
    const bool first = i == 0 || sampled[i - 1].sequence != each.sequence;
    const auto found = sequences.find(each.sequence);
    // The sequence has ended, or a callback has cancelled it; or the draft is wrong.
    if (found == sequences.end() || !(first || follows)) continue;
    const bool drafted = i + 1 < sampled.size() && sampled[i + 1].sequence == each.sequence &&
                         sampled[i + 1].position == each.position + 1;
    follows = drafted && found->second.proposed[each.position] == each.id;
    stats.accepted += follows;
    ++stats.sampled;
    found->second.draft_is_behind = !first && !drafted;
    append(each, follows);
  }
}

/// Why the output ends with its last token; nothing while it continues.
std::optional<FinishReason> Generator::Impl::ending(const SequenceState& state,
                                                    StopMatch& match) const {
  const SamplingParams& params = state.request.params;
  const auto& ids = state.result.ids;
  if (std::ranges::find(state.end_tokens, ids.back()) != state.end_tokens.end())
    return FinishReason::stop;
  match = find_stop(ids, params.stop_strings, decoder_of(state.request), params.min_new_tokens);
  if (match.found() || state.constraint.must_end()) return FinishReason::stop;
  if (std::ssize(state.tokens) >= state.limit) return FinishReason::length;
  return std::nullopt;
}

void Generator::Impl::append(const SampledToken& sampled, bool computed) {
  const std::uint64_t sequence = sampled.sequence;
  SequenceState& state = sequences.at(sequence);
  Generation& result = state.result;
  state.tokens.push_back(sampled.id);
  state.constraint.append(sampled.id, state.end_tokens);
  result.ids.push_back(sampled.id);
  result.logp.push_back(sampled.logp);
  result.sampling_logp.push_back(sampled.sampling_logp);
  result.versions.push_back(version);
  if (state.request.params.report_masks) result.masks.push_back(sampled.mask);
  if (state.request.has_alternatives()) result.top.push_back(sampled.top);
  scheduler.append(sequence, computed);
  StopMatch match;
  const auto ended = ending(state, match);
  if (config.on_token) {
    const auto index = static_cast<std::int32_t>(result.ids.size()) - 1;
    config.on_token({result.id, index, sampled.id, sampled.logp, sampled.sampling_logp, sampled.top,
                     sampled.mask, version, ended.has_value()});
    if (!sequences.contains(sequence)) return;
  }
  if (ended) {
    result.stop_string = std::move(match.stop);
    result.text = std::move(match.text);
    return end(sequence, *ended);
  }
  if (decoder.spec().keys_change_at(std::ssize(state.tokens))) scheduler.recompute(sequence);
}

Result<> Generator::submit(Request request) {
  RETURN_IF_ERROR(resolve_bad_words(request.params, impl_->config.encode));
  RETURN_IF_ERROR(impl_->validate(request));
  if (impl_->numbers.contains(request.id)) {
    return fail(Errc::usage,
                cat("request ", request.id, ": another unfinished request has this id"));
  }
  impl_->add(std::move(request));
  return {};
}

Result<> Generator::check_request(const Request& request) const {
  return impl_->validate(request);
}

std::vector<Generation> Generator::step() {
  if (!impl_->sequences.empty())
    ops::in_phase(impl_->decoder.device(), "generate", [&] { impl_->step(); });
  return std::exchange(impl_->finished, {});
}

bool Generator::cancel(std::uint64_t id) {
  const auto name = impl_->numbers.find(id);
  if (name == impl_->numbers.end()) return false;
  impl_->end(name->second, FinishReason::cancelled);
  return true;
}

bool Generator::can_repeat_step() const {
  return impl_->can_repeat;
}

bool Generator::idle() const {
  return impl_->sequences.empty() && impl_->finished.empty();
}
std::int32_t Generator::pages() const {
  return impl_->config.pages;
}
std::int32_t Generator::free_pages() const {
  return impl_->scheduler.free_pages();
}
std::int32_t Generator::idle_pages() const {
  return impl_->scheduler.idle_pages();
}
const GeneratorStats& Generator::stats() const {
  return impl_->stats;
}

void Generator::discard_all() {
  impl_->cancel_all();
}

void Generator::weights_changed(std::uint64_t version, const WeightChange& change) {
  impl_->interrupt(change);
  impl_->version = version;
  impl_->weights_are_new = true;
}

}  // namespace troupe::engine::generate
