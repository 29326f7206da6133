// The operations of mixtures of experts on tensors in host memory. Products are those of gemm(),
// one expert at a time; everything else works token by token.
#include <algorithm>
#include <cmath>

#include "engine/ops/cpu/experts/router.h"
#include "engine/ops/cpu/host_device.h"
#include "engine/ops/memory/host_buffer.h"
#include "engine/ops/shapes.h"

namespace troupe::engine::ops::cpu {
namespace {

/// Routes in host memory, after checks of their shapes and types.
struct HostRoutes {
  std::int64_t tokens, chosen, experts;
  float* weights;
  std::int32_t *choices, *places, *of_rows, *offsets;

  explicit HostRoutes(const Routes& routes)
      : tokens(rows_of(routes.weights)),
        chosen(width_of(routes.weights)),
        experts(routes.offsets.count() - 1),
        choices(i32_data(routes.experts)),
        places(i32_data(routes.places)),
        of_rows(i32_data(routes.tokens)),
        offsets(i32_data(routes.offsets)) {
    Tensor values = routes.weights;
    weights = mutable_data(values);
    check_same_size("routes", {&routes.weights, &routes.experts, &routes.places, &routes.tokens});
  }
  std::int64_t rows() const { return tokens * chosen; }
  std::int64_t used_rows() const { return offsets[experts]; }
};

void check_rows(const HostRoutes& routes, const Tensor& x, const Tensor& rows) {
  check(rows_of(x) == routes.tokens && rows_of(rows) == routes.rows() &&
            width_of(x) == width_of(rows),
        "experts: rows, tokens and routes disagree");
}

double dot(const float* a, const float* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// sum += factor * x
void add_times(float factor, const float* x, std::int64_t count, float* sum) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += factor * x[i];
}

void assign_times(float factor, const float* x, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = factor * x[i];
}

// sum (+)= factor * rows[place], assigned where it is the first one. Nothing for a dropped choice.
void add_choice(float factor, const float* rows, std::int32_t place, std::int64_t width, float* sum,
                bool& first) {
  if (place < 0) return;
  first ? assign_times(factor, rows + place * width, width, sum)
        : add_times(factor, rows + place * width, width, sum);
  first = false;
}

float logistic(float x) {
  return static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x))));
}

// A stable counting sort of the choices by expert; those with place -1 are left out.
void sort_rows(const HostRoutes& routes) {
  std::fill_n(routes.offsets, routes.experts + 1, 0);
  for (std::int64_t i = 0; i < routes.rows(); ++i)
    if (routes.places[i] >= 0) ++routes.offsets[routes.choices[i] + 1];
  for (std::int64_t e = 0; e < routes.experts; ++e) routes.offsets[e + 1] += routes.offsets[e];
  std::vector<std::int32_t> next(routes.offsets, routes.offsets + routes.experts);
  for (std::int64_t i = 0; i < routes.rows(); ++i) {
    if (routes.places[i] < 0) continue;
    const std::int32_t place = next[static_cast<std::size_t>(routes.choices[i])]++;
    routes.places[i] = place;
    routes.of_rows[place] = static_cast<std::int32_t>(i / routes.chosen);
  }
}

}  // namespace

void HostDevice::route(const Router& how, const Tensor& logits, const Tensor& bias,
                       Routes& routes) {
  const HostRoutes to(routes);
  check(width_of(logits) == how.experts && to.experts == how.experts && to.chosen == how.chosen &&
            rows_of(logits) == to.tokens && how.chosen <= how.experts &&
            how.experts % how.groups == 0 && (!bias || bias.count() == how.experts),
        "route: shapes disagree");
  check(how.score != RouterScore::sparse_mixer || (how.chosen == 2 && how.experts > 1),
        "route: the sparse mixer picks two experts");
  const float *values = data(logits), *added = bias ? data(bias) : nullptr;
  for_ranges(to.tokens, 40 * how.experts, [&](std::int64_t begin, std::int64_t end) {
    RouterScratch scratch;
    for (std::int64_t t = begin; t < end; ++t)
      route_token(how, row(values, t, how.experts), row(added, 0, added ? how.experts : 0),
                  row(to.choices, t, to.chosen), row(to.weights, t, to.chosen), scratch);
  });
  std::fill_n(to.places, to.rows(), 0);
  sort_rows(to);
}

