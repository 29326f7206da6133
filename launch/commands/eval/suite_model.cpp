#include "launch/commands/eval/suite_model.h"

#include <algorithm>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/evaluation/answer_settings.h"
#include "launch/evaluation/python_text.h"

namespace troupe::launch::commands {
namespace {

using engine::generate::Generation;
using engine::generate::Request;
using evaluation::AnswerSettings;
using evaluation::OutputType;
using Tokens = std::vector<std::int32_t>;

constexpr std::int32_t max_running = 64;  // in a step

std::unique_ptr<engine::serving::Engine> make_engine(model::Model& model,
                                                     const std::shared_ptr<run::TextModel>& text) {
  engine::generate::GeneratorConfig config;
  config.max_sequences = max_running;
  config.prefix_cache = true;
  config.precision = model.precision();
  config.eos_ids = model.spec().eos_ids;
  config.longest = model.spec().max_positions;
  config.decode = [text](std::span<const std::int32_t> ids) { return text->decode(ids); };
  auto engine = std::make_unique<engine::serving::Engine>(model.decoder(), std::move(config));
  value_or_throw(engine->start());
  return engine;
}

/// The last `most` entries. True if some were dropped.
bool cut_left(Tokens& tokens, std::size_t most) {
  if (tokens.size() <= most) return false;
  tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(most));
  return true;
}

/// postprocess_generated_text() of lm_eval/models/utils.py.
std::string before_stops(std::string text, const std::vector<std::string>& stops) {
  for (const std::string& stop : stops)
    if (!stop.empty()) text = text.substr(0, text.find(stop));
  return text;
}

}  // namespace

SuiteModel::SuiteModel(const model::ModelOptions& options)
    : model_(value_or_throw(model::Model::load(options, model::NeededHead::language))),
      text_(value_or_throw(
          run::TextModel::load(model_.folders().text, "", model_.spec(), options.tokenizer_ids))),
      engine_(make_engine(model_, text_)) {
  if (!text_->has_tokenizer())
    throw Failure({Errc::usage, cat(model_.folders().text, ": tasks need a tokenizer")});
  const auto text_of = [&](std::optional<std::int32_t> token) {
    return token ? text_->decode_all(std::vector{*token}) : std::string();
  };
  begin_text_ = text_of(text_->begin_token());
  end_text_ = text_of(text_->end_token());
}

/// tok_encode() of lm_eval/models/huggingface.py: with the tokenizer's special tokens, unless the
/// text begins with BOS.
Tokens SuiteModel::encode(const std::string& text) const {
  const std::string& prefix = begin_text_.empty() ? end_text_ : begin_text_;
  const bool begins = !prefix.empty() && text.starts_with(prefix);
  return value_or_throw(text_->encode(text, !begins));
}

std::int32_t SuiteModel::prefix_token() const {
  if (const auto begin = text_->begin_token()) return *begin;
  if (const auto end = text_->end_token()) return *end;
  throw Failure({Errc::usage,
                 "the tokenizer has neither a BOS nor an EOS token, which stands "
                 "before an empty context"});
}

void SuiteModel::submit(engine::serving::Job job, const OpenItem& open,
                        std::function<void(Generation&)> on_end) {
  ++open->left;
  job.on_end = [open, on_end = std::move(on_end)](Result<Generation> ended) {
    --open->left;
    if (!ended)
      open->failed = std::move(ended.error());
    else
      on_end(*ended);
  };
  engine_->submit(next_id_++, std::move(job));
}

void SuiteModel::submit_scores(Tokens tokens, std::size_t from, std::size_t likelihood,
                               const OpenItem& open, double divisor) {
  Request request{.prompt = std::move(tokens)};
  request.params.max_new_tokens = 1;
  request.prompt_alternatives = 0;
  request.scored_from = static_cast<std::int32_t>(from);
  request.generates = false;
  engine::serving::Job job;
  job.on_prompt = [open, from, likelihood, divisor](const engine::generate::PromptScores& scores) {
    evaluation::Likelihood& out = open->answered.answer.likelihoods[likelihood];
    for (std::size_t t = from; t < scores.logp.size(); ++t) {
      out.logp += static_cast<double>(scores.logp[t]);
      out.greedy = out.greedy && scores.rank[t] == 1;
    }
    out.logp /= divisor;
  };
  job.request = std::make_shared<const Request>(std::move(request));
  submit(std::move(job), open, [](Generation&) {});
}

