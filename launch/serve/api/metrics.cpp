#include "launch/serve/api/metrics.h"

#include "engine/base/text/text.h"
#include "launch/serve/api/loaded_engine.h"

namespace troupe::launch::serve::api {

using engine::generate::FinishReason;

namespace {

std::string declaration(const std::string& name, const char* type, const std::string& help) {
  return cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

std::string sample(const char* name, const char* type, const char* help, const std::string& labels,
                   double value) {
  return cat(declaration(name, type, help), name, "{", labels, "} ", to_text(value), "\n");
}

/// Escaped as a label's value.
std::string label_value(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

/// Of the steps, and the size of the cache as vLLM writes it: in labels.
std::string steps_text(const engine::serving::ServiceCounters& counters,
                       const std::string& labels) {
  const auto& [counts, sum] = counters.step_tokens;
  const auto& bounds = engine::serving::StepTokens::bounds;
  const Histogram tokens({bounds.begin(), bounds.end()}, {counts.begin(), counts.end()},
                         static_cast<double>(sum));
  std::string out = tokens.text("vllm:iteration_tokens_total", "Tokens of a step.", labels);
  if (counters.pages == 0) return out;
  return out + sample("vllm:cache_config_info", "gauge", "Pages of the KV cache.",
                      cat("block_size=\"", page_tokens, "\",num_gpu_blocks=\"", counters.pages,
                          "\",engine=\"0\""),
                      1.0);
}

std::string counters_text(const engine::serving::ServiceCounters& counters,
                          const std::string& labels) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double used = counters.pages == 0
                          ? 0
                          : number(counters.pages - counters.free_pages - counters.idle_pages) /
                                number(counters.pages);
  return sample("vllm:num_requests_running", "gauge", "Sequences in the batch.", labels,
                number(counters.running)) +
         sample("vllm:num_requests_waiting", "gauge", "Sequences that wait.", labels,
                number(counters.waiting)) +
         sample("vllm:kv_cache_usage_perc", "gauge", "Used part of the KV cache, 0 to 1.", labels,
                used) +
         sample("vllm:num_preemptions_total", "counter", "Preempted sequences.", labels,
                number(counters.preemptions)) +
         sample("vllm:prefix_cache_queries_total", "counter",
                "Tokens of prompts that were looked up in the prefix cache.", labels,
                number(counters.prefix_queries)) +
         sample("vllm:prefix_cache_hits_total", "counter",
                "Tokens of prompts that were in the prefix cache.", labels,
                number(counters.prefix_hits)) +
         sample("vllm:spec_decode_num_draft_tokens_total", "counter", "Draft tokens.", labels,
                number(counters.drafted)) +
         sample("vllm:spec_decode_num_accepted_tokens_total", "counter",
                "Draft tokens that were sampled.", labels, number(counters.accepted)) +
         sample("vllm:prompt_tokens_total", "counter", "Tokens of prompts.", labels,
                number(counters.prompt_tokens)) +
         sample("vllm:generation_tokens_total", "counter", "Generated tokens.", labels,
                number(counters.generated_tokens)) +
         steps_text(counters, labels);
}

}  // namespace

void Histogram::add(double value) {
  std::size_t bin = 0;
  while (bin < bounds_.size() && value > bounds_[bin]) ++bin;
  ++counts_[bin];
  sum_ += value;
}

std::string Histogram::text(const std::string& name, const std::string& help,
                            const std::string& labels) const {
  std::string out = declaration(name, "histogram", help);
  std::int64_t count = 0;
  for (std::size_t bin = 0; bin < counts_.size(); ++bin) {
    count += counts_[bin];
    const std::string bound = bin < bounds_.size() ? to_text(bounds_[bin]) : "+Inf";
    out += cat(name, "_bucket{", labels, ",le=\"", bound, "\"} ", count, "\n");
  }
  return out +
         cat(name, "_sum{", labels, "} ", sum_, "\n", name, "_count{", labels, "} ", count, "\n");
}

std::vector<double> Metrics::time_bounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300};
}

std::vector<double> Metrics::token_bounds() {
  return {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
}

void Metrics::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_.add(seconds);
}

void Metrics::next_token(double seconds) {
  const std::lock_guard lock(mutex_);
  next_token_.add(seconds);
}

void Metrics::accepted(int n, std::int64_t max_tokens) {
  const std::lock_guard lock(mutex_);
  n_.add(n);
  max_tokens_.add(static_cast<double>(max_tokens));
}

void Metrics::finished(FinishReason reason, std::int64_t prompt_tokens, std::int64_t tokens,
                       const SequenceTimes& times) {
  const std::lock_guard lock(mutex_);
  ++reasons_[static_cast<std::size_t>(reason)];
  prompt_tokens_.add(static_cast<double>(prompt_tokens));
  tokens_.add(static_cast<double>(tokens));
  whole_.add(times.whole);
  queued_.add(times.queued);
  if (tokens == 0) return;
  prefill_.add(times.prefill);
  decode_.add(times.decode);
  running_.add(times.prefill + times.decode);
  if (tokens > 1) per_token_.add(times.decode / static_cast<double>(tokens - 1));
}

std::string Metrics::text(const engine::serving::ServiceCounters& counters,
                          const std::string& model) const {
  const std::string labels = cat("model_name=\"", label_value(model), "\",engine=\"0\"");
  std::string out = counters_text(counters, labels);
  const std::lock_guard lock(mutex_);
  out += declaration("vllm:request_success_total", "counter", "Finished sequences.");
  constexpr std::array names = {"stop", "length", "abort"};
  for (std::size_t i = 0; i < names.size(); ++i)
    out += cat("vllm:request_success_total{", labels, ",finished_reason=\"", names[i], "\"} ",
               reasons_[i], "\n");
  struct Named {
    const Histogram& histogram;
    const char* name;
    const char* help;
  };
  const Named all[] = {
      {first_token_, "time_to_first_token_seconds", "From the request to its first token."},
      {next_token_, "inter_token_latency_seconds", "Between two tokens of a sequence."},
      {per_token_, "request_time_per_output_token_seconds", "Mean time between tokens."},
      {whole_, "e2e_request_latency_seconds", "From the request to the end of a sequence."},
      {queued_, "request_queue_time_seconds", "From the request to the start of a sequence."},
      {prefill_, "request_prefill_time_seconds", "From the start to the first token."},
      {decode_, "request_decode_time_seconds", "From the first token to the last."},
      {running_, "request_inference_time_seconds", "From the start to the last token."},
      {prompt_tokens_, "request_prompt_tokens", "Tokens of a prompt."},
      {tokens_, "request_generation_tokens", "Generated tokens of a sequence."},
      {n_, "request_params_n", "Sequences per prompt that a request asks for."},
      {max_tokens_, "request_params_max_tokens", "Most tokens per sequence of a request."}};
  for (const Named& each : all)
    out += each.histogram.text(cat("vllm:", each.name), each.help, labels);
  return out;
}

}  // namespace troupe::launch::serve::api
