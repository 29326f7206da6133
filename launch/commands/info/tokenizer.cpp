#include "launch/commands/info/report.h"

#include <filesystem>

#include "engine/base/text/text.h"
#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe::launch::commands {

namespace {

using engine::tokenizer::ChatTemplate;
using engine::tokenizer::Tokenizer;

void say_special(const char* key, const std::optional<engine::tokenizer::NamedToken>& token,
                 Report& report) {
  if (!token) return;
  const std::string id = token->id ? cat(" (", *token->id, ")") : ", which the vocabulary lacks";
  report.say(key, token->text, cat(key, ": ", quote(token->text), id));
}

/// Which ids a folder's text gets, where transformers 5 gives others.
void say_ids(const std::string& folder, Report& report) {
  const auto rebuilt = engine::tokenizer::rebuilt_tokenizer_file(folder);
  if (!rebuilt) return report.note(cat("transformers 5: ", rebuilt.error().what));
  if (rebuilt->empty()) return;
  report.say("ids", "file", "ids: those of tokenizer.json, as in transformers 4");
  report.note(
      "transformers 5 builds the tokenizers of this class from the vocabulary: behind special "
      "tokens and at blanks its ids differ; tokenizer_ids: transformers5 trains with those "
      "(docs/coming-from-trl.md)");
}

/// Renders one turn: a template may parse but need something that troupe does not support.
void try_template(const ChatTemplate& form, const std::string& path, Report& report) {
  engine::tokenizer::RenderInput input;
  input.messages = Json::Array{Json::Object{{"role", "user"}, {"content", "Hello"}}};
  input.tokens = engine::tokenizer::template_tokens(path);
  for (const char* name : {"bos_token", "eos_token"}) input.tokens.emplace(name, "");
  input.add_generation_prompt = true;
  input.now = "2025-01-15T12:00:00";
  const auto rendered = form.render(input);
  if (!rendered) return report.note(cat("one user turn does not render: ", rendered.error().what));
  report.say("rendered", rendered->text, cat("one user turn: ", quote(rendered->text, 300)));
  report.say("generation_blocks", form.has_generation(),
             form.has_generation() ? "generation blocks mark the assistant's text"
                                   : "no generation blocks");
}

}  // namespace

void inspect_tokenizer(const std::string& path, std::int64_t vocabulary, Report& report) {
  const bool there = !std::filesystem::is_directory(path) || Tokenizer::is_in(path);
  report.begin("tokenizer", there ? path : "none");
  if (!there && vocabulary > 0)
    return report.note("without a tokenizer, use token ids instead of text");
  const auto loaded = Tokenizer::load(path);
  if (!loaded) return report.problem(loaded.error());
  const auto size = static_cast<std::int64_t>(loaded->vocab_size());
  report.say("tokens", size, cat(size, " tokens"));
  say_special("bos", loaded->bos(), report);
  say_special("eos", loaded->eos(), report);
  say_ids(path, report);
  if (vocabulary > 0 && size > vocabulary) {
    report.problem(
        {Errc::bad_input, cat("its largest id is ", size - 1, ", the model's is ", vocabulary - 1,
                              "; the tokenizer belongs to another model")});
  } else if (vocabulary > size) {
    report.say("unused_ids", vocabulary - size,
               cat("the model's vocabulary has ", vocabulary - size,
                   " more ids (common: padded vocabulary)"));
  }
}

void inspect_template(const std::string& path, Report& report) {
  const auto form = ChatTemplate::load(path);
  if (!form && form.error().code == Errc::not_found && std::filesystem::is_directory(path))
    return;  // a base model has none
  report.begin("chat template", path);
  if (!form) return report.problem(form.error());
  try_template(*form, path, report);
}

}  // namespace troupe::launch::commands
