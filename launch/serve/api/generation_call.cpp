#include "launch/serve/api/generation_call.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "engine/base/text/text.h"
#include "launch/serve/api/failure.h"

namespace troupe::launch::serve::api {

using engine::generate::FinishReason;
using engine::generate::Generation;
using engine::generate::TokenEvent;
using engine::serving::Job;

namespace {

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

double cumulative_logp(const Generation& result) {
  double sum = 0;
  for (const float logp : result.logp) sum += static_cast<double>(logp);
  return sum;
}

/// Tokens and log-probabilities of an answer that is written between two decoding steps, at most.
constexpr std::int64_t max_written_at_once = 2048;

/// Memory of a token's results.
std::size_t result_bytes(std::size_t alternatives) {
  return 20 + (alternatives == 0 ? 0 : 40 + alternatives * sizeof(engine::generate::Alternative));
}

/// Distinct for each key and for each salt that a request gives.
std::string salt_of(const std::string& given, const std::string& key) {
  if (!given.empty()) return "salt " + given;
  return key.empty() ? "" : "key " + key;
}

/// The generator's messages begin with an id that the service has not chosen yet.
std::string without_id(const std::string& message) {
  constexpr std::string_view prefix = "request 0: ";
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

}  // namespace

void GenerationCall::start(const Backend& backend, GenerationRequest request,
                           const http::Request& from, http::Responder responder,
                           Assembled assembled) {
  const auto call = std::make_shared<GenerationCall>(backend, std::move(request), from,
                                                     std::move(responder), std::move(assembled));
  call->submit(from.key);
}

GenerationCall::GenerationCall(const Backend& backend, GenerationRequest request,
                               const http::Request& from, http::Responder responder,
                               Assembled assembled)
    : backend_(backend),
      request_(std::move(request)),
      responder_(std::move(responder)),
      json_(request_, *backend.served, from.id),
      assembled_(std::move(assembled)),
      received_(from.received),
      waiting_bytes_(backend_.waiting.bytes),
      result_bytes_(backend_.results.bytes) {
  request_.cache_salt = salt_of(request_.cache_salt, from.key);
  if (const auto* tokenizer = backend_.model().tokenizer()) {
    for (const auto& prompt : request_.prompts)
      texts_.emplace_back(*tokenizer, prompt, request_.skip_special);
  }
  scores_.resize(request_.prompts.size());
  prompt_parts_.resize(request_.prompts.size());
  for (const auto& prompt : request_.prompts) usage_.prompt_tokens += std::ssize(prompt);
}

void GenerationCall::check_bytes() {
  const std::size_t own = bytes_of(request_) + (assembled_ ? assembled_->bytes() : 0);
  const std::size_t all = waiting_bytes_.grow_to(own);
  if (!backend_.waiting.exceeds(own, all)) return;
  waiting_bytes_.grow_to(0);
  throw Failure({Errc::full, cat("the requests that wait hold ", (all - own) >> 20,
                                 " MiB, and this one has ", own >> 10, " KiB; at most ",
                                 backend_.waiting.limit >> 20, " MiB may wait; try again later")});
}

/// For all sequences of a prompt.
engine::generate::Request GenerationCall::make_request(std::size_t prompt) const {
  engine::generate::Request request;
  request.prompt = request_.prompts[prompt];
  request.params = request_.params;
  request.params.max_new_tokens = std::max(request_.max_tokens[prompt], 1);
  if (!texts_.empty())
    request.decode = [self = shared_from_this(), &text = texts_[prompt]](
                         std::span<const std::int32_t> ids) { return text(ids); };
  request.constraint = request_.constraint.compiled;
  request.allowed = request_.allowed;
  request.begins_without_space = request.constraint != nullptr && !texts_.empty() &&
                                 texts_[prompt].context_bytes() == 0 &&
                                 backend_.model().drops_first_space();
  request.generates = request_.generates;
  request.reported = request_.reported;
  request.adapter = backend_.served->adapter;
  request.cache_salt = request_.cache_salt;
  return request;
}

Job GenerationCall::make_job(std::size_t prompt, int index, SharedRequest request) {
  Job job;
  job.request = std::move(request);
  job.sample_id = static_cast<std::uint64_t>(index);
  job.source = {request_.skip_special, request_.constraint.source};
  const auto self = shared_from_this();
  Choice& choice = choices_[prompt * static_cast<std::size_t>(request_.best_of) +
                            static_cast<std::size_t>(index)];
  if (job.request->scores_prompt()) {
    job.on_prompt = [self, prompt](const engine::generate::PromptScores& scores) {
      self->on_prompt(prompt, scores);
    };
  }
  job.on_start = [&choice] { choice.started = Clock::now(); };
  job.on_token = [self, &choice](const TokenEvent& event) { self->on_token(choice, event); };
  job.on_end = [self, &choice](Result<Generation> result) {
    self->on_end(choice, std::move(result));
  };
  return job;
}

std::vector<Job> GenerationCall::make_jobs() {
  const auto per_prompt = static_cast<std::size_t>(request_.best_of);
  choices_.resize(request_.prompts.size() * per_prompt);
  left_ = choices_.size();
  std::vector<Job> jobs;
  for (std::size_t prompt = 0; prompt < request_.prompts.size(); ++prompt) {
    const auto chain = backend_.sampled ? backend_.sampled->after(request_.prompts[prompt]) : 0;
    auto request = make_request(prompt);
    if (auto accepted = backend_.service().check_request(request); !accepted)
      refuse("", without_id(accepted.error().what));
    const auto plain = std::make_shared<const engine::generate::Request>(request);
    if (request_.scores_prompt())
      request.prompt_alternatives =
          std::max(request_.prompt_logprobs, request_.params.top_logprobs);
    const auto first = std::make_shared<const engine::generate::Request>(std::move(request));
    for (int k = 0; k < request_.best_of; ++k) {
      Choice& choice = choices_[jobs.size()];
      choice.prompt = prompt;
      choice.chain = chain;
      choice.place = first_place(prompt);
      choice.index = static_cast<int>(jobs.size());
      if (!texts_.empty() && in_pieces())
        choice.output.emplace(*backend_.model().tokenizer(), texts_[prompt], request_.skip_special,
                              request_.params.stop_strings, request_.params.min_new_tokens);
      if (request_.message.has_parts()) choice.message.emplace(request_.message);
      jobs.push_back(make_job(prompt, k, k == 0 ? first : plain));
    }
  }
  return jobs;
}

void GenerationCall::submit(const std::string& client) {
  check_bytes();
  std::vector<Job> jobs = make_jobs();
  backend_.metrics.accepted(request_.choices, std::ranges::max(request_.max_tokens));
  auto ids = backend_.service().submit(std::move(jobs), client);
  if (!ids) return responder_.respond(error_answer(ids.error()));
  bool cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    ids_ = std::move(*ids);
    cancelled = cancelled_;
  }
  if (cancelled) cancel_all();  // a sequence failed before the ids were known
  responder_.on_disconnect([weak = weak_from_this()] {
    if (const auto call = weak.lock()) call->cancel_all();
  });
}

void GenerationCall::cancel_all() {
  std::vector<std::uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    ids = ids_;
  }
  for (const std::uint64_t id : ids) backend_.service().cancel(id);
}

