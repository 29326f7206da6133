// Memory of every device: uploads and downloads are exact, and excessive sizes are rejected with a
// message.
#include <atomic>

#include "engine/base/errors/error.h"
#include "engine/ops/cpu/cpu_options.h"
#include "tests/engine/ops/every_device.h"

namespace troupe::engine::ops {
namespace {

class Memory : public OnEveryDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Memory, testing::ValuesIn(device_cases()), case_name);

TEST_P(Memory, ValuesComeBackAsTheyWentIn) {
  const Floats x = random_floats(7, 1);
  EXPECT_EQ(get(put({7}, x)), x);
  EXPECT_TRUE(get(put({0}, {})).empty());
}

TEST_P(Memory, ASourceWritesEachValueOnceWhereItBelongs) {
  for (const std::int64_t count : {0, 1, 65536, 300'007}) {
    Tensor x = filled({count + 2}, -1), inner = x.flat(1, count + 1);
    std::atomic<std::int64_t> written{0};
    device().upload_from(inner, [&](std::int64_t begin, std::span<float> into) {
      for (std::size_t i = 0; i < into.size(); ++i)
        into[i] = static_cast<float>(begin) + static_cast<float>(i);
      written += std::ssize(into);
    });
    EXPECT_EQ(written, count);
    const Floats values = get(x);
    EXPECT_EQ(values.front(), -1);
    EXPECT_EQ(values.back(), -1);
    for (std::int64_t i = 0; i < count; ++i)
      ASSERT_EQ(values[static_cast<std::size_t>(i + 1)], static_cast<float>(i));
  }
}

TEST_P(Memory, EachRowIsVisitedOnceWithItsValues) {
  constexpr std::int64_t count = 37, width = 1000;
  const Tensor rows = ops::from_host(device(), {count, width}, [] {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count * width; ++i) values.push_back(static_cast<float>(i));
    return values;
  }());
  std::vector<float> sums(count, 0);  // each of its own row's visit
  device().visit_rows(rows, [&](std::int64_t row, std::span<const float> values) {
    for (const float x : values)
      sums[static_cast<std::size_t>(row)] += x - static_cast<float>(row * width);
  });
  EXPECT_EQ(sums, std::vector<float>(count, width * (width - 1) / 2));
  device().visit_rows(device().empty({0, width}), [&](std::int64_t, std::span<const float>) {
    ADD_FAILURE() << "there is no row";
  });
}

TEST_P(Memory, Bf16KeepsTheUpperHalfRoundedToEven) {
  Tensor x = device().empty({3}, DType::bf16);
  device().upload(x, Floats{1.0F, 1.00390625F, 1.01171875F});  // exact, a tie down, a tie up
  EXPECT_EQ(get(x), (Floats{1.0F, 1.0F, 1.015625F}));
}

TEST_P(Memory, ViewsShareAndCopiesDoNot) {
  Tensor x = put({3, 2}, {1, 2, 3, 4, 5, 6}), y = filled({6}, 0);
  device().copy(x, y);
  Tensor row = x.rows(1, 2);
  device().fill(row, 9);
  EXPECT_EQ(get(x), (Floats{1, 2, 9, 9, 5, 6}));
  EXPECT_EQ(get(y), (Floats{1, 2, 3, 4, 5, 6}));
}

TEST_P(Memory, TooMuchIsAFailureInWords) {
  try {
    (void)device().empty({std::int64_t{1} << 50});
    FAIL() << "a petabyte was granted";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, Errc::full);
    EXPECT_NE(failure.error().what.find("out of memory"), std::string::npos);
  }
  EXPECT_THROW((void)device().empty({std::int64_t{1} << 40, std::int64_t{1} << 40}),
               std::logic_error);
}

TEST_P(Memory, TheDeviceKnowsWhatIsInUseAndTheMostThatWas) {
  const MemoryUse before = device().memory();
  {
    const Tensor x = device().empty({1 << 18}), y = device().empty({1 << 18});
    EXPECT_EQ(device().memory().now, before.now + (2U << 20));
  }
  const MemoryUse after = device().memory();
  EXPECT_EQ(after.now, before.now);
  EXPECT_EQ(after.peak, before.now + (2U << 20));
  EXPECT_LE(after.held, after.peak);
}

TEST(CpuDevice, NamesTheInstructionSetsItKnows) {
  try {
    (void)make_cpu_device({.threads = 1, .isa = "avx3"});
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, Errc::usage);
    EXPECT_NE(failure.error().what.find("avx512"), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe::engine::ops