/// The tokens of a continuation with its context, and the first of them that is scored:
/// _encode_pair() of lm_eval/api/model.py.
std::pair<Tokens, std::size_t> SuiteModel::scored_tokens(const AskedItem& asked, std::size_t i,
                                                         const Tokens& context) const {
  const auto& item = *asked.item;
  if (asked.task->scored == evaluation::Scored::last_token) {
    Tokens whole = encode(item.context);
    whole.push_back(last_token(item.continuations[i]));
    return {whole, whole.size() - 1};
  }
  // acc_mutual_info scores the choices again after an empty context.
  if (item.context.empty() || (!item.choices.empty() && i >= item.choices.size())) {
    Tokens whole = value_or_throw(text_->encode(item.continuations[i], false));
    if (whole.empty() || whole.front() != prefix_token())
      whole.insert(whole.begin(), prefix_token());
    return {whole, 1};
  }
  // What follows as many tokens as the context has, after those of the context alone: they may
  // differ where a token spans both.
  Tokens whole = encode(item.context + item.continuations[i]);
  const std::size_t from = std::min(context.size(), whole.size());
  std::copy_n(context.begin(), from, whole.begin());
  return {whole, from};
}

/// Choices, or one continuation.
void SuiteModel::start_scores(const AskedItem& asked, const OpenItem& open) {
  const auto& item = *asked.item;
  const auto most = static_cast<std::size_t>(model_.spec().max_positions - 1);
  auto& likelihoods = open->answered.answer.likelihoods;
  likelihoods.assign(item.continuations.size(), {.logp = 0, .greedy = true});
  if (asked.task->scored == evaluation::Scored::whole_text) return start_whole_texts(asked, open);
  // Spaces at the end of a context belong to the continuation.
  const std::string stripped = evaluation::right_stripped(item.context);
  const Tokens context = item.context.empty() ? Tokens() : encode(stripped);
  for (std::size_t i = 0; i < item.continuations.size(); ++i) {
    auto [whole, from] = scored_tokens(asked, i, context);
    const std::size_t scored = whole.size() - from;
    if (scored == 0) continue;
    open->answered.truncated |= cut_left(whole, most);
    if (scored >= whole.size())
      throw Failure(
          {Errc::bad_input, cat(asked.task->name, ", item ", item.number, ": a continuation of ",
                                scored, " tokens; the model has ", most + 1, " positions")});
    const std::size_t first = std::max<std::size_t>(whole.size() - scored, 1);
    submit_scores(std::move(whole), first, i, open);
  }
}

/// The sum of negative log-probabilities over the number of tokens, with the first one, which has
/// none (eval_impl/mmlu_ppl.py of MindSpeed-LLM); here with the other sign.
void SuiteModel::start_whole_texts(const AskedItem& asked, const OpenItem& open) {
  const auto most = static_cast<std::size_t>(model_.spec().max_positions - 1);
  for (std::size_t i = 0; i < asked.item->continuations.size(); ++i) {
    Tokens whole =
        value_or_throw(text_->encode(asked.item->context + asked.item->continuations[i], true));
    open->answered.truncated |= cut_left(whole, most);
    const auto count = static_cast<double>(whole.size());
    if (whole.size() > 1) submit_scores(std::move(whole), 1, i, open, count);
  }
}

/// tokenizer.encode(text)[-1], with the special tokens that the tokenizer adds.
std::int32_t SuiteModel::last_token(const std::string& text) const {
  const Tokens tokens = value_or_throw(text_->encode(text, true));
  if (tokens.empty())
    throw Failure({Errc::usage, cat("the tokenizer has no token for ", quote(text))});
  return tokens.back();
}