/// At its end. A sequence that was cancelled before its start has waited all the time.
SequenceTimes GenerationCall::times_of(const Choice& choice) const {
  const auto now = Clock::now();
  const auto started = choice.started.value_or(now);
  const auto first = choice.first_token.value_or(now), last = choice.last_token.value_or(now);
  return {.queued = seconds_between(received_, started),
          .prefill = seconds_between(started, first),
          .decode = seconds_between(first, last),
          .whole = seconds_between(received_, now)};
}

/// Counts results that wait for the end of the answer.
void GenerationCall::hold(std::size_t bytes) {
  held_results_ += bytes;
  const std::size_t all = result_bytes_.grow_to(held_results_);
  if (failed_ || !backend_.results.exceeds(held_results_, all)) return;
  throw Failure(
      {Errc::full, cat("the results of answers that are not complete hold ", all >> 20,
                       " MiB, of which this request has ", held_results_ >> 20, "; at most ",
                       backend_.results.limit >> 20, " MiB may be held; try again later")});
}

void GenerationCall::on_prompt(std::size_t prompt, const engine::generate::PromptScores& scores) {
  if (failed_) return;
  scores_[prompt] = scores;
  hold(scores.logp.size() * result_bytes(scores.top.empty() ? 0 : scores.top.back().size()));
  for (Choice& choice : choices_) {
    if (choice.prompt != prompt) continue;
    for (HeldToken& each : std::exchange(choice.held, {})) send_token(choice, std::move(each));
    if (choice.has_ended) send_end(choice);
  }
}

