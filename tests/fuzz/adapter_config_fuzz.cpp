// Any text as an adapter_config.json: refused with a reason, or it names modules of a small model,
// and is written and read back as the same. Input: the file.
#include <cstdint>
#include <cstdlib>

#include "engine/adapter/lora_config.h"
#include "engine/adapter/peft_config.h"
#include "tests/fuzz/scratch_file.h"

namespace {

using namespace troupe;  // NOLINT: a program of one page

engine::models::DecoderSpec small_model() {
  const auto config = parse_json(
      R"({"architectures":["LlamaForCausalLM"],"vocab_size":32,"hidden_size":16,"num_hidden_layers":2,
      "num_attention_heads":2,"intermediate_size":24})",
      "a small model");
  return value_or_throw(engine::models::read_spec(*config, "a small model"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace engine::adapter;  // NOLINT
  static const engine::models::DecoderSpec base = small_model();
  const auto json = parse_json(fuzz::text_of(data, size), "fuzz", {.bytes = std::size_t{1} << 20});
  if (!json) return 0;
  const auto config = read_peft_config(*json, "fuzz");
  if (!config) {
    if (config.error().code != Errc::bad_input && config.error().code != Errc::unsupported)
      std::abort();
    return 0;
  }
  const auto lora = resolve_targets(*config, base, "fuzz: ");
  if (!lora) {
    if (lora.error().code == Errc::internal) std::abort();
    return 0;
  }
  engine::models::DecoderSpec adapted = base;
  adapted.lora = *lora;
  const auto again = read_peft_config(to_peft_config(*config, adapted, "base"), "again");
  if (!again || again->rank != config->rank || again->alpha != config->alpha) std::abort();
  return 0;
}
