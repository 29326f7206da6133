// The profiled device: every call is recorded, is forwarded to the function of the same name, and
// gives the same bits.
#include "engine/ops/profiled_device.h"

#include <gmock/gmock.h>

#include <set>

#include "engine/ops/cpu/cpu_options.h"
#include "engine/ops/phase.h"
#include "engine/ops/roofline.h"
#include "tests/engine/ops/every_result.h"

namespace troupe::engine::ops {
namespace {

/// Records every beginning ("gemm") and end ("end").
class RecordedSpans final : public Spans {
 public:
  explicit RecordedSpans(bool recording = true) : recording_(recording) {}
  bool recording() override { return recording_; }
  void begin(SpanStart span) override {
    lines.emplace_back(span.name);
    starts.push_back(std::move(span));
  }
  void end() noexcept override { lines.emplace_back("end"); }
  bool wants_shapes() const override { return true; }

  std::vector<std::string> lines;
  std::vector<SpanStart> starts;

 private:
  bool recording_;
};

using Profiled = OnEveryDevice;

TEST_P(Profiled, TheResultsOfEveryOperationAreTheSameBits) {
  RecordedSpans recorded;
  const auto profiled = make_profiled_device(make(GetParam()), recorded);
  const auto expected = every_result(device()), found = every_result(*profiled);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, values] : expected)
    EXPECT_TRUE(same_bits(found.at(name), values)) << name;
}

INSTANTIATE_TEST_SUITE_P(Devices, Profiled, testing::ValuesIn(device_cases()), case_name);

