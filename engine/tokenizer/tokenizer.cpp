#include "engine/tokenizer/tokenizer.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/base/threads/cancellation.h"
#include "engine/tokenizer/base/growth.h"
#include "engine/tokenizer/formats/tokenizer_file.h"
#include "engine/tokenizer/pipeline/pipeline.h"

namespace troupe::engine::tokenizer {
namespace {

/// Encodes the segments of one text.
class SegmentEncoder {
 public:
  /// `allowed`: bytes of text that the pre-tokenizer may make.
  SegmentEncoder(const Pipeline& pipeline, Workspace& workspace, std::size_t allowed,
                 std::vector<TokenId>& out)
      : model_(*pipeline.model),
        pre_tokenizer_(pipeline.pre_tokenizer.get()),
        workspace_(workspace),
        allowed_(allowed),
        out_(out) {}

  // `text` is normalized and has no added token. `leading`: see Pieces.
  void add(std::string_view text, std::size_t leading) {
    if (text.empty()) return;
    pieces_.text.assign(text);
    pieces_.words.assign(1, {0, text.size()});
    pieces_.leading = leading;
    workspace_.at_start = leading > 0;
    pieces_.limit = allowed_;
    if (pre_tokenizer_) pre_tokenizer_->apply(pieces_);
    allowed_ -= std::min(allowed_, pieces_.text.size());
    const std::string_view view = pieces_.text;
    for (const Range& word : pieces_.words)
      model_.encode(view.substr(word.begin, word.end - word.begin), workspace_, out_);
  }

 private:
  const Model& model_;
  const PreTokenizer* pre_tokenizer_;
  Workspace& workspace_;
  std::size_t allowed_;
  std::vector<TokenId>& out_;
  Pieces pieces_;
};

// Bytes of the normalized text that stem from the first character of `text`, with what was inserted
// before it (Pieces::leading).
std::size_t leading_bytes(const Normalizer* normalizer, std::string_view text, std::size_t limit) {
  if (text.empty()) return 0;
  std::string first(text.substr(0, utf8_length(text[0])));
  if (normalizer) normalizer->apply(first, limit);
  return std::max<std::size_t>(1, first.size());  // white space is removed where nothing follows it
}

}  // namespace

WorkspacePool::~WorkspacePool() {
  while (take()) {
  }
}
std::unique_ptr<Workspace> WorkspacePool::take() const {
  for (auto& slot : slots_)
    if (Workspace* found = slot.exchange(nullptr)) return std::unique_ptr<Workspace>(found);
  return nullptr;
}
void WorkspacePool::put(std::unique_ptr<Workspace> workspace) const {
  for (auto& slot : slots_) {
    Workspace* none = nullptr;
    if (slot.compare_exchange_strong(none, workspace.get())) {
      static_cast<void>(workspace.release());
      return;
    }
  }
}

bool Tokenizer::is_in(const std::string& folder) {
  return has_tokenizer_files(folder);
}

Result<Tokenizer> Tokenizer::load(const std::string& path, TokenizerIds ids) {
  auto pipeline = read_tokenizer(path, ids);
  RETURN_IF_ERROR(pipeline);
  return Tokenizer(std::move(*pipeline));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool add_special,
                                       SpecialText special_text) const {
  const Pipeline& pipeline = *pipeline_;
  std::string repaired;
  if (!valid_utf8(text)) text = repaired = repair_utf8(text);
  const SearchTime time(text.size());
  std::unique_ptr<Workspace> workspace = pipeline.workspaces.take();
  if (!workspace) workspace = pipeline.model->make_workspace();
  const bool plain = special_text == SpecialText::plain;
  std::vector<TokenId> ids;
  std::size_t allowed = growth_limit(text.size());  // by the normalizer, over all segments
  SegmentEncoder encoder(pipeline, *workspace, allowed, ids);
  std::vector<TokenMatcher::Segment> outer, inner;
  pipeline.raw_matcher.split(text, plain, outer);
  for (const auto& segment : outer) {
    throw_if_cancelled();
    if (segment.id >= 0) {
      ids.push_back(segment.id);
      continue;
    }
    const std::string_view raw = text.substr(segment.begin, segment.end - segment.begin);
    std::string normalized(raw);
    const bool cut = pipeline.normalizer && pipeline.normalizer->apply(normalized, allowed);
    const std::size_t leading =
        cut || segment.begin > 0 ? 0 : leading_bytes(pipeline.normalizer.get(), raw, allowed);
    allowed -= std::min(allowed, normalized.size());
    inner.clear();
    pipeline.normalized_matcher.split(normalized, plain, inner);
    for (const auto& part : inner) {
      if (part.id >= 0)
        ids.push_back(part.id);
      else
        encoder.add(std::string_view(normalized).substr(part.begin, part.end - part.begin),
                    leading - std::min(leading, part.begin));
    }
  }
  pipeline.workspaces.put(std::move(workspace));
  if (add_special) pipeline.post_processor.apply(ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  DecodeRun run(pipeline_->decoders);
  for (const TokenId id : ids)
    if (pipeline_->decodes(id, skip_special)) run.push(pipeline_->piece(id));
  run.finish();
  return run.take();
}

std::size_t Tokenizer::vocab_size() const {
  return pipeline_->vocab_size();
}
std::optional<TokenId> Tokenizer::token_to_id(std::string_view token) const {
  TokenId id = pipeline_->added.find(token);
  if (id < 0) id = pipeline_->model->vocabulary().find(token);
  return id < 0 ? std::nullopt : std::optional(id);
}
std::string Tokenizer::id_to_token(TokenId id) const {
  return std::string(pipeline_->piece(id));
}
bool Tokenizer::is_special(TokenId id) const {
  return pipeline_->is_special(id);
}

const std::optional<NamedToken>& Tokenizer::bos() const {
  return pipeline_->bos;
}
const std::optional<NamedToken>& Tokenizer::eos() const {
  return pipeline_->eos;
}
const std::optional<NamedToken>& Tokenizer::pad() const {
  return pipeline_->pad;
}
const std::optional<NamedToken>& Tokenizer::unk() const {
  return pipeline_->unk;
}
std::optional<TokenId> Tokenizer::bos_id() const {
  return bos() ? bos()->id : std::nullopt;
}
std::optional<TokenId> Tokenizer::eos_id() const {
  return eos() ? eos()->id : std::nullopt;
}
std::optional<TokenId> Tokenizer::pad_id() const {
  return pad() ? pad()->id : std::nullopt;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : pipeline_(tokenizer.pipeline()), run_(pipeline_->decoders), skip_special_(skip_special) {
}
std::string StreamDecoder::push(TokenId id) {
  if (pipeline_->decodes(id, skip_special_)) run_.push(pipeline_->piece(id));
  return run_.take();
}
std::string StreamDecoder::finish() {
  run_.finish();
  return run_.take();
}

}  // namespace troupe::engine::tokenizer