void HostDevice::drop_choices(std::int64_t capacity, DropPolicy policy, Routes& routes) {
  const HostRoutes to(routes);
  check(capacity >= 0, "drop_choices: a negative capacity");
  // The choices of each expert are those of its rows, in the order of tokens.
  std::vector<std::int32_t> of_rows(static_cast<std::size_t>(to.rows()));
  for (std::int64_t i = 0; i < to.rows(); ++i)
    if (to.places[i] >= 0)
      of_rows[static_cast<std::size_t>(to.places[i])] = static_cast<std::int32_t>(i);
  for (std::int64_t e = 0; e < to.experts; ++e) {
    const std::span own =
        std::span(of_rows).subspan(static_cast<std::size_t>(to.offsets[e]),
                                   static_cast<std::size_t>(to.offsets[e + 1] - to.offsets[e]));
    if (std::ssize(own) <= capacity) continue;
    if (policy == DropPolicy::weight)
      std::ranges::stable_sort(own, [&](auto a, auto b) { return to.weights[a] > to.weights[b]; });
    for (const std::int32_t choice : own.subspan(static_cast<std::size_t>(capacity)))
      to.places[choice] = -1;
  }
  sort_rows(to);
}

void HostDevice::route_backward(const Router& how, const Tensor& logits, const Routes& routes,
                                const Tensor& dweights, Tensor& dlogits) {
  const HostRoutes from(routes);
  check_same_size("route_backward", {&logits, &dlogits});
  check_same_size("route_backward", {&routes.weights, &dweights});
  const float *values = data(logits), *above = data(dweights);
  float* below = mutable_data(dlogits);
  for_ranges(from.tokens, 40 * how.experts, [&](std::int64_t begin, std::int64_t end) {
    RouterScratch scratch;
    for (std::int64_t t = begin; t < end; ++t)
      route_token_backward(how, row(values, t, how.experts),
                           row<const std::int32_t>(from.choices, t, from.chosen),
                           row(above, t, from.chosen), row(below, t, how.experts), scratch);
  });
}

void HostDevice::permute(const Tensor& x, const Routes& routes, Tensor& rows) {
  const HostRoutes by(routes);
  check_rows(by, x, rows);
  const std::int64_t width = width_of(x);
  const float* from = data(x);
  float* to = mutable_data(rows);
  for_ranges(by.rows(), width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      if (i < by.used_rows())
        std::copy_n(from + by.of_rows[i] * width, width, to + i * width);
      else
        std::fill_n(to + i * width, width, 0.0F);
  });
}

void HostDevice::permute_backward(const Tensor& rows, const Routes& routes, Tensor& sums) {
  const HostRoutes by(routes);
  check_rows(by, sums, rows);
  const std::int64_t width = width_of(sums);
  const float* from = data(rows);
  float* to = mutable_data(sums);
  for_ranges(by.tokens, width * by.chosen, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      bool first = true;
      for (std::int64_t i = t * by.chosen; i < (t + 1) * by.chosen; ++i)
        add_choice(1, from, by.places[i], width, to + t * width, first);
      if (first) std::fill_n(to + t * width, width, 0.0F);
    }
  });
}

void HostDevice::ragged_gemm(const Routes& routes, const Tensor& a, std::span<const Tensor> b,
                             Tensor& c, Gemm how) {
  const HostRoutes by(routes);
  check(std::ssize(b) == by.experts && !how.transpose_a && rows_of(a) == by.rows() &&
            rows_of(c) == by.rows(),
        "ragged_gemm: shapes disagree");
  for (std::int64_t e = 0; e < by.experts; ++e) {
    const std::int64_t begin = by.offsets[e], end = by.offsets[e + 1];
    if (begin == end) continue;
    Tensor part = c.rows(begin, end);
    gemm(a.rows(begin, end), b[static_cast<std::size_t>(e)], part, how);
  }
}

