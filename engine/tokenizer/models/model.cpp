#include "engine/tokenizer/models/model.h"

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/tokenizer/models/bpe.h"
#include "engine/tokenizer/models/unigram.h"
#include "engine/tokenizer/models/word_lookup.h"

namespace troupe::engine::tokenizer {
namespace {

// Files written before 2022 do not name their model; it is detected by its members.
std::string type_of(const Json& model) {
  if (const Json* type = model.find("type"); type && type->is_string()) return type->string();
  if (model.find("merges")) return "BPE";
  if (const Json* vocab = model.find("vocab"); vocab && vocab->is_array()) return "Unigram";
  if (model.find("continuing_subword_prefix")) return "WordPiece";
  return "WordLevel";
}

}  // namespace

bool can_take_bytes(const Json& model) {
  const auto empty = [&](std::string_view key) {
    const Json* value = model.find(key);
    return !value || !value->is_string() || value->string().empty();
  };
  const Json* fallback = model.find("byte_fallback");
  return type_of(model) == "BPE" && empty("continuing_subword_prefix") &&
         empty("end_of_word_suffix") && !(fallback && fallback->is_bool() && fallback->boolean());
}

Result<std::unique_ptr<Model>> make_model(const Json& model, bool raw_bytes,
                                          std::string_view where) {
  if (!model.is_object())
    return fail(Errc::bad_input, cat(where, ": must be an object, found ", model.type_name()));
  const std::string type = type_of(model);
  if (type == "BPE") return Bpe::from_json(model, raw_bytes, where);
  if (type == "Unigram") return Unigram::from_json(model, where);
  if (type == "WordPiece") return WordPiece::from_json(model, where);
  if (type == "WordLevel") return WordLevel::from_json(model, where);
  return fail(Errc::unsupported,
              cat(where, ": the model ", quote(type),
                  " is not supported; BPE, Unigram, WordPiece and WordLevel are"));
}

}  // namespace troupe::engine::tokenizer