void GenerationCall::on_token(Choice& choice, const TokenEvent& event) {
  const auto now = Clock::now();
  if (choice.last_token)
    backend_.metrics.next_token(seconds_between(*choice.last_token, now));
  else
    backend_.metrics.first_token(seconds_between(received_, now));
  choice.last_token = now;
  if (!choice.first_token) choice.first_token = now;
  ++usage_.completion_tokens;
  if (backend_.sampled != nullptr) {
    choice.chain = backend_.sampled->next(choice.chain, event.token);
    backend_.sampled->add(choice.chain, event.logp, event.version);
    // Samples are trained on at temperature 1.
    if (!event.mask.empty() && request_.params.temperature == 1)
      backend_.sampled->add(choice.chain, event.sampling_logp, event.version, event.mask);
  }
  hold(result_bytes(event.top.size()) + event.mask.size());
  if (!in_pieces() || failed_) return;
  HeldToken token{{event.token, event.logp, alternatives_of(event.token, event.logp, event.top)},
                  event.version,
                  std::string(event.mask),
                  event.sampling_logp};
  if (event.last)
    choice.last = std::move(token);  // on_end() follows
  else if (waits_for_scores(choice))
    choice.held.push_back(std::move(token));
  else
    send_token(choice, std::move(token));
}

/// As they are reported: those that the request names follow the sampled token.
std::vector<engine::generate::Alternative> GenerationCall::alternatives_of(
    std::int32_t token, float logp, std::span<const engine::generate::Alternative> top) const {
  std::vector<engine::generate::Alternative> out;
  if (!request_.reported.empty()) out.push_back({token, logp});
  for (const auto& each : top)
    if (request_.reported.empty() || each.id != token) out.push_back(each);
  return out;
}

void GenerationCall::on_end(Choice& choice, Result<Generation> result) {
  if (!result) return fail_call(result.error());
  --left_;
  choice.result = std::move(*result);
  backend_.metrics.finished(choice.result.finish, choice.result.prompt_tokens,
                            std::ssize(choice.result.ids), times_of(choice));
  // Only cancel_all() cancels: nobody waits for the answer, of which any part may be missing.
  if (choice.result.finish == FinishReason::cancelled) failed_ = true;
  if (failed_) return;
  if (choice.index % request_.best_of == 0) usage_.cached_tokens += choice.result.cached_tokens;
  choice.has_ended = true;
  if (in_pieces() && !waits_for_scores(choice)) send_end(choice);
  if (left_ == 0) finish();
}

/// The first error is the answer of the whole call.
void GenerationCall::fail_call(const Error& error) {
  if (std::exchange(failed_, true)) return;
  if (streaming_) {
    if (assembled_ != nullptr)
      responder_.send_events({assembled_->failed(error)});
    else
      responder_.send_event(error_answer(error).body);
    responder_.end_stream();
  } else {
    responder_.respond(error_answer(error));
  }
  cancel_all();
}

void GenerationCall::finish() {
  if (assembled_ != nullptr)
    return request_.stream ? responder_.end_stream()
                           : responder_.respond({.body = assembled_->whole()});
  if (!request_.stream) {
    if (reported() <= max_written_at_once) return respond();
    return backend_.answers.post([self = shared_from_this()] { self->respond(); });
  }
  if (request_.include_usage) responder_.send_event(json_.usage_chunk(usage_));
  responder_.send_event("[DONE]");
  responder_.end_stream();
}

