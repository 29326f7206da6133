#include "engine/generate/generator.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/generate/generator_impl.h"
#include "engine/generate/kv_cache.h"
#include "engine/generate/validate_request.h"

namespace troupe::engine::generate {

namespace {

constexpr std::int64_t most_rows_per_step = 1 << 20;

/// Fills in the sizes that are 0, or refuses.
Result<SchedulerConfig> sizes_of(const GeneratorConfig& config, const models::DecoderSpec& spec) {
  if (config.page_size < 1 || config.page_size > 4096) {
    return fail(Errc::usage,
                cat("generator: page_size is ", config.page_size, "; allowed: 1 to 4096 tokens"));
  }
  if (config.max_sequences < 1 || config.max_sequences > most_rows_per_step / 2) {
    return fail(Errc::usage, cat("generator: max_sequences is ", config.max_sequences,
                                 "; allowed: 1 to ", most_rows_per_step / 2));
  }
  const std::int32_t rows =
      config.tokens_per_step == 0 ? config.max_sequences + 512 : config.tokens_per_step;
  if (rows < config.max_sequences || rows > most_rows_per_step) {
    return fail(Errc::usage,
                cat("generator: tokens_per_step is ", rows, "; allowed: max_sequences (",
                    config.max_sequences, ") to ", most_rows_per_step));
  }
  const std::int64_t pages = cache_pages(config, spec);
  if (pages < 1 || pages > most_cached_tokens / config.page_size) {
    return fail(Errc::usage,
                cat("generator: ", pages, " pages of ", config.page_size, " tokens; allowed: 1 to ",
                    most_cached_tokens / config.page_size, " pages of that size"));
  }
  return SchedulerConfig{config.page_size, static_cast<std::int32_t>(pages), config.max_sequences,
                         rows};
}

}  // namespace

std::int64_t cache_pages(const GeneratorConfig& config, const models::DecoderSpec& spec) {
  return config.pages == 0
             ? default_pages(spec, config.page_size, config.max_sequences, config.longest)
             : config.pages;
}

Generator::Impl::Impl(models::Decoder& model, GeneratorConfig how, SchedulerConfig sizes)
    : decoder(model),
      config(std::move(how)),
      scheduler(sizes),
      cache(model.make_cache(sizes.pages, sizes.page_size)),
      packed(model, config.precision, config.weights) {
  config.pages = sizes.pages;
  config.tokens_per_step = sizes.tokens_per_step;
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

Result<> Generator::Impl::refuse(const Request& request) const {
  const std::string where = cat("request ", request.id, ": ");
  if (names.contains(request.id))
    return fail(Errc::usage, where + "another unfinished request has this id");
  if (request.params.beams.count > 1)
    return fail(Errc::usage, where + "num_beams is above 1, which is beam_search's to answer");
  RETURN_IF_ERROR(check_request(request, decoder.spec(), static_cast<bool>(config.decode)));
  const auto longest =
      std::min(static_cast<std::int64_t>(request.prompt.size()) + request.params.max_new_tokens,
               decoder.spec().max_positions);
  if (const std::int32_t pages = scheduler.pages_for(longest); pages > config.pages) {
    return fail(Errc::full, cat(where, longest, " tokens of prompt and output need ", pages,
                                " pages of the cache, which has ", config.pages, " of ",
                                config.page_size, " tokens; give it more or lower max_new_tokens"));
  }
  return {};
}

void Generator::Impl::add(Request request) {
  const std::uint64_t number = ++arrivals;
  PromptGroup& group = groups[request.prompt];
  // Keys that depend on how long a sequence has become are nobody else's.
  if (group.users++ == 0 || decoder.spec().keys_change()) group.number = ++group_numbers;
  const auto length = static_cast<std::int32_t>(request.prompt.size());
  Live fresh;
  fresh.limit = static_cast<std::int32_t>(
      std::min(std::int64_t{length} + request.params.max_new_tokens, decoder.spec().max_positions));
  fresh.tokens = request.prompt;
  fresh.ends = ends_of(request.params, config.eos_ids);
  fresh.result.id = request.id;
  fresh.result.sample_id = request.sample_id;
  fresh.result.prompt_tokens = length;
  scheduler.add(number, length, fresh.limit, group.number);
  names.emplace(request.id, number);
  fresh.request = std::move(request);
  live.emplace(number, std::move(fresh));
}

void Generator::Impl::end(std::uint64_t sequence, FinishReason reason) {
  const auto place = live.find(sequence);
  Live& done = place->second;
  done.result.finish = reason;
  if (config.decode && done.result.stop_string.empty())
    done.result.text = config.decode(done.result.ids);
  scheduler.finish(sequence);
  if (const auto group = groups.find(done.request.prompt); --group->second.users == 0)
    groups.erase(group);
  names.erase(done.request.id);
  finished.push_back(std::move(done.result));
  live.erase(place);
}

void Generator::Impl::forget_all() {
  while (!live.empty()) end(live.begin()->first, FinishReason::cancelled);
  finished.clear();
}

Result<> Generator::submit(Request request) {
  RETURN_IF_ERROR(impl_->refuse(request));
  impl_->add(std::move(request));
  return {};
}

std::vector<Generation> Generator::step() {
  try {
    if (!impl_->live.empty()) impl_->step();
  } catch (...) {
    impl_->scheduler.drop_cache();  // the plan half done is void; no token was appended, so the
                                    // step can be taken again
    throw;
  }
  return std::exchange(impl_->finished, {});
}

bool Generator::cancel(std::uint64_t id) {
  const auto name = impl_->names.find(id);
  if (name == impl_->names.end()) return false;
  impl_->end(name->second, FinishReason::cancelled);
  return true;
}

bool Generator::idle() const {
  return impl_->live.empty() && impl_->finished.empty();
}
std::size_t Generator::unfinished() const {
  return impl_->live.size();
}
const GeneratorStats& Generator::stats() const {
  return impl_->stats;
}

Result<std::vector<Generation>> Generator::generate_all(std::vector<Request> requests) {
  check(idle(), "generate_all: other requests are pending");
  std::unordered_map<std::uint64_t, std::size_t> place;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    place[requests[i].id] = i;
    if (auto ok = submit(std::move(requests[i])); !ok) {
      impl_->forget_all();
      return fail(ok);
    }
  }
  std::vector<Generation> results(requests.size());
  try {
    while (!idle()) {
      for (Generation& done : step()) results[place.at(done.id)] = std::move(done);
    }
  } catch (...) {
    impl_->forget_all();
    throw;
  }
  return results;
}

void Generator::weights_changed(std::uint64_t version) {
  impl_->scheduler.drop_cache();
  impl_->version = version;
  impl_->weights_are_new = true;
}

}  // namespace troupe::engine::generate
