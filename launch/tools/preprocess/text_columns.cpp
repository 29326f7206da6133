#include "launch/tools/preprocess/text_columns.h"

#include "engine/base/text/text.h"

namespace troupe::launch::tools::preprocess {
namespace {

Result<std::string_view> text_of_column(const engine::data::Row& row, const std::string& column) {
  const Json* value = row.value.find(column);
  if (!value) {
    std::vector<std::string> names;
    if (row.value.is_object())
      for (const auto& member : row.value.object()) names.push_back(quote(member.first));
    return fail(Errc::bad_input, cat(row.where(), ": no column ", quote(column), "; its columns: ",
                                     join(names, ", "), "; --json-keys names those to tokenize"));
  }
  if (!value->is_string())
    return fail(Errc::bad_input, cat(row.where(), ": column ", quote(column),
                                     ": expected text, found ", value->type_name()));
  return std::string_view(value->string());
}

}  // namespace

Result<TextColumns> TextColumns::create(engine::tokenizer::Tokenizer tokenizer, Options options) {
  if (options.append_eod && !tokenizer.eos_id())
    return fail(Errc::usage, "--append-eod: the tokenizer has no end token (eos_token)");
  return TextColumns(std::move(tokenizer), std::move(options));
}

Result<std::vector<TokenDocument>> TextColumns::encode(const engine::data::Row& row) const {
  std::vector<TokenDocument> out;
  for (const std::string& column : options_.columns) {
    const auto text = text_of_column(row, column);
    RETURN_IF_ERROR(text);
    TokenDocument document;
    try {
      document.push_back(tokenizer_.encode(*text, options_.special_tokens));
    } catch (const Failure& failure) {
      return fail(failure.error().code, cat(row.where(), ": ", failure.error().what));
    }
    if (text->empty() || document.front().empty())
      document.clear();
    else if (options_.append_eod)
      document.front().push_back(*tokenizer_.eos_id());
    out.push_back(std::move(document));
  }
  return out;
}

}  // namespace troupe::launch::tools::preprocess
