#include "engine/tokenizer/decoders/decoder.h"

#include <functional>
#include <utility>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/base/growth.h"
#include "engine/tokenizer/decoders/decode_stages.h"

namespace troupe::engine::tokenizer {
namespace {

/// A decoder whose only state is the arguments of its stage.
class SimpleDecoder : public Decoder {
 public:
  explicit SimpleDecoder(std::function<std::unique_ptr<DecodeStage>()> start)
      : start_(std::move(start)) {}
  std::unique_ptr<DecodeStage> start() const override { return start_(); }

 private:
  std::function<std::unique_ptr<DecodeStage>()> start_;
};

template <class Stage, class... Arguments>
std::unique_ptr<Decoder> simple(Arguments... arguments) {
  return std::make_unique<SimpleDecoder>([arguments...]() -> std::unique_ptr<DecodeStage> {
    return std::make_unique<Stage>(arguments...);
  });
}

class ReplaceDecoder : public Decoder {
 public:
  explicit ReplaceDecoder(Replacement replacement) : replacement_(std::move(replacement)) {}
  std::unique_ptr<DecodeStage> start() const override {
    return std::make_unique<ReplaceStage>(replacement_);
  }

 private:
  Replacement replacement_;
};

class EndStage : public DecodeStage {
 public:
  explicit EndStage(std::string& out) : out_(out) {}
  void push(std::string_view text, bool, bool) override {
    total_ += text.size();
    check_growth(total_, *limit, "decoder");
    out_.append(text);
  }
  void finish() override {}

 private:
  std::string& out_;
  std::size_t total_ = 0;
};

using MadeDecoders = Result<std::unique_ptr<Decoder>>;

Result<std::string> one_character(const Json& decoder, std::string_view key,
                                  std::string_view where) {
  auto text = get_string(decoder, key, where);
  if (text && count_code_points(*text) != 1)
    return fail(Errc::bad_input,
                cat(where, ": \"", key, "\" must be one character, found ", quote(*text)));
  return text;
}

MadeDecoders make_strip(const Json& decoder, std::string_view where) {
  auto content = one_character(decoder, "content", where);
  RETURN_IF_ERROR(content);
  auto start = get_integer(decoder, "start", where);
  RETURN_IF_ERROR(start);
  auto stop = get_integer(decoder, "stop", where);
  RETURN_IF_ERROR(stop);
  if (*start < 0 || *stop < 0)
    return fail(Errc::bad_input, cat(where, ": \"start\" and \"stop\" must not be negative"));
  return simple<StripStage>(*content, static_cast<std::size_t>(*start),
                            static_cast<std::size_t>(*stop));
}

MadeDecoders make_metaspace(const Json& decoder, std::string_view where) {
  auto sign = one_character(decoder, "replacement", where);
  RETURN_IF_ERROR(sign);
  const Json* scheme = decoder.find("prepend_scheme");
  const Json* prefix = decoder.find("add_prefix_space");
  bool drop_first = !(prefix && prefix->is_bool() && !prefix->boolean());
  if (scheme && scheme->is_string()) drop_first = scheme->string() != "never";
  return simple<MetaspaceStage>(*sign, drop_first);
}

MadeDecoders make_word_piece(const Json& decoder, std::string_view where) {
  auto prefix = get_string(decoder, "prefix", where);
  RETURN_IF_ERROR(prefix);
  auto cleanup = get_bool(decoder, "cleanup", where);
  RETURN_IF_ERROR(cleanup);
  return simple<WordPieceStage>(*prefix, *cleanup);
}

MadeDecoders make_ctc(const Json& decoder, std::string_view where) {
  auto pad = get_string(decoder, "pad_token", where);
  RETURN_IF_ERROR(pad);
  auto delimiter = get_string(decoder, "word_delimiter_token", where);
  RETURN_IF_ERROR(delimiter);
  auto cleanup = get_bool(decoder, "cleanup", where);
  RETURN_IF_ERROR(cleanup);
  return simple<CtcStage>(*pad, *delimiter, *cleanup);
}

MadeDecoders make_one(const std::string& type, const Json& decoder, std::string_view where) {
  if (type == "ByteLevel") return simple<ByteLevelStage>();
  if (type == "ByteFallback") return simple<ByteFallbackStage>();
  if (type == "Fuse") return simple<FuseStage>();
  if (type == "Strip") return make_strip(decoder, where);
  if (type == "WordPiece") return make_word_piece(decoder, where);
  if (type == "CTC") return make_ctc(decoder, where);
  if (type == "Metaspace") return make_metaspace(decoder, where);
  if (type == "Replace") {
    auto replacement = Replacement::from_json(decoder, where);
    RETURN_IF_ERROR(replacement);
    return std::make_unique<ReplaceDecoder>(std::move(*replacement));
  }
  if (type == "BPEDecoder") {
    auto suffix = get_string(decoder, "suffix", where);
    RETURN_IF_ERROR(suffix);
    return simple<WordEndStage>(*suffix);
  }
  return fail(Errc::unsupported,
              cat(where, ": the decoder ", quote(type),
                  " is not supported; Sequence, ByteLevel, ByteFallback, Fuse, Strip, Metaspace, "
                  "Replace, BPEDecoder, WordPiece and CTC are"));
}

Result<> add(const Json& decoder, DecoderChain& chain, std::string_view where, int depth) {
  auto type = get_string(decoder, "type", where);
  RETURN_IF_ERROR(type);
  if (*type != "Sequence") {
    auto made = make_one(*type, decoder, where);
    RETURN_IF_ERROR(made);
    chain.push_back(std::move(*made));
    return {};
  }
  const Json* list = decoder.find("decoders");
  if (!list || !list->is_array() || depth > 4)
    return fail(Errc::bad_input,
                cat(where, ": \"decoders\" must be an array, nested at most 4 deep"));
  for (const Json& item : list->array()) RETURN_IF_ERROR(add(item, chain, where, depth + 1));
  return {};
}

}  // namespace

Result<DecoderChain> make_decoders(const Json* decoder, std::string_view where) {
  DecoderChain chain;
  if (!decoder || decoder->is_null()) {
    chain.push_back(simple<SpacedStage>());
    return chain;
  }
  RETURN_IF_ERROR(add(*decoder, chain, where, 0));
  return chain;
}

DecodeRun::DecodeRun(const DecoderChain& chain)
    : text_(std::make_unique<std::string>()),
      limit_(std::make_unique<std::size_t>(growth_limit(0))) {
  for (const auto& decoder : chain) stages_.push_back(decoder->start());
  stages_.push_back(std::make_unique<EndStage>(*text_));
  for (std::size_t i = 0; i + 1 < stages_.size(); ++i) stages_[i]->next = stages_[i + 1].get();
  for (const auto& stage : stages_) stage->limit = limit_.get();
}

void DecodeRun::push(std::string_view token) {
  pushed_ += token.size();
  *limit_ = growth_limit(pushed_);
  stages_.front()->push(token, true, true);
}

std::string DecodeRun::take() {
  return std::exchange(*text_, {});
}

}  // namespace troupe::engine::tokenizer
