// Allreduces by Adasum, beside values that were worked by hand and the tree in double.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/support/conformance.h"
#include "runtime/support/conformance/communicator.h"
#include "runtime/support/conformance/fenced.h"
#include "runtime/support/conformance/types.h"

namespace ddl::conformance {
namespace {

using Vector = std::vector<double>;

/// (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b.
Vector of_two(const Vector& a, const Vector& b) {
  double aa = 0, bb = 0, ab = 0;
  for (std::size_t e = 0; e < a.size(); ++e) {
    aa += a[e] * a[e];
    bb += b[e] * b[e];
    ab += a[e] * b[e];
  }
  const double least = std::sqrt(DBL_MIN);
  const double of_a = aa < least ? 1 : 1 - ab / (2 * aa), of_b = bb < least ? 1 : 1 - ab / (2 * bb);
  Vector result(a.size());
  for (std::size_t e = 0; e < a.size(); ++e) result[e] = of_a * a[e] + of_b * b[e];
  return result;
}

/// Neighbours, then pairs of neighbours, and so on; an odd last one waits.
Vector of_all(std::vector<Vector> values) {
  while (values.size() > 1) {
    std::vector<Vector> next;
    for (std::size_t i = 0; i < values.size(); i += 2)
      next.push_back(i + 1 < values.size() ? of_two(values[i], values[i + 1]) : values[i]);
    values = std::move(next);
  }
  return values.front();
}

double norm_of(const Vector& values) {
  double square = 0;
  for (const double value : values) square += value * value;
  return std::sqrt(square);
}

/// All ranks have the bits of rank 0.
template <class T>
void expect_same_on_all(const Communicator& comm, Fenced<T>& got, std::uint64_t count,
                        const std::string& what) {
  const ddl_call_options options = comm.options();
  std::vector<T> first(got.data(), got.data() + count);
  expect_ok(ddl_broadcast(comm.context, first.data(), count, TypeOf<T>::value, 0, &options), what);
  expect_bits(got, first, what + ": not the bits of rank 0");
}

template <class T>
void check_random(const Communicator& comm, std::uint64_t count, const Scales& scales, bool is_in_place) {
  const std::string what = "adasum of " + std::to_string(count) + " elements of " +
                           std::to_string(sizeof(T)) + " bytes on " + std::to_string(comm.size) + " ranks";
  std::vector<Vector> inputs;
  double longest = 0;
  for (int rank = 0; rank < comm.size; ++rank) {
    Vector input;
    for (std::uint64_t e = 0; e < count; ++e)
      input.push_back(scales.before *
                      static_cast<double>(static_cast<Wide<T>>(input_element<T>(rank, e, 7))));
    longest = std::max(longest, norm_of(input));
    inputs.push_back(std::move(input));
  }
  const Vector wanted = of_all(std::move(inputs));

  ddl_call_options options = comm.options();
  options.prescale = scales.before;
  options.postscale = scales.after;
  const std::vector<T> own = input_of<T>(comm.rank, count, 7);
  Fenced<T> send(own), recv(is_in_place ? own : std::vector<T>(count));
  T* const from = is_in_place ? recv.data() : send.data();
  expect_ok(ddl_allreduce(comm.context, from, recv.data(), count, TypeOf<T>::value, DDL_ADASUM, &options),
            what);
  expect(recv.fences_hold(), what + ": wrote outside of the buffer");
  expect_bits(send, own, what + ": changed its input");
  const double once = sizeof(T) > 2 ? 0 : std::is_same_v<T, float16> ? 0x1p-11 : 0x1p-8;
  for (std::uint64_t e = 0; e < count; ++e) {
    const double got = static_cast<double>(static_cast<Wide<T>>(recv.at(e))),
                 right = wanted[e] * scales.after;
    const double limit = 100 * std::numeric_limits<Wide<T>>::epsilon() * longest * scales.after +
                         once * std::abs(right) + 0x1p-24;
    expect(std::abs(got - right) <= limit, what + ": element " + std::to_string(e) + " is " +
                                               std::to_string(got) + " instead of " + std::to_string(right));
  }
  expect_same_on_all(comm, recv, count, what);
}

/// What the first ranks give, and what all get; the ranks after them give zeros.
struct Worked {
  std::vector<Vector> inputs;
  Vector result;
};
const Worked kWorked[] = {
    {{{1, 0}, {0, 1}}, {1, 1}},
    {{{1, 0}, {1, 1}}, {1.25, 0.75}},
    {{{3, 0}, {1, 0}}, {2, 0}},
    {{{1, 0}, {-1, 0}}, {0, 0}},
    {{{0, 0}, {3, -5}}, {3, -5}},
    {{{7, 11}, {7, 11}}, {7, 11}},
    {{{7, 11}, {7, 11}, {7, 11}}, {7, 11}},
    // The tree is not associative.
    {{{1, 0}, {0, 1}, {1, 1}}, {1, 1}},
    {{{0, 1}, {1, 1}, {1, 0}}, {169.0 / 136, 35.0 / 34}},
    {{{1, 0}, {0, 0}, {0, 1}, {1, 1}}, {169.0 / 136, 35.0 / 34}},
    {{{1, 0}, {1, 1}, {0, 1}, {1, 1}}, {19.0 / 17, 19.0 / 17}},
};

template <class T>
void check_worked(const Communicator& comm) {
  for (const Worked& worked : kWorked) {
    if (worked.inputs.size() > static_cast<std::size_t>(comm.size)) continue;
    const auto own = static_cast<std::size_t>(comm.rank);
    const Vector input = own < worked.inputs.size() ? worked.inputs[own] : Vector{0, 0};
    T values[] = {static_cast<T>(input[0]), static_cast<T>(input[1])};
    const ddl_call_options options = comm.options();
    expect_ok(ddl_allreduce(comm.context, values, values, 2, TypeOf<T>::value, DDL_ADASUM, &options),
              "adasum");
    for (const int e : {0, 1}) {
      const double got = static_cast<double>(values[e]), wanted = worked.result[static_cast<std::size_t>(e)];
      expect(std::abs(got - wanted) <= 4 * std::numeric_limits<T>::epsilon(),
             "adasum is " + std::to_string(got) + " instead of " + std::to_string(wanted));
    }
  }
}

/// A square that is no normal number has the factor 1, so two such tensors are added.
void check_tiny(const Communicator& comm) {
  double value = 1e-200;
  const ddl_call_options options = comm.options();
  expect_ok(ddl_allreduce(comm.context, &value, &value, 1, DDL_FLOAT64, DDL_ADASUM, &options), "adasum");
  expect(std::abs(value - 1e-200 * comm.size) <= 1e-214,
         "adasum of tiny values is " + std::to_string(value * 1e200));
  // A loss that is not a number is seen on all ranks.
  value = comm.rank == comm.size - 1 ? std::numeric_limits<double>::infinity() : 1;
  expect_ok(ddl_allreduce(comm.context, &value, &value, 1, DDL_FLOAT64, DDL_ADASUM, &options), "adasum");
  expect(!std::isfinite(value), "adasum of infinity is finite");
}

/// Several named tensors at once have the bits of one call each.
void check_named(const Communicator& comm) {
  const std::uint64_t counts[] = {1, 3, 16, 0, 129, 1000};
  struct Tensor {
    std::string name;
    std::vector<double> input, alone, together;
    ddl_handle* handle = nullptr;
  };
  std::vector<Tensor> tensors;
  const ddl_call_options ordered = comm.options();
  for (const std::uint64_t count : counts) {
    Tensor& tensor = tensors.emplace_back();
    tensor.name = "adasum " + std::to_string(count);
    tensor.input = input_of<double>(comm.rank, count, count + 1);
    tensor.alone.resize(count);
    tensor.together.resize(count);
    expect_ok(ddl_allreduce(comm.context, tensor.input.data(), tensor.alone.data(), count, DDL_FLOAT64,
                            DDL_ADASUM, &ordered),
              tensor.name);
  }
  ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
  options.process_set = comm.set;
  options.group = "adasum";
  options.group_size = static_cast<std::uint32_t>(std::size(counts));
  for (Tensor& tensor : tensors) {
    expect_ok(
        ddl_allreduce_async(comm.context, tensor.name.c_str(), tensor.input.data(), tensor.together.data(),
                            tensor.input.size(), DDL_FLOAT64, DDL_ADASUM, &options, &tensor.handle),
        tensor.name);
  }
  for (Tensor& tensor : tensors) {
    expect_ok(ddl_wait(tensor.handle), tensor.name);
    expect(tensor.together == tensor.alone, tensor.name + ": other bits beside other tensors");
  }
}

void check_on(const Communicator& comm) {
  check_worked<float>(comm);
  check_worked<double>(comm);
  check_tiny(comm);
  const auto size = static_cast<std::uint64_t>(comm.size);
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, size - 1, size + 1, 4 * size,
                                    8 * size + 3, std::uint64_t{1025}}) {
    const Scales scales = count == 1025 ? Scales{0.5, 3.0} : Scales{};
    for (const bool is_in_place : {false, true}) {
      check_random<float>(comm, count, scales, is_in_place);
      check_random<double>(comm, count, scales, is_in_place);
      check_random<float16>(comm, count, scales, is_in_place);
      check_random<bfloat16>(comm, count, scales, is_in_place);
    }
  }
  check_named(comm);
}

}  // namespace

void check_adasum(ddl_context* context) {
  const Communicator world = world_of(context);
  check_on(world);
  // A set of the even ranks, in another order.
  std::uint64_t set = DDL_NO_PROCESS_SET;
  expect_ok(ddl_process_set_split(context, DDL_WORLD, world.rank % 2 == 0 ? 0 : -1, -world.rank, &set),
            "split");
  if (set == DDL_NO_PROCESS_SET) return;
  check_on(communicator_of(world, set));
  expect_ok(ddl_process_set_free(context, set), "free");
}

}  // namespace ddl::conformance