/// get_rolling_token_windows() and make_disjoint_window() of lm_eval/utils.py.
void SuiteModel::start_windows(const std::string& text, const OpenItem& open) {
  open->answered.answer.likelihoods = {{.logp = 0, .greedy = true}};
  Tokens tokens = encode(text);
  const auto most = static_cast<std::size_t>(model_.spec().max_positions - 2);
  open->answered.truncated = tokens.size() > most;
  tokens.insert(tokens.begin(), prefix_token());
  for (std::size_t done = 1; done < tokens.size();) {
    const std::size_t end = std::min(done + most, tokens.size());
    // The last window is as long as the others where there are tokens before it.
    const std::size_t begin = end > most + 1 && done > 1 ? end - most - 1 : done - 1;
    submit_scores(Tokens(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                         tokens.begin() + static_cast<std::ptrdiff_t>(end)),
                  done - begin, 0, open);
    done = end;
  }
}

void SuiteModel::start_texts(const AskedItem& asked, const OpenItem& open) {
  AnswerSettings settings = value_or_throw(evaluation::answer_settings(*asked.task));
  // evaluation.py of MindSpeed-LLM knows no stop strings.
  if (!end_text_.empty() && !asked.task->rule) settings.stops.push_back(end_text_);
  const std::int64_t room = model_.spec().max_positions - 1 - settings.new_tokens;
  if (room < 1)
    throw Failure({Errc::usage,
                   cat(asked.task->name, ": ", settings.new_tokens, " new tokens of a model with ",
                       model_.spec().max_positions, " positions; lower max_gen_toks")});
  Request request{.prompt = encode(asked.item->context)};
  if (request.prompt.empty()) request.prompt = {prefix_token()};
  open->answered.truncated = cut_left(request.prompt, static_cast<std::size_t>(room));
  request.params.max_new_tokens = static_cast<std::int32_t>(settings.new_tokens);
  request.params.greedy = settings.temperature == 0;
  if (settings.temperature > 0) request.params.temperature = settings.temperature;
  request.params.stop_strings = settings.stops;
  request.params.beams.count = settings.beams;
  if (settings.beams > 1)
    request.decode = [text = text_](std::span<const std::int32_t> ids) {
      return text->decode(ids);
    };
  request.params.beams.length_penalty = settings.length_penalty;
  const auto shared = std::make_shared<const Request>(std::move(request));
  const auto repeats = static_cast<std::size_t>(asked.task->repeats);
  open->answered.answer.texts.resize(repeats);
  if (settings.beams > 1) {
    const auto found = value_or_throw(engine_->beam_search(*shared, {}));
    for (std::string& text : open->answered.answer.texts)
      text = before_stops(found.front().text, settings.stops);
    return;
  }
  for (std::size_t k = 0; k < repeats; ++k) {
    engine::serving::Job job;
    job.request = shared;
    job.sample_id = static_cast<std::uint64_t>(asked.item->number) * repeats + k;
    submit(std::move(job), open, [open, k, stops = settings.stops](Generation& ended) {
      open->answered.answer.texts[k] = before_stops(std::move(ended.text), stops);
    });
  }
}

void SuiteModel::start(const AskedItem& asked) {
  const OpenItem open = std::make_shared<Open>();
  open_.push_back(open);
  switch (asked.task->output_type) {
    case OutputType::multiple_choice:
    case OutputType::loglikelihood:
      return start_scores(asked, open);
    case OutputType::loglikelihood_rolling:
      return start_windows(asked.item->continuations.front(), open);
    case OutputType::generate_until:
      return start_texts(asked, open);
  }
}

void SuiteModel::answer(const std::vector<AskedItem>& items,
                        const std::function<void(AnsweredItem)>& write) {
  std::size_t next = 0;
  while (next < items.size() || !open_.empty()) {
    while (next < items.size() && engine_->active() < 2 * max_running) start(items[next++]);
    if (!engine_->idle()) engine_->step();
    while (!open_.empty() && open_.front()->left == 0) {
      const OpenItem done = open_.front();
      if (done->failed) throw Failure(*done->failed);
      open_.pop_front();
      write(std::move(done->answered));
    }
  }
}

}  // namespace troupe::launch::commands
