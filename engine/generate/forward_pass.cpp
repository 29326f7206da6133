#include "engine/generate/forward_pass.h"

#include <string_view>

#include "engine/ops/phase.h"

namespace troupe::engine::generate {

namespace {

constexpr std::string_view hidden_states = "hidden states of a forward pass";

Tensor receive_states(ops::Device& device, collectives::TensorGroup& pp, std::int64_t rows,
                      std::int64_t width) {
  Tensor x = device.empty({rows, width});
  pp.start_receive(x, (pp.rank() + pp.size() - 1) % pp.size(), hidden_states).wait();
  return x;
}

/// Through the stages, from the first to the last one, and again for each further chunk.
Tensor forward_through_stages(models::Decoder& decoder, std::span<const std::int32_t> tokens,
                              const nn::ForwardContext& pass, nn::Saved& nothing) {
  collectives::TensorGroup& pp = *decoder.pp_tensors();
  for (std::size_t chunk = 0; chunk < decoder.stage().chunks.size(); ++chunk) {
    Tensor input;
    if (!decoder.stage().begins(chunk))
      input = receive_states(decoder.device(), pp, std::ssize(tokens), decoder.spec().width);
    const Tensor output = decoder.forward_stage(tokens, input, pass, nothing, chunk);
    if (decoder.stage().ends(chunk)) return output;
    pp.start_send(output, (pp.rank() + 1) % pp.size(), hidden_states).wait();
  }
  return {};
}

}  // namespace

Tensor forward_pass(models::Decoder& decoder, std::span<const std::int32_t> tokens,
                    const nn::ForwardContext& pass) {
  nn::Saved nothing = nn::Saved::nothing();
  return ops::in_phase(decoder.device(), "forward", [&] {
    return decoder.pp() == nullptr ? decoder.forward(tokens, pass, nothing)
                                   : forward_through_stages(decoder, tokens, pass, nothing);
  });
}

}  // namespace troupe::engine::generate