/// Tokens and log-probabilities of the answer.
std::int64_t GenerationCall::reported() const {
  std::int64_t tokens = 0;
  for (const Choice& each : choices_) tokens += std::ssize(each.result.ids);
  return reported_of_prompts(request_) +
         tokens * (request_.logprobs ? 1 + request_.alternatives() : 1);
}

void GenerationCall::respond() {
  if (responder_.disconnected()) return;
  responder_.respond({.body = whole_answer()});
}

std::string GenerationCall::whole_answer() {
  const auto best = best_choices();
  usage_.completion_tokens = 0;  // of the sequences that are returned
  for (const Choice* each : best) usage_.completion_tokens += std::ssize(each->result.ids);
  std::string text = json_.begin();
  int index = 0;
  for (const Choice* each : best)
    json_.append_choice(text, whole_part(*each, index++), prompt_part(each->prompt));
  json_.append_end(text, usage_, prompt_part(0));
  return text;
}

const PromptPart& GenerationCall::prompt_part(std::size_t prompt) {
  auto& part = prompt_parts_[prompt];
  if (!part) part = json_.prompt_part(prompt, scores_[prompt]);
  return *part;
}

/// The n most likely sequences of each prompt.
std::vector<const GenerationCall::Choice*> GenerationCall::best_choices() const {
  const auto per_prompt = static_cast<std::size_t>(request_.best_of);
  std::vector<const Choice*> best;
  for (std::size_t first = 0; first < choices_.size(); first += per_prompt) {
    std::vector<const Choice*> group;
    for (std::size_t k = 0; k < per_prompt; ++k) group.push_back(&choices_[first + k]);
    if (request_.best_of > request_.choices) {
      std::ranges::stable_sort(group, [](const Choice* a, const Choice* b) {
        return cumulative_logp(a->result) > cumulative_logp(b->result);
      });
    }
    best.insert(best.end(), group.begin(), group.begin() + request_.choices);
  }
  return best;
}

ChoicePart GenerationCall::whole_part(const Choice& choice, int index) {
  const Generation& result = choice.result;
  ChoicePart part{.index = index, .text = final_text(choice), .place = first_place(choice.prompt)};
  if (request_.echo) part.echo = &prompt_part(choice.prompt);
  if (request_.message.has_parts()) {
    MessageReader reader(request_.message);
    read_message(reader, true, part);
    part.finish = finish_reason(choice, reader.calls());
  } else {
    part.finish = finish_reason(choice, 0);
  }
  for (std::size_t i = 0; i < result.ids.size() && request_.logprobs; ++i) {
    part.tokens.push_back({result.ids[i], result.logp[i], {}});
    if (!result.top.empty())
      part.tokens.back().top = alternatives_of(result.ids[i], result.logp[i], result.top[i]);
  }
  part.ids = result.ids;
  part.versions = result.versions;
  part.masks = result.masks;
  part.sampling_logp = result.sampling_logp;
  part.stop_reason = stop_reason(result);
  return part;
}

/// The next piece of a stream.
ChoicePart GenerationCall::part_of(const Choice& choice) {
  return {.index = choice.index, .first = !choice.sent, .place = choice.place};
}

TextPlace GenerationCall::first_place(std::size_t prompt) const {
  return {.begins = !texts_.empty() && texts_[prompt].context_bytes() == 0,
          .skips_special = request_.skip_special};
}

/// The first part of a choice has the scores of its prompt, which the first choice computes.
bool GenerationCall::waits_for_scores(const Choice& choice) const {
  return request_.echo && request_.logprobs && !choice.sent && scores_[choice.prompt].logp.empty();
}

/// Replaces the text of a part, of one token if it has ids, by what the reader finds in it.
/// `ends`: no more text follows.
void GenerationCall::read_message(MessageReader& reader, bool ends, ChoicePart& part) {
  const auto add = [&](MessagePart&& message) {
    part.text += message.content;
    if (request_.include_reasoning) part.reasoning += message.reasoning;
    std::ranges::move(message.calls, std::back_inserter(part.calls));
  };
  const bool within = reader.in_reasoning();
  add(reader.push(std::exchange(part.text, {})));
  if (!part.ids.empty()) usage_.reasoning_tokens += within || reader.in_reasoning() ? 1 : 0;
  if (ends) add(reader.finish());
}