void HostDevice::ragged_gradients(const Routes& routes, const Tensor& dc, const Tensor& a,
                                  const RaggedGradients& to, Precision precision) {
  const HostRoutes by(routes);
  check(std::ssize(to.sums) == by.experts && to.sums.size() == to.accumulates.size() &&
            rows_of(dc) == by.rows() && rows_of(a) == by.rows(),
        "ragged_gradients: shapes disagree");
  for (std::int64_t e = 0; e < by.experts; ++e) {
    const std::int64_t begin = by.offsets[e], end = by.offsets[e + 1];
    const bool adds = to.accumulates[static_cast<std::size_t>(e)];
    Tensor& sum = to.sums[static_cast<std::size_t>(e)];
    if (begin < end)
      gemm(dc.rows(begin, end), a.rows(begin, end), sum,
           {.transpose_a = true, .accumulate = adds, .precision = precision});
    else if (!adds)
      fill(sum, 0);
  }
}

void HostDevice::combine(const Combination& in, Tensor& y) {
  const HostRoutes by(in.routes);
  check_rows(by, y, in.outputs);
  const std::int64_t width = width_of(y);
  if (in.shared) check_same_size("combine", {in.shared, &y});
  check(!in.gate || (in.shared && in.gate->count() == by.tokens), "combine: shapes disagree");
  const float *outputs = data(in.outputs), *shared = in.shared ? data(*in.shared) : nullptr,
              *gate = in.gate ? data(*in.gate) : nullptr;
  float* to = mutable_data(y);
  for_ranges(by.tokens, width * (by.chosen + 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      float* sum = to + t * width;
      bool first = true;
      for (std::int64_t i = t * by.chosen; i < (t + 1) * by.chosen; ++i)
        add_choice(by.weights[i], outputs, by.places[i], width, sum, first);
      if (first) std::fill_n(sum, width, 0.0F);
      if (shared) add_times(gate ? logistic(gate[t]) : 1, shared + t * width, width, sum);
    }
  });
}

void HostDevice::combine_backward(const Combination& in, const Tensor& dy,
                                  const CombinationGradients& to) {
  const HostRoutes by(in.routes);
  check_rows(by, dy, in.outputs);
  check_same_size("combine_backward", {&in.outputs, &to.outputs});
  check_same_size("combine_backward", {&in.routes.weights, &to.weights});
  check(!in.gate || (to.gate && to.shared && to.gate->count() == by.tokens),
        "combine_backward: shapes disagree");
  const std::int64_t width = width_of(dy);
  const float *above = data(dy), *outputs = data(in.outputs);
  float *doutputs = mutable_data(to.outputs), *dweights = mutable_data(to.weights);
  for_ranges(by.tokens, 2 * width * (by.chosen + 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const float* own = above + t * width;
      for (std::int64_t i = t * by.chosen; i < (t + 1) * by.chosen; ++i) {
        dweights[i] = 0;
        if (by.places[i] < 0) continue;
        const std::int64_t at = by.places[i] * width;
        dweights[i] = static_cast<float>(dot(own, outputs + at, width));
        assign_times(by.weights[i], own, width, doutputs + at);
      }
      if (!in.gate) continue;
      const float weight = logistic(data(*in.gate)[t]);
      const double slope = static_cast<double>(weight) * (1 - static_cast<double>(weight));
      mutable_data(*to.gate)[t] =
          static_cast<float>(slope * dot(own, data(*in.shared) + t * width, width));
      assign_times(weight, own, width, mutable_data(*to.shared) + t * width);
    }
  });
}

}  // namespace troupe::engine::ops::cpu
