// TrainingRun: a few updates of a small model on any grid, and what they give.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "algorithms/losses/sft_loss.h"
#include "engine/nn/gradients.h"
#include "engine/ops/cpu/cpu_options.h"
#include "engine/train/trainer.h"
#include "tests/support/grid_decoder.h"

namespace troupe::test {

/// `gradient`, `weights` and `exp_avg` are logical values, on rank 0.
struct Trained {
  std::vector<double> losses, norms;     ///< of each update
  std::int64_t tokens = 0;               ///< of the first update
  std::map<std::string, double> report;  ///< of the first update
  std::vector<float> gradient;           ///< of the first update, if the run keeps it
  std::vector<float> logp;               ///< [T], after TrainingRun::scored_after updates
  std::vector<float> weights, exp_avg;   ///< after the last update
};

struct TrainingRun {
  GridModel model;
  engine::loss::AnyLoss loss = algorithms::SftLoss{};
  Experience batch;
  engine::train::TrainerOptions options = {};
  int updates = 3;
  int scored_after = 3;  ///< updates before log-probabilities are computed; more than all: never
  double temperature = 0.7;               ///< of the log-probabilities
  bool keeps_gradient = false;            ///< of all replicas
  std::vector<std::int64_t> layers = {};  ///< of each stage; empty: about equally many
  int chunks = 1;                         ///< of a pipeline stage
  std::vector<std::int64_t> noop = {};    ///< places of layers that do nothing
  int ulysses = 1;                        ///< size of the groups that exchange heads
  bool divides_rows = false;              ///< sequence parallelism
  int inner_ring = 1;                     ///< size of the inner rings

  Trained on(const Mesh& mesh) const {
    const auto device = engine::ops::make_cpu_device({.threads = 1});
    engine::train::Trainer trainer(part_decoder(*device, model, 3, part_of(mesh), true), options,
                                   &mesh);
    Trained out;
    for (int step = 0; step <= updates; ++step) {
      if (step == scored_after && model.spec.labels == 0)
        out.logp = trainer.logprobs(batch, temperature);
      if (step == updates) break;
      const auto all = trainer.forward_backward(batch, loss);
      if (step == 0) {
        out.tokens = all.tokens;
        out.report = all.report.values();
        if (keeps_gradient) out.gradient = whole_gradient(trainer, mesh);
      }
      out.losses.push_back(all.loss);
      out.norms.push_back(value_or_throw(trainer.update(1e-2)).grad_norm);
    }
    out.weights = gather_model(trainer.model(), mesh);
    out.exp_avg = gather_model(trainer.model(), trainer.optimizer().exp_avg(), mesh,
                               trainer.optimizer().shards());
    return out;
  }
  /// By rank.
  std::vector<Trained> on_ranks_of(Grid grid) const {
    return on_grid(grid, [this](const Mesh& mesh) { return on(mesh); });
  }

 private:
  engine::models::ModelPart part_of(const Mesh& mesh) const {
    auto part = part_on(mesh, {}, mesh.grid().cp > 1 ? ulysses : 1);
    part.divides_rows = divides_rows;
    if (mesh.grid().cp > 1) part.inner_ring = inner_ring;
    if (mesh.grid().pp > 1) {
      part.layers = layers;
      part.chunks = chunks;
      part.noop = noop;
    }
    return part;
  }

  /// The sum over the replicas, which update() computes as well: its part stays as it is.
  static std::vector<float> whole_gradient(engine::train::Trainer& trainer, const Mesh& mesh) {
    auto& decoder = trainer.model();
    auto& parameters = decoder.parameters();
    auto& device = decoder.device();
    const auto kept = engine::ops::to_host(device, parameters.grads());
    if (mesh.grid().pp > 1 && decoder.spec().tied)  // two stages, both with the table
      engine::nn::sum_tied_gradient(device, parameters.at("model.embed_tokens.weight"),
                                    *decoder.pp_tensors());
    engine::nn::all_reduce_gradients(parameters, decoder.tp(),
                                     mesh.replicas().size() > 1 ? &mesh.replicas() : nullptr);
    auto gradient = gather_model(decoder, parameters.grads(), mesh);
    device.upload(parameters.grads(), kept);
    return gradient;
  }
};

/// The norm of the difference, as a part of that of `b`.
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> difference;
  for (std::size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b.at(i));
  return std::sqrt(dot(difference, difference) / dot(b, b));
}

/// Compares the reports of the first updates.
inline void expect_near_reports(const Trained& a, const Trained& b) {
  ASSERT_EQ(a.report.size(), b.report.size());
  for (const auto& [name, value] : b.report)
    EXPECT_NEAR(a.report.at(name), value, 1e-5 * std::max(1.0, std::abs(value))) << name;
}

}  // namespace troupe::test