TEST(ProfiledDevice, ReportsEveryCallAndPassesItToTheFunctionOfTheSameName) {
  RecordedSpans outer, inner;
  const std::shared_ptr<Device> within =
      make_profiled_device(make_cpu_device({.threads = 1}), inner);
  const auto device = make_profiled_device(within, outer);
  every_result(*device);
  EXPECT_GT(outer.starts.size(), 100u);
  EXPECT_EQ(outer.lines, inner.lines);  // as many, in the same order, each begun and ended
  const std::set<std::string> names(outer.lines.begin(), outer.lines.end());
  for (const char* name : {"gemm", "attention", "attention_backward", "head", "head_backward",
                           "adamw", "rope", "rms_norm", "empty"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(ProfiledDevice, TellsNothingWhileNobodyRecords) {
  RecordedSpans recorded(false);
  const auto device = make_profiled_device(make_reference_device(), recorded);
  every_result(*device);
  in_phase(*device, "a phase", [] {});
  EXPECT_TRUE(recorded.lines.empty());
}

TEST(ProfiledDevice, TellsTheWorkAndTheShapesOfAProduct) {
  RecordedSpans recorded;
  const auto device = make_profiled_device(make_reference_device(), recorded);
  const Tensor a = from_host(*device, {3, 5}, Floats(15, 1)),
               b = from_host(*device, {7, 5}, Floats(35, 1));
  Tensor c = device->empty({3, 7});
  device->gemm(a, b, c, {.transpose_b = true, .precision = Precision::bf16});
  const SpanStart& span = recorded.starts.back();
  EXPECT_EQ(span.name, "gemm");
  EXPECT_EQ(span.work.flops, 2 * 3 * 7 * 5);
  EXPECT_EQ(span.work.bytes, 4 * (15 + 35 + 21));
  EXPECT_TRUE(span.work.bf16);
  EXPECT_EQ(span.detail, "[3, 5] [7, 5] [3, 7]");
}

TEST(ProfiledDevice, TellsGroupedProductsAsOne) {
  RecordedSpans recorded;
  const auto device = make_profiled_device(make_reference_device(), recorded);
  const Tensor a = from_host(*device, {3, 5}, Floats(15, 1)),
               b = from_host(*device, {7, 5}, Floats(35, 1));
  GemmCall calls[] = {{a, b, device->empty({3, 7}), {.transpose_b = true}},
                      {a, b, device->empty({3, 7}), {.transpose_b = true}}};
  const std::size_t before = recorded.starts.size();
  device->grouped_gemm(calls);
  ASSERT_EQ(recorded.starts.size(), before + 1);
  const SpanStart& span = recorded.starts.back();
  EXPECT_EQ(span.name, "gemm");
  EXPECT_EQ(span.work.flops, 2 * 2 * 3 * 7 * 5);
  EXPECT_EQ(span.work.bytes, 2 * 4 * (15 + 35 + 21));
  EXPECT_EQ(span.detail, "[3, 5] [7, 5] [3, 7], [3, 5] [7, 5] [3, 7]");
  EXPECT_EQ(to_host(*device, calls[1].c), Floats(21, 5));
}

TEST(ProfiledDevice, HasTheMemoryOfTheOther) {
  RecordedSpans recorded;
  const std::shared_ptr<Device> inner = make_reference_device();
  const auto device = make_profiled_device(inner, recorded);
  const Tensor x = device->empty({100, 3});
  EXPECT_GE(device->memory().now, 1200u);
  EXPECT_EQ(device->memory().now, inner->memory().now);
}

TEST(ProfiledDevice, PhasesGoAroundTheirOperators) {
  RecordedSpans recorded;
  const auto device = make_profiled_device(make_reference_device(), recorded);
  Tensor x = device->empty({2});
  recorded.lines.clear();
  const int answer = in_phase(*device, "outside", [&] {
    device->fill(x, 1);
    return 42;
  });
  EXPECT_EQ(answer, 42);
  EXPECT_THAT(recorded.lines, testing::ElementsAre("outside", "fill", "end", "end"));
}

TEST(Work, OfAttentionCountsTheKeysThatAreSeen) {
  const auto device = make_reference_device();
  const Tensor q = device->empty({5, 6});  // two heads of size 3
  const PreparedLayout layout = device->prepare({{0, 3, 5}, {0, 1, 2, 0, 1}});
  AttentionShape shape{.heads = 2, .kv_heads = 1, .head_size = 3};
  const KeyValues kv;
  EXPECT_EQ(attention_work({q, kv, layout, shape, Precision::f32}).flops,
            4 * 2 * 3 * (1 + 2 + 3 + 1 + 2));
  EXPECT_EQ(attention_work({q, kv, layout, shape, Precision::f32}).bytes, 4 * (2 * 30 + 2 * 3 * 5));
  EXPECT_EQ(attention_backward_work({q, kv, layout, shape, Precision::f32}).flops, 10 * 2 * 3 * 9);
  EXPECT_FALSE(attention_work({q, kv, layout, shape, Precision::f32}).bf16);
  EXPECT_TRUE(attention_work({q, kv, layout, shape, Precision::bf16}).bf16);
  EXPECT_TRUE(attention_backward_work({q, kv, layout, shape, Precision::bf16}).bf16);
  shape.window = 2;
  EXPECT_EQ(attention_work({q, kv, layout, shape, Precision::f32}).flops,
            4 * 2 * 3 * (1 + 2 + 2 + 1 + 2));
  const PreparedLayout late = device->prepare({{0, 1}, {9}});  // one row of a cache
  shape.window = 0;
  EXPECT_EQ(attention_work({q.rows(0, 1), kv, late, shape, Precision::f32}).bytes,
            4 * (2 * 6 + 2 * 3 * 10));
}

TEST(Work, OfTheHeadCountsRowsWithATarget) {
  const auto device = make_reference_device();
  const Tensor hidden = device->empty({3, 4}), weight = device->empty({10, 4});
  const Indices targets = device->indices(Rows{1, no_target, target_elsewhere});
  EXPECT_EQ(head_work({hidden, weight, targets, {}, Precision::f32}).flops, 2 * 2 * 10 * 4);
  EXPECT_EQ(head_backward_work({hidden, weight, targets, {}, Precision::f32}, weight, false).flops,
            3 * 2 * 2 * 10 * 4);
  EXPECT_EQ(
      head_backward_work({hidden, weight, targets, {}, Precision::f32}, Tensor(), false).flops,
      2 * 2 * 2 * 10 * 4);
  const HeadAdapter adapter{device->empty({3, 2}), device->empty({10, 2}), {}, {}};
  EXPECT_EQ(head_work({hidden, weight, targets, {}, Precision::f32, &adapter}).flops,
            2 * 2 * 10 * 4 + 2 * 2 * 10 * 2);
}

TEST(Ceilings, BoundWorkByWhatTakesLonger) {
  const Ceiling ceiling{.f32_flops = 100, .bf16_flops = 200, .read_bytes = 10};
  EXPECT_EQ(ceiling.seconds({.flops = 100, .bytes = 5}), 1);
  EXPECT_EQ(ceiling.seconds({.flops = 100, .bytes = 20}), 2);
  EXPECT_EQ(ceiling.seconds({.flops = 100, .bytes = 1, .bf16 = true}), 0.5);
  EXPECT_EQ(Ceiling().seconds({.flops = 100, .bytes = 20}), 0);  // nothing was measured
}

TEST(Ceilings, AreMeasuredOnTheDevice) {
  const auto device = make_cpu_device({.threads = 1});
  const Ceiling ceiling = measure_ceiling(*device, true);
  EXPECT_GT(ceiling.f32_flops, 0);
  EXPECT_GT(ceiling.bf16_flops, 0);
  EXPECT_GT(ceiling.read_bytes, 0);
  EXPECT_EQ(measure_ceiling(*device, false).bf16_flops, 0);
}

}  // namespace
}  // namespace troupe::engine::ops
