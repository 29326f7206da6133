#include "engine/generate/forward_pass.h"

#include <string_view>

#include "engine/ops/host_values.h"
#include "engine/ops/phase.h"

namespace troupe::engine::generate {

namespace {

constexpr std::string_view hidden_states = "hidden states of a forward pass";

Tensor receive_states(ops::Device& device, parallel::Communicator& pp, std::int64_t rows,
                      std::int64_t width) {
  const Tensor x = device.empty({rows, width});
  ops::HostValues host(device, x);
  pp.receive(std::as_writable_bytes(host.values()), (pp.rank() + pp.size() - 1) % pp.size(),
             hidden_states);
  host.store();
  return x;
}

/// Through the stages, from the first to the last one, and again for each further chunk.
Tensor forward_through_stages(models::Decoder& decoder, std::span<const std::int32_t> tokens,
                              const nn::ForwardContext& pass, nn::Saved& nothing) {
  parallel::Communicator& pp = *decoder.pp();
  for (std::size_t chunk = 0; chunk < decoder.stage().chunks.size(); ++chunk) {
    Tensor input;
    if (!decoder.stage().begins(chunk))
      input = receive_states(decoder.device(), pp, std::ssize(tokens), decoder.spec().width);
    const Tensor output = decoder.forward_stage(tokens, input, pass, nothing, chunk);
    if (decoder.stage().ends(chunk)) return output;
    ops::HostValues host(decoder.device(), output);
    pp.send(std::as_bytes(host.values()), (pp.rank() + 1) % pp.size(), hidden_states);
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
