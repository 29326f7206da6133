// Any text as a chat template: refused with the line, or it writes a conversation, or it says why
// not. Within its limits of time and size. Input: the template.
#include <cstdint>
#include <cstdlib>

#include "engine/tokenizer/chat_template.h"
#include "tests/fuzz/scratch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;  // NOLINT: a program of one page
  using engine::tokenizer::ChatTemplate;
  static const Json messages =
      *parse_json(R"([{"role":"system","content":"Be short."},{"role":"user","content":"2 + 2?"},
        {"role":"assistant","content":" 4 ","tool_calls":[{"type":"function","function":{"name":"add","arguments":{"a":2.5,"b":[1,null,true]}}}]}])",
                  "messages");
  static const Json tools = *parse_json(
      R"([{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}])", "tools");
  const auto parsed = ChatTemplate::parse(std::string(fuzz::text_of(data, size)), "fuzz");
  if (!parsed) {
    if (parsed.error().code != Errc::bad_input) std::abort();
    return 0;
  }
  for (const bool prompt : {false, true}) {
    const auto rendered = parsed->render({.messages = messages,
                                          .tools = prompt ? tools : Json(),
                                          .add_generation_prompt = prompt,
                                          .tokens = {{"bos_token", "<s>"}},
                                          .now = "2025-01-15T12:00:00"});
    if (!rendered && rendered.error().code != Errc::bad_input) std::abort();
    if (rendered)
      for (const auto& [begin, end] : rendered->assistant_spans)
        if (begin > end || end > rendered->text.size()) std::abort();
  }
  return 0;
}
