#include "engine/generate/generator.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/generate/batch_sampler.h"
#include "engine/generate/draft_model.h"
#include "engine/generate/kv_cache.h"
#include "engine/generate/prompt_lookup.h"
#include "engine/generate/row_batch.h"
#include "engine/generate/rows_to_sample.h"
#include "engine/generate/scheduler.h"
#include "engine/generate/sequence_state.h"
#include "engine/generate/stop_strings.h"
#include "engine/generate/validate_request.h"
#include "engine/ops/phase.h"

namespace troupe::engine::generate {

namespace {

constexpr std::int64_t max_rows_per_step = 1 << 20;
constexpr std::int32_t max_draft = 256;

/// Unfinished requests with the same prompt; they share its pages.
struct PromptGroup {
  std::uint64_t number = 0;
  std::size_t users = 0;
};

Result<> check_drafts(const GeneratorConfig& config, const models::DecoderSpec& spec) {
  if (config.lookup < 0 || config.lookup > max_draft) {
    return fail(Errc::usage, cat("generator: lookup is ", config.lookup, "; allowed: 0 to ",
                                 max_draft, " tokens"));
  }
  if (config.draft == nullptr) return {};
  if (config.lookup > 0)
    return fail(Errc::usage, "generator: prompt lookup and a draft model exclude each other");
  if (config.draft_tokens < 1 || config.draft_tokens > max_draft) {
    return fail(Errc::usage, cat("generator: draft_tokens is ", config.draft_tokens,
                                 "; allowed: 1 to ", max_draft));
  }
  return DraftModel::check_model(config.draft->spec(), spec);
}

/// Fills in the sizes that are 0 and validates the others.
Result<SchedulerConfig> sizes_of(const GeneratorConfig& config, const models::DecoderSpec& spec) {
  if (config.page_size < 1 || config.page_size > 4096) {
    return fail(Errc::usage,
                cat("generator: page_size is ", config.page_size, "; allowed: 1 to 4096 tokens"));
  }
  if (config.max_sequences < 1 || config.max_sequences > max_rows_per_step / 2) {
    return fail(Errc::usage, cat("generator: max_sequences is ", config.max_sequences,
                                 "; allowed: 1 to ", max_rows_per_step / 2));
  }
  const std::int32_t rows =
      config.tokens_per_step == 0 ? config.max_sequences + 512 : config.tokens_per_step;
  if (rows < config.max_sequences || rows > max_rows_per_step) {
    return fail(Errc::usage,
                cat("generator: tokens_per_step is ", rows, "; allowed: max_sequences (",
                    config.max_sequences, ") to ", max_rows_per_step));
  }
  RETURN_IF_ERROR(check_drafts(config, spec));
  const std::int64_t pages = cache_pages(config, spec);
  if (pages < 1 || pages > max_cached_tokens / config.page_size) {
    return fail(Errc::usage,
                cat("generator: ", pages, " pages of ", config.page_size, " tokens; allowed: 1 to ",
                    max_cached_tokens / config.page_size, " pages of that size"));
  }
  return SchedulerConfig{config.page_size, static_cast<std::int32_t>(pages), config.max_sequences,
                         rows, config.prefix_cache && !spec.keys_depend_on_length()};
}

}  // namespace

std::int64_t cache_pages(const GeneratorConfig& config, const models::DecoderSpec& spec) {
  return config.pages == 0
             ? default_pages(spec, config.page_size, config.max_sequences, config.longest)
             : config.pages;
}

struct Generator::Impl {
  models::Decoder& decoder;
  GeneratorConfig config;
  Scheduler scheduler;
  nn::KvCache cache;
  models::PackedWeights packed;
  std::optional<DraftModel> draft_model;
  bool weights_are_new = true;  // and not packed yet
  SequenceStates sequences;
  std::unordered_map<std::uint64_t, std::uint64_t> numbers;  // request id -> order of arrival
  std::map<std::vector<std::int32_t>, PromptGroup> groups;
  std::vector<Generation> finished;
  std::uint64_t arrivals = 0, group_numbers = 0, version = 0;
  GeneratorStats stats;

