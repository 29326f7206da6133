#include "engine/generate/generator_sizes.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/generate/draft_model.h"
#include "engine/generate/kv_cache.h"

namespace troupe::engine::generate {

namespace {

constexpr std::int64_t max_rows_per_step = 1 << 20;
constexpr std::int32_t max_draft = 256;

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

/// Of prompts in a step, where a step has `rows` rows.
std::int32_t scored_rows(const GeneratorConfig& config, const models::DecoderSpec& spec,
                         std::int32_t rows) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(config.scored_logits / spec.vocabulary, 1, rows));
}

}  // namespace

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
  return SchedulerConfig{.page_size = config.page_size,
                         .pages = static_cast<std::int32_t>(pages),
                         .max_sequences = config.max_sequences,
                         .tokens_per_step = rows,
                         .prefix_cache = config.prefix_cache && !spec.keys_depend_on_length(),
                         .scored_per_step = scored_rows(config, spec, rows)};
}

std::int64_t cache_pages(const GeneratorConfig& config, const models::DecoderSpec& spec) {
  return config.pages == 0
             ? default_pages(spec, config.page_size, config.max_sequences, config.longest)
             : config.pages;
}

}  // namespace troupe::engine::generate
