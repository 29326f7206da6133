#include "engine/tokenizer/pipeline/post_processor.h"

#include <algorithm>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::engine::tokenizer {
namespace {

Result<TokenId> id_of(const Json& value, std::string_view where) {
  if (!value.is_integer() || value.integer() < 0 || value.integer() >= max_tokens)
    return fail(Errc::bad_input, cat(where, ": a token id must be from 0 to ", max_tokens - 1,
                                     ", found ", quote(value.dump(), 40)));
  return static_cast<TokenId>(value.integer());
}

// ["</s>", 2]
Result<TokenId> id_of_pair(const Json& processor, std::string_view key, std::string_view where) {
  const Json* pair = processor.find(key);
  if (!pair || !pair->is_array() || pair->array().size() != 2)
    return fail(Errc::bad_input, cat(where, ": \"", key, "\" must be a pair of token and id"));
  return id_of(pair->array()[1], where);
}

// The ids that the template's special token `name` stands for.
Result<> append_special(const Json& processor, const std::string& name, std::vector<TokenId>& out,
                        std::string_view where) {
  const Json* table = processor.find("special_tokens");
  const Json* entry = table ? table->find(name) : nullptr;
  const Json* ids = entry ? entry->find("ids") : nullptr;
  if (!ids || !ids->is_array())
    return fail(Errc::bad_input, cat(where, ": the template names ", quote(name),
                                     ", which has no ids in \"special_tokens\""));
  for (const Json& value : ids->array()) {
    auto id = id_of(value, where);
    RETURN_IF_ERROR(id);
    out.push_back(*id);
  }
  return {};
}

}  // namespace

PostProcessor::PostProcessor(std::vector<TokenId> before, std::vector<TokenId> after)
    : templates_{std::move(before)} {
  templates_[0].push_back(-1);
  templates_[0].insert(templates_[0].end(), after.begin(), after.end());
}

Result<PostProcessor> PostProcessor::from_json(const Json* processor, std::string_view where) {
  PostProcessor out;
  if (!processor || processor->is_null()) return out;
  RETURN_IF_ERROR(out.add(*processor, where, 0));
  return out;
}

Result<> PostProcessor::add(const Json& processor, std::string_view where, int depth) {
  auto type = get_string(processor, "type", where);
  RETURN_IF_ERROR(type);
  if (*type == "ByteLevel") return {};
  if (*type == "TemplateProcessing") return add_template(processor, where);
  if (*type == "BertProcessing" || *type == "RobertaProcessing") {
    auto cls = id_of_pair(processor, "cls", where);
    RETURN_IF_ERROR(cls);
    auto sep = id_of_pair(processor, "sep", where);
    RETURN_IF_ERROR(sep);
    templates_.push_back({*cls, -1, *sep});
    return {};
  }
  if (*type == "Sequence") {
    const Json* list = processor.find("processors");
    if (!list || !list->is_array() || depth > 4)
      return fail(Errc::bad_input,
                  cat(where, ": \"processors\" must be an array, nested at most 4 deep"));
    for (const Json& item : list->array()) RETURN_IF_ERROR(add(item, where, depth + 1));
    return {};
  }
  return fail(Errc::unsupported, cat(where, ": the post-processor ", quote(*type),
                                     " is not supported; Sequence, ByteLevel, TemplateProcessing, "
                                     "BertProcessing and RobertaProcessing are"));
}

Result<> PostProcessor::add_template(const Json& processor, std::string_view where) {
  const Json* single = processor.find("single");
  if (!single || !single->is_array())
    return fail(Errc::bad_input, cat(where, ": \"single\" must be an array"));
  Template out;
  for (const Json& item : single->array()) {
    if (item.find("Sequence")) {
      out.push_back(-1);
      continue;
    }
    const Json* special = item.find("SpecialToken");
    auto name = get_string(special ? *special : Json(), "id", where);
    RETURN_IF_ERROR(name);
    RETURN_IF_ERROR(append_special(processor, *name, out, where));
  }
  templates_.push_back(std::move(out));
  return {};
}

TokenId PostProcessor::largest() const {
  TokenId out = -1;
  for (const Template& parts : templates_)
    for (const TokenId part : parts) out = std::max(out, part);
  return out;
}

void PostProcessor::apply(std::vector<TokenId>& ids) const {
  for (const Template& parts : templates_) {
    std::vector<TokenId> out;
    out.reserve(ids.size() + parts.size());
    for (const TokenId part : parts)
      if (part < 0)
        out.insert(out.end(), ids.begin(), ids.end());
      else
        out.push_back(part);
    ids = std::move(out);
  }
}

}  // namespace troupe::engine::tokenizer