  Impl(models::Decoder& model, GeneratorConfig how, SchedulerConfig sizes);
  Result<> validate(const Request& request) const;
  const TextDecoder& decoder_of(const Request& request) const {
    return request.decode ? request.decode : config.decode;
  }
  void add(Request request);
  void end(std::uint64_t sequence, FinishReason reason);
  void cancel_all();
  void interrupt(const WeightChange& change);
  void restart(std::uint64_t sequence);

  void step();
  void count_admissions(const Plan& plan);
  Tensor forward(const Plan& plan);
  std::vector<SampledToken> sample(const Plan& plan, const BatchSampler& sampler,
                                   const Tensor& hidden);
  void append(std::span<const SampledToken> sampled);
  void append(const SampledToken& sampled, bool computed);
};

Generator::Impl::Impl(models::Decoder& model, GeneratorConfig how, SchedulerConfig sizes)
    : decoder(model),
      config(std::move(how)),
      scheduler(sizes),
      cache(model.make_cache(sizes.pages, sizes.page_size)),
      packed(model, config.precision, config.weights) {
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
  PromptGroup& group = groups[request.prompt];
  // Keys that depend on the length of their sequence cannot be shared.
  if (group.users++ == 0 || decoder.spec().keys_depend_on_length()) group.number = ++group_numbers;
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
  fresh.request = std::move(request);
  const SequenceState& state = sequences.emplace(number, std::move(fresh)).first->second;
  scheduler.add(number, length, state.limit, group.number, &state.tokens);
}

void Generator::Impl::end(std::uint64_t sequence, FinishReason reason) {
  const auto found = sequences.find(sequence);
  SequenceState& done = found->second;
  done.result.finish = reason;
  const TextDecoder& decode = decoder_of(done.request);
  if (decode && done.result.stop_string.empty()) done.result.text = decode(done.result.ids);
  scheduler.finish(sequence);
  if (const auto group = groups.find(done.request.prompt); --group->second.users == 0)
    groups.erase(group);
  numbers.erase(done.request.id);
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
  scheduler.finish(sequence);
  if (const auto group = groups.find(request.prompt); --group->second.users == 0)
    groups.erase(group);
  numbers.erase(before.id);
  sequences.erase(found);
  add(std::move(request));
  Generation& again = sequences.at(arrivals).result;
  again.interruptions = before.interruptions;
  again.restarts = before.restarts + 1;
}

void Generator::Impl::step() {
  if (std::exchange(weights_are_new, false)) packed.refresh();
  Plan plan = scheduler.plan();
  count_admissions(plan);
  if (config.lookup > 0)
    stats.drafted += propose_by_lookup(plan, scheduler, sequences, config.lookup);
  if (draft_model) stats.drafted += draft_model->propose(plan, scheduler, sequences);
  copy_pages(decoder.device(), cache, plan.copies);
  const Tensor hidden = forward(plan);  // [T, D]
  const BatchSampler sampler(decoder, config.precision, packed.in_use());
  std::vector<SampledToken> sampled = sample(plan, sampler, hidden);
  std::ranges::sort(sampled, [](const SampledToken& a, const SampledToken& b) {
    return a.sequence != b.sequence ? a.sequence < b.sequence : a.position < b.position;
  });
  ++stats.steps;
  stats.rows += plan.rows;
  stats.preemptions += std::ssize(plan.preempted);
  stats.shared_pages += plan.shared_pages;
  stats.copied_pages += std::ssize(plan.copies);
  append(sampled);
}

std::vector<SampledToken> Generator::Impl::sample(const Plan& plan, const BatchSampler& sampler,
                                                  const Tensor& hidden) {
  try {
    return sampler.sample(rows_to_sample(plan, sequences), hidden);
  } catch (const RequestFailure&) {
    scheduler.repeat_samples(plan);  // the others keep what was computed
    throw;
  }
}

void Generator::Impl::count_admissions(const Plan& plan) {
  for (const Admission& each : plan.admitted) {
    Generation& result = sequences.at(each.sequence).result;
    result.cached_tokens = each.cached;
    stats.prefix_queries += result.prompt_tokens;
    stats.prefix_hits += each.cached;
  }
}

Tensor Generator::Impl::forward(const Plan& plan) {
  RowBatch batch;
  for (const Work& work : plan.work) {
    const SequenceState& state = sequences.at(work.sequence);
    const auto& known = work.drafts > 0 ? state.proposed : state.tokens;
    batch.add(std::span(known).subspan(static_cast<std::size_t>(work.first),
                                       static_cast<std::size_t>(work.count)),
              work.first, static_cast<std::int32_t>(known.size()), work.pages);
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
  if (state.request.params.top_logprobs > 0) result.top.push_back(sampled.top);
  scheduler.append(sequence, computed);
  if (config.on_token) {
    const auto index = static_cast<std::int32_t>(result.ids.size()) - 1;
    config.on_token({result.id, index, sampled.id, sampled.logp, sampled.top, version});
    if (!sequences.contains(sequence)) return;
  }
  if (std::ranges::find(state.end_tokens, sampled.id) != state.end_tokens.end())
    return end(sequence, FinishReason::stop);
  if (StopMatch match =
          find_stop(result.ids, state.request.params.stop_strings, decoder_of(state.request));
      match.found()) {
    result.stop_string = std::move(match.stop);
    result.text = std::move(match.text);
    return end(sequence, FinishReason::stop);
  }
  if (state.constraint.must_end()) return end(sequence, FinishReason::stop);
  if (std::ssize(state.tokens) >= state.limit) return end(sequence, FinishReason::length);
  if (decoder.spec().keys_change_at(std::ssize(state.tokens))) scheduler.recompute(sequence);
}

Result<> Generator::submit(Request request) {
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
  try {
    if (!impl_->sequences.empty())
      ops::in_phase(impl_->decoder.device(), "generate", [&] { impl_->step(); });
  } catch (const RequestFailure&) {
    throw;  // of sample()
  } catch (...) {
    // The plan was not completed and no token was appended: the step can be repeated.
    impl_->scheduler.drop_cache();
    throw;
  }
  return std::exchange(impl_->finished, {});
}

bool Generator::cancel(std::uint64_t id) {
  const auto name = impl_->numbers.find(id);
  if (name == impl_->numbers.end()) return false;
  impl_->end(name->second, FinishReason::cancelled);
  return true;
}

bool Generator::idle() const {
  return impl_->sequences.empty() && impl_->finished.empty();
}
std::size_t Generator::unfinished() const {
  return impl_->sequences.size();
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

Result<std::vector<Generation>> Generator::generate_all(std::vector<Request> requests) {
  check(idle(), "generate_all: other requests are pending");
  std::unordered_map<std::uint64_t, std::size_t> index_of;
  for (std::size_t i = 0; i < requests.size(); ++i) index_of[requests[i].id] = i;
  std::vector<Generation> results(requests.size());
  RETURN_IF_ERROR(submit_all(std::move(requests)));
  try {
    while (!idle()) {
      if (impl_->config.stop && impl_->config.stop())
        for (const auto& each : index_of) cancel(each.first);
      for (Generation& done : step()) results[index_of.at(done.id)] = std::move(done);
    }
  } catch (...) {
    impl_->cancel_all();
    throw;
  }
  return results;
}

Result<> Generator::submit_all(std::vector<Request> requests) {
  std::vector<std::uint64_t> submitted;
  for (auto& request : requests) {
    const std::uint64_t id = request.id;
    if (auto ok = submit(std::move(request)); !ok) {
      for (const std::uint64_t each : submitted) cancel(each);
      impl_->finished.resize(impl_->finished.size() - submitted.size());
      return fail(ok);
    }
    submitted.push_back(id);
  }
  return {};
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
