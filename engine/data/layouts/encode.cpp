#include "engine/data/layouts/encode.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/data/layouts/marked_text.h"

namespace troupe::engine::data {
namespace {

using Ids = std::vector<std::int32_t>;

// Number of leading `ids` that the first `bytes` bytes of the text determine: those that also begin
// the tokens of that part alone. A token that crosses the boundary belongs to the part after it, so
// the first letters of an answer are always trained on.
Result<std::size_t> tokens_before(std::size_t bytes, const MarkedText& marked, const Ids& ids,
                                  const TextEncoder& encoder) {
  if (bytes >= marked.text.size()) return ids.size();
  auto part = encoder.encode(std::string_view(marked.text).substr(0, bytes), marked.add_special);
  RETURN_IF_ERROR(part);
  return static_cast<std::size_t>(
      std::mismatch(part->begin(), part->end(), ids.begin(), ids.end()).first - part->begin());
}

void add_begin_token(SftExample& row, const TextEncoder& encoder, const EncodeOptions& options) {
  const auto first = encoder.begin_token();
  if (options.begin_token == BeginToken::text || !first ||
      (!row.ids.empty() && row.ids.front() == *first))
    return;
  row.ids.insert(row.ids.begin(), *first);
  row.weights.insert(row.weights.begin(), 0.0f);
}

Result<SftExample> to_tokens(const MarkedText& marked, const TextEncoder& encoder,
                             const EncodeOptions& options) {
  auto ids = encoder.encode(marked.text, marked.add_special);
  RETURN_IF_ERROR(ids);
  SftExample out{.ids = std::move(*ids), .weights = {}};
  out.weights.assign(out.ids.size(), 0.0f);
  for (const auto& span : marked.trained) {
    const auto begin = tokens_before(span.begin, marked, out.ids, encoder),
               end = tokens_before(span.end, marked, out.ids, encoder);
    RETURN_IF_ERROR(begin);
    RETURN_IF_ERROR(end);
    for (auto t = *begin; t < *end; ++t) out.weights[t] = span.weight;
  }
  add_begin_token(out, encoder, options);
  const auto last = encoder.end_token();
  const bool ends = marked.append_end && options.append_end_token;
  if ((ends || options.end_token == EndToken::always) && last &&
      (out.ids.empty() || out.ids.back() != *last)) {
    out.ids.push_back(*last);
    out.weights.push_back(marked.trained.empty() ? 1.0f : marked.trained.back().weight);
  }
  return out;
}

SftExample of_token_row(const TokenRow& row) {
  SftExample out{.ids = row.ids, .weights = {}};
  for (const auto label : row.labels) out.weights.push_back(label == -100 ? 0.0f : 1.0f);
  return out;
}

// Truncates to max_length; false if no trainable token is left (the first token of a sequence has
// no log-probability).
bool finish(SftExample& example, const EncodeOptions& options) {
  if (options.train_on_prompt) std::fill(example.weights.begin(), example.weights.end(), 1.0f);
  const auto limit = static_cast<std::size_t>(std::max<std::int64_t>(options.max_length, 0));
  if (limit > 0 && example.ids.size() > limit) {
    example.cut_tokens = static_cast<std::int64_t>(example.ids.size() - limit);
    example.ids.resize(limit);
    example.weights.resize(limit);
  }
  return example.ids.size() > 1 && std::any_of(example.weights.begin() + 1, example.weights.end(),
                                               [](float w) { return w != 0; });
}

Result<SftExample> encode_text(const Json& prompt, const Json& completion, const Sample& sample,
                               const TextEncoder& encoder, const EncodeOptions& options) {
  auto marked = mark_text(prompt, completion, sample.tools, encoder);
  RETURN_IF_ERROR(marked);
  auto example = to_tokens(*marked, encoder, options);
  if (!example) return example;
  RETURN_IF_ERROR(check_vocabulary(example->ids, encoder));
  return example;
}

std::ptrdiff_t answer_start(const SftExample& row) {
  return std::ranges::find_if(row.weights, [](float weight) { return weight != 0; }) -
         row.weights.begin();
}

void begin_together(SftExample& one, SftExample& other) {
  const auto start = std::min(answer_start(one), answer_start(other));
  for (SftExample* row : {&one, &other})
    if (const auto own = row->weights.begin() + answer_start(*row); own != row->weights.end())
      std::fill(row->weights.begin() + start, own, *own);
}

// Tokens [begin, end) as an example; the first one is context only.
SftExample piece_of(const SftExample& whole, std::size_t begin, std::size_t end) {
  const auto from = static_cast<std::ptrdiff_t>(begin), to = static_cast<std::ptrdiff_t>(end);
  SftExample piece{.ids = {whole.ids.begin() + from, whole.ids.begin() + to},
                   .weights = {whole.weights.begin() + from, whole.weights.begin() + to}};
  if (begin > 0) piece.weights.front() = 0;
  return piece;
}

}  // namespace

// A tokenizer may have more tokens than the model: text that contains one of those cannot be used.
Result<> check_vocabulary(const Ids& ids, const TextEncoder& encoder) {
  const auto end = encoder.vocabulary();
  for (const auto id : ids)
    if (id < 0 || (end > 0 && id >= end))
      return fail(Errc::bad_input, cat("the tokenizer gives token ", id,
                                       ", the last id of the model's vocabulary is ", end - 1));
  return {};
}

Result<std::optional<SftExample>> encode_sft(const Sample& sample, const TextEncoder& encoder,
                                             const EncodeOptions& options) {
  auto example = sample.tokens
                     ? of_token_row(*sample.tokens)
                     : encode_text(sample.prompt, sample.completion, sample, encoder, options);
  RETURN_IF_ERROR(example);
  if (!finish(*example, options)) return std::nullopt;
  return std::move(*example);
}

Result<std::vector<SftExample>> encode_document(const Sample& sample, const TextEncoder& encoder,
                                                const EncodeOptions& options) {
  const auto limit = static_cast<std::size_t>(std::max<std::int64_t>(options.max_length, 0));
  const bool chunk = options.chunk && limit > 1;
  auto whole = options;
  if (chunk) whole.max_length = 0;
  auto example = encode_sft(sample, encoder, whole);
  RETURN_IF_ERROR(example);
  std::vector<SftExample> pieces;
  if (!*example) return pieces;
  const auto size = (*example)->ids.size();
  if (!chunk || size <= limit) {
    pieces.push_back(std::move(**example));
    return pieces;
  }
  for (std::size_t begin = 0; begin + 1 < size; begin += limit - 1)
    pieces.push_back(piece_of(**example, begin, std::min(begin + limit, size)));
  return pieces;
}

Result<std::optional<PairExample>> encode_pair(const Sample& sample, const TextEncoder& encoder,
                                               const EncodeOptions& options) {
  auto plain = options;
  plain.train_on_prompt = false;  // a preference is about the completions
  auto chosen = sample.tokens
                    ? of_token_row(*sample.tokens)
                    : encode_text(sample.prompt, sample.completion, sample, encoder, plain);
  RETURN_IF_ERROR(chosen);
  auto rejected = sample.rejected_tokens
                      ? of_token_row(*sample.rejected_tokens)
                      : encode_text(sample.prompt, sample.rejected, sample, encoder, plain);
  RETURN_IF_ERROR(rejected);
  if (options.answer_start == AnswerStart::common && !sample.tokens)
    begin_together(*chosen, *rejected);
  const bool first = finish(*chosen, plain), second = finish(*rejected, plain);
  if (!first || !second || (plain.skip_longer && chosen->cut_tokens + rejected->cut_tokens > 0))
    return std::nullopt;
  PairExample pair{std::move(*chosen), std::move(*rejected)};
  if (sample.margin) pair.margin = static_cast<float>(*sample.margin);
  return pair;
}

Result<std::optional<PromptRow>> encode_prompt(const Sample& sample, const TextEncoder& encoder,
                                               const EncodeOptions& options) {
  PromptRow row{.ids = {}, .text = "", .answer = sample.answer, .columns = sample.columns};
  if (sample.tokens) {
    row.ids = sample.tokens->ids;
  } else {
    const bool chat = sample.prompt.is_array();
    if (chat) {
      row.messages = sample.prompt;
      auto rendered = render_prompt(sample.prompt, sample.tools, encoder);
      RETURN_IF_ERROR(rendered);
      row.text = std::move(*rendered);
    } else {
      row.text = sample.prompt.string();
    }
    auto ids = encoder.encode(row.text, !chat);
    RETURN_IF_ERROR(ids);
    RETURN_IF_ERROR(check_vocabulary(*ids, encoder));
    row.ids = std::move(*ids);
  }
  if (row.ids.empty()) return fail(Errc::bad_input, "the prompt is empty: it has no token");
  if (options.max_length > 0 && static_cast<std::int64_t>(row.ids.size()) > options.max_length)
    return std::nullopt;
  return row;
}

}  // namespace troupe::engine::data
