#include <cmath>

#include "runtime/support/conformance.h"
#include "runtime/support/conformance/sweep.h"
#include "runtime/support/conformance/types.h"
#include "runtime/support/expect.h"

namespace ddl::conformance {
namespace {

/// Less than 1, more than 1, negative, no power of two, and more than most integers can hold.
constexpr Scales kScales[] = {{0.5, 1.0}, {1.0, 3.0},   {-0.37, 1.7},
                              {1e9, 1.0}, {1.0, -1e12}, {1.0 / 3.0, 1.0 / 7.0}};

/// The sum over the ranks of one value each, with scales.
template <class T>
T sum_of(const Communicator& world, T value, Scales scales) {
  ddl_call_options options = world.options();
  options.prescale = scales.before;
  options.postscale = scales.after;
  expect_ok(ddl_allreduce(world.context, &value, &value, 1, TypeOf<T>::value, DDL_SUM, &options),
            "scaled sum");
  return value;
}

/// Values that everybody can compute without the reference.
void check_plain_values(const Communicator& world) {
  const auto ranks = static_cast<float>(world.size);
  expect(sum_of<float>(world, 6.0f, {0.5, 1.0}) == 3.0f * ranks, "prescale of floats");
  expect(sum_of<float>(world, 6.0f, {1.0, 0.5}) == 3.0f * ranks, "postscale of floats");
  expect(sum_of<std::int32_t>(world, 3, {0.5, 1.0}) == world.size, "every integer input is cut off");
  expect(sum_of<std::int32_t>(world, -3, {0.5, 1.0}) == -world.size, "integers are cut off toward zero");
  expect(sum_of<std::int32_t>(world, 3, {1.0, 0.5}) == 3 * world.size / 2, "only the result is cut off");
  expect(sum_of<std::int8_t>(world, 100, {1.0, 1000.0}) ==
             (static_cast<std::int8_t>(100 * world.size) > 0   ? INT8_MAX
              : static_cast<std::int8_t>(100 * world.size) < 0 ? INT8_MIN
                                                               : 0),
         "what does not fit is the nearest value");
  expect(sum_of<std::uint32_t>(world, 7, {1.0, -1.0}) == 0, "an unsigned result is not less than 0");
  // Of a 16-bit float nothing is rounded between the two scales.
  const float third = static_cast<float>(1.0 / 3.0);
  const float exact = static_cast<float>(float16(3.0f)) * third * 1.0f;
  float sum = exact;
  for (int rank = 1; rank < world.size; ++rank) sum += exact;
  if (world.groups.size() == 1 && promises().rounds_once) {
    expect(sum_of<float16>(world, float16(3.0f), {1.0 / 3.0, 1.0}) == narrowed<float16>(sum),
           "a scaled float16 was rounded on the way");
  }
}

}  // namespace

void check_scales(ddl_context* context) {
  const Communicator world = world_of(context);
  check_plain_values(world);
  int turn = 0;
  const auto try_all = [&](ddl_dtype dtype) {
    if (dtype == DDL_BOOL) return;
    std::vector<ddl_op> ops(std::begin(kArithmetic), std::end(kArithmetic));
    for (const ddl_op op : further_ops_of(dtype)) ops.push_back(op);
    for (const ddl_op op : ops) {
      ++turn;
      Trial trial;
      trial.dtype = dtype;
      trial.op = op;
      trial.count = 37;
      trial.root = turn % world.size;
      trial.counts = split_of(trial.count, world.size, turn);
      trial.scales = kScales[static_cast<std::size_t>(turn) % std::size(kScales)];
      trial.seed = static_cast<std::uint64_t>(turn);
      // allreduce, reduce and reduce_scatter, each with every pair of scales
      trial.collective = kCollectives[static_cast<std::size_t>(turn) / std::size(kScales) % 3];
      check(world, trial);
      if (op == DDL_AVERAGE) continue;
      trial.collective = Collective::kScan;
      check(world, trial);
    }
  };
  for (const ddl_dtype dtype : kUsualTypes) try_all(dtype);
  for (const ddl_dtype dtype : kOtherTypes) try_all(dtype);
}

}  // namespace ddl::conformance