void GenerationCall::read_token(Choice& choice, HeldToken token, ChoicePart& part) {
  if (choice.output && !(drops_end_token() && is_end_token(token.token.id)))
    part.text += choice.output->push(token.token.id);
  part.ids = {token.token.id};
  part.versions = {token.version};
  part.masks.push_back(token.mask);
  part.sampling_logp = {token.sampling_logp};
  if (request_.logprobs) part.tokens.push_back(std::move(token.token));
}

void GenerationCall::send_token(Choice& choice, HeldToken token) {
  ChoicePart part = part_of(choice);
  read_token(choice, std::move(token), part);
  if (choice.message) read_message(*choice.message, false, part);
  const bool reports =
      request_.logprobs || request_.return_token_ids || request_.return_weight_versions;
  const bool empty = part.text.empty() && part.reasoning.empty() && part.calls.empty();
  if (empty && choice.sent && !reports) return;
  send(choice, std::move(part));
}

/// With the last token.
void GenerationCall::send_end(Choice& choice) {
  const Generation& result = choice.result;
  ChoicePart part = part_of(choice);
  if (choice.last) read_token(choice, std::move(*choice.last), part);
  if (choice.output) part.text += choice.output->finish(final_text(choice));
  if (choice.message) read_message(*choice.message, true, part);
  part.finish = finish_reason(choice, choice.message ? choice.message->calls() : 0);
  part.stop_reason = stop_reason(result);
  send(choice, std::move(part));
}

bool GenerationCall::send_assembled(const ChoicePart& part) {
  const auto events = assembled_->add(part, usage_);
  return !request_.stream || events.empty() || responder_.send_events(events);
}

void GenerationCall::send(Choice& choice, ChoicePart part) {
  if (request_.stream && !std::exchange(streaming_, true)) responder_.begin_stream();
  if (assembled_ != nullptr) {
    choice.sent = true;
    if (!send_assembled(part)) cancel_all();
    return;
  }
  const PromptPart& prompt = prompt_part(choice.prompt);
  if (!std::exchange(choice.sent, true) && request_.echo) {
    part.echo = &prompt;
    if (request_.logprobs) choice.place = prompt.logprobs.place();
  }
  for (const ReportedToken& token : part.tokens)
    choice.place.pass(choice.place.bytes_of(backend_.model(), token.id));
  if (!responder_.send_event(json_.chunk(part, prompt, usage_))) cancel_all();
}

/// An output with calls ends with tool_calls, except a call of the function that the request named
/// (as OpenAI's and vLLM's servers).
std::string GenerationCall::finish_reason(const Choice& choice, int calls) const {
  const bool called = calls > 0 && request_.message.calls != CallFormat::arguments;
  if (called && choice.result.finish == FinishReason::stop) return "tool_calls";
  return to_string(choice.result.finish);
}

bool GenerationCall::is_end_token(std::int32_t token) const {
  const auto& params = request_.params;
  const auto& ends = backend_.model().eos_ids();
  return std::ranges::find(params.stop_tokens, token) != params.stop_tokens.end() ||
         (!params.ignore_eos && std::ranges::find(ends, token) != ends.end());
}

std::string GenerationCall::final_text(const Choice& choice) const {
  const Generation& result = choice.result;
  if (request_.include_stop) return result.text + result.stop_string;
  if (!result.stop_string.empty()) return result.text;
  // Where special tokens are part of the text, the end token is still none of the message.
  if (drops_end_token() && !result.ids.empty() && is_end_token(result.ids.back()))
    return texts_[choice.prompt](std::span(result.ids).first(result.ids.size() - 1));
  return result.text;
}

Json GenerationCall::stop_reason(const Generation& result) const {
  if (!result.stop_string.empty()) return result.stop_string;
  if (result.finish != FinishReason::stop || result.ids.empty()) return nullptr;
  const auto& stops = request_.params.stop_tokens;
  const std::int32_t last = result.ids.back();
  return std::ranges::find(stops, last) == stops.end() ? Json() : Json(std::int64_t{last});
}

}  // namespace troupe::launch::serve::api
