#include "engine/tokenizer/pre_tokenizers/pre_tokenizer.h"

#include <algorithm>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/tokenizer/base/replacement.h"
#include "engine/tokenizer/pre_tokenizers/rewriters.h"
#include "engine/tokenizer/pre_tokenizers/splitters.h"

namespace troupe::engine::tokenizer {
namespace {

class SequencePreTokenizer : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<std::unique_ptr<PreTokenizer>> parts)
      : parts_(std::move(parts)) {}
  void apply(Pieces& pieces) const override {
    for (const auto& part : parts_) part->apply(pieces);
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

class Split : public PreTokenizer {
 public:
  Split(Pattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void apply(Pieces& pieces) const override {
    std::vector<Range> words, matches;
    for (const Range& word : pieces.words) {
      matches.clear();
      pattern_.find_all(std::string_view(pieces.text).substr(word.begin, word.end - word.begin),
                        matches);
      for (Range& match : matches) {
        match.begin += word.begin;
        match.end += word.begin;
      }
      split_at(word, matches, behavior_, invert_, words);
    }
    pieces.words = std::move(words);
  }

 private:
  Pattern pattern_;
  Behavior behavior_;
  bool invert_;
};

using MadePreTokenizer = Result<std::unique_ptr<PreTokenizer>>;

MadePreTokenizer make_split(const Json& options, std::string_view where) {
  auto pattern = Pattern::from_json(options.find("pattern"), where);
  RETURN_IF_ERROR(pattern);
  auto behavior = read_behavior(options, Behavior::isolated, where);
  RETURN_IF_ERROR(behavior);
  const Json* invert = options.find("invert");
  return std::make_unique<Split>(std::move(*pattern), *behavior,
                                 invert && invert->is_bool() && invert->boolean());
}

Result<const Json::Array*> pre_tokenizers_in(const Json& sequence, std::string_view where) {
  const Json* list = sequence.find("pretokenizers");
  if (!list || !list->is_array())
    return fail(Errc::bad_input, cat(where, ": \"pretokenizers\" must be an array"));
  return &list->array();
}

MadePreTokenizer make_pre_tokenizer_sequence(const Json& sequence, bool raw_bytes,
                                             std::string_view where) {
  auto list = pre_tokenizers_in(sequence, where);
  RETURN_IF_ERROR(list);
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  for (const Json& item : **list) {
    auto part = make_pre_tokenizer(&item, raw_bytes && &item == &(*list)->back(), where);
    if (!part) return part;
    if (*part) parts.push_back(std::move(*part));
  }
  return std::make_unique<SequencePreTokenizer>(std::move(parts));
}

}  // namespace

bool ends_with_byte_level(const Json* pre_tokenizer) {
  const Json* type = pre_tokenizer ? pre_tokenizer->find("type") : nullptr;
  if (!type || !type->is_string()) return false;
  if (type->string() == "ByteLevel") return true;
  const Json* list = pre_tokenizer->find("pretokenizers");
  return type->string() == "Sequence" && list && list->is_array() && !list->array().empty() &&
         ends_with_byte_level(&list->array().back());
}

bool read_flag(const Json& options, std::string_view key, bool otherwise) {
  const Json* value = options.find(key);
  return value && value->is_bool() ? value->boolean() : otherwise;
}

Result<Behavior> read_behavior(const Json& options, Behavior otherwise, std::string_view where) {
  const Json* name = options.find("behavior");
  if (!name) return otherwise;
  constexpr std::string_view names[] = {"Isolated", "Removed", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
  const auto found = std::find(std::begin(names), std::end(names),
                               name->is_string() ? std::string_view(name->string()) : "");
  if (found == std::end(names))
    return fail(Errc::bad_input, cat(where,
                                     ": \"behavior\" must be Isolated, Removed, "
                                     "MergedWithPrevious, MergedWithNext or Contiguous, found ",
                                     quote(name->dump(), 40)));
  return static_cast<Behavior>(found - std::begin(names));
}

void split_at(Range word, const std::vector<Range>& matches, Behavior behavior, bool invert,
              std::vector<Range>& out) {
  const auto first = static_cast<std::ptrdiff_t>(out.size());
  bool previous = false;
  const auto add = [&](Range range, bool match) {
    match = match != invert;
    const bool any = static_cast<std::ptrdiff_t>(out.size()) > first;
    bool join = false;
    if (behavior == Behavior::removed && match) return;
    if (behavior == Behavior::merged_with_previous) join = match && !previous && any;
    if (behavior == Behavior::merged_with_next) join = previous && !match && any;
    if (behavior == Behavior::contiguous) join = match == previous && any;
    previous = match;
    if (join)
      out.back().end = range.end;
    else
      out.push_back(range);
  };
  std::size_t at = word.begin;
  for (const Range& match : matches) {
    if (match.begin > at) add({at, match.begin}, false);
    add(match, true);
    at = match.end;
  }
  if (at < word.end) add({at, word.end}, false);
  const auto empty = [](const Range& range) { return range.begin == range.end; };
  out.erase(std::remove_if(out.begin() + first, out.end(), empty), out.end());
}

MadePreTokenizer make_pre_tokenizer(const Json* pre_tokenizer, bool raw_bytes,
                                    std::string_view where) {
  if (!pre_tokenizer || pre_tokenizer->is_null()) return nullptr;
  auto type = get_string(*pre_tokenizer, "type", where);
  RETURN_IF_ERROR(type);
  if (*type == "Sequence") return make_pre_tokenizer_sequence(*pre_tokenizer, raw_bytes, where);
  if (*type == "Split") return make_split(*pre_tokenizer, where);
  if (*type == "ByteLevel") return make_byte_level(*pre_tokenizer, raw_bytes, where);
  if (*type == "Metaspace") return make_metaspace(*pre_tokenizer, where);
  auto splitter = make_class_splitter(*type, *pre_tokenizer, where);
  if (!splitter || *splitter) return splitter;
  splitter = make_script_splitter(*type, *pre_tokenizer, where);
  if (!splitter || *splitter) return splitter;
  return fail(Errc::unsupported, cat(where, ": the pre-tokenizer ", quote(*type),
                                     " is not supported; Sequence, Split, ByteLevel, Metaspace, "
                                     "Digits, Punctuation, Whitespace, "
                                     "WhitespaceSplit, BertPreTokenizer, CharDelimiterSplit, "
                                     "UnicodeScripts and FixedLength are"));
}

}  // namespace troupe::engine::tokenizer
