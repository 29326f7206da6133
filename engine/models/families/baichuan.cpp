// Baichuan (Baichuan Inc. 2023) and Baichuan2 (Yang et al. 2023, arXiv:2309.10305): a Llama with
// one fused projection W_pack. The 7B models have rotary positions; the 13B models have ALiBi, and
// their files have "model_max_length" without "max_position_embeddings". Baichuan2 normalizes the
// rows of the output matrix (NormHead); its files have "z_loss_weight" or 125,696 entries.
#include "engine/models/families.h"
#include "engine/models/rope.h"

namespace troupe::engine::models {
namespace {

void read_common(ConfigReader& in, DecoderSpec& spec) {
  in.reject_unsupported({});
  read_sizes(
      in, spec,
      {.positions = {"max_position_embeddings", "model_max_length"}, .default_positions = 4096});
  spec.activation = read_activation(in, {"hidden_act"}, "silu");
}

}  // namespace

void read_baichuan_7b(ConfigReader& in, DecoderSpec& spec) {
  read_common(in, spec);
  read_rotary(in, spec);
}

void read_baichuan(ConfigReader& in, DecoderSpec& spec) {
  constexpr std::int64_t vocabulary_of_baichuan2 = 125696;
  read_common(in, spec);
  if (in.find("max_position_embeddings"))
    read_rotary(in, spec);
  else
    spec.alibi = true;
  spec.normalized_head =
      in.find("z_loss_weight") != nullptr || spec.vocabulary == vocabulary_of_baichuan2;
  if (in.number({"z_loss_weight"}, 0) != 0)
    in.fail(Errc::unsupported, "\"z_loss_weight\": only 0 is supported, the published value");
  if (spec.normalized_head && spec.tied)
    in.fail(Errc::unsupported, "\"tie_word_embeddings\": true is not supported with NormHead");
}

Storage store_baichuan(const DecoderSpec&) {
  return {.fusions = {
              {"self_attn.W_pack", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}}}};
}

}  // namespace troupe::engine::models
