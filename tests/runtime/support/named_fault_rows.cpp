// Named tensors in the table of calls in which ranks die or stop.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/support/expect.h"
#include "runtime/support/fault_case.h"

namespace ddl::runtime::test {
namespace {

using conformance::expect_ok;

/// Tensors that are open.
class Handles {
 public:
  ddl_handle** next() { return &handles_.emplace_back(); }
  /// What submitting the next one returned.
  void note(ddl_status status) {
    if (refused_ == DDL_OK) refused_ = status;
  }
  bool are_refused() const { return refused_ != DDL_OK; }
  /// The first failure of a tensor, which is the cause if a later one was refused.
  ddl_status wait() {
    const ddl_status waited = ddl_wait_all(handles_.data(), handles_.size());
    handles_.clear();
    return waited != DDL_OK ? waited : refused_;
  }

 private:
  std::vector<ddl_handle*> handles_;
  ddl_status refused_ = DDL_OK;
};

void submit_sum(FaultArguments& d, Handles& handles, const std::string& name, std::uint64_t part,
                const ddl_async_options& options) {
  const std::uint64_t first = part * d.count;
  handles.note(ddl_allreduce_async(d.context, name.c_str(), d.send + first, d.recv + first, d.count,
                                   DDL_FLOAT32, DDL_SUM, &options, handles.next()));
}

ddl_status sum_expected(FaultArguments& d, const ddl_async_options& options) {
  Handles handles;
  submit_sum(d, handles, "expected", 0, options);
  return handles.wait();
}

/// Two tensors at once.
ddl_status sum_group(FaultArguments& d, const std::string& group, const ddl_async_options& options) {
  const std::array<std::string, 2> names{group + ", first", group + ", second"};
  std::array<ddl_tensor, 2> tensors{};
  for (std::uint64_t i = 0; i < 2; ++i) {
    const std::uint64_t first = (i + 1) * d.count;
    tensors[i] = {names[i].c_str(), d.send + first, d.recv + first, d.count};
  }
  std::array<ddl_handle*, 2> handles{};
  const ddl_status status = ddl_grouped_allreduce_async(d.context, tensors.data(), tensors.size(),
                                                        DDL_FLOAT32, DDL_SUM, &options, handles.data());
  return status != DDL_OK ? status : ddl_wait_all(handles.data(), handles.size());
}

/// The same, one after the other: all ranks sleep while the first one is open.
ddl_status sum_group_with_sleep(FaultArguments& d, const std::string& group,
                                const ddl_async_options& options) {
  ddl_async_options calling_back = options;
  calling_back.argument = &d.passed;
  calling_back.completed = [](void* passed, ddl_status, const char*) {
    static_cast<PassedPoints*>(passed)->note_ending();
  };
  const auto before = d.passed.mark(d.set == DDL_WORLD ? "agree.before_sleep" : "set.agree.before_sleep");
  Handles handles;
  submit_sum(d, handles, group + ", first", 1, calling_back);
  if (!handles.are_refused()) d.passed.wait_since(before);
  submit_sum(d, handles, group + ", second", 2, options);
  return handles.wait();
}

/// Tensors that are executed without a round once the ranks expect them, and a group, on which they agree.
ddl_status named_tensors(FaultArguments& d) {
  ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
  options.process_set = d.set;
  for (int time = 0; time < 3; ++time) {
    if (const ddl_status status = sum_expected(d, options); status != DDL_OK) return status;
  }
  const std::string group = "group " + std::to_string(++d.named);
  options.group = group.c_str();
  options.group_size = 2;
  return d.one_by_one ? sum_group(d, group, options) : sum_group_with_sleep(d, group, options);
}

/// What each rank gives to an allgatherv, and sends to each in an alltoallv: both results together fit behind those of
/// the other calls.
std::uint64_t small_part(const FaultArguments& d) { return d.count / 2 / static_cast<std::uint64_t>(d.size); }

ddl_status other_named_tensors(FaultArguments& d) {
  ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
  options.process_set = d.set;
  const std::uint64_t part = small_part(d), all = part * static_cast<std::uint64_t>(d.size);
  const std::vector<std::uint64_t> parts(d.counts.size(), part);
  void *gathered = nullptr, *exchanged = nullptr;
  if (d.rank == d.root()) std::copy_n(d.send, d.count, d.recv);
  const std::array<std::function<ddl_status(ddl_handle**)>, 4> calls{
      [&](ddl_handle** handle) {
        return ddl_broadcast_async(d.context, "broadcast", d.recv, d.count, DDL_FLOAT32, d.root(), &options,
                                   handle);
      },
      [&](ddl_handle** handle) {
        return ddl_reduce_scatter_async(d.context, "reduce_scatter", d.send, d.recv + d.count,
                                        d.counts.data(), DDL_FLOAT32, DDL_SUM, &options, handle);
      },
      [&](ddl_handle** handle) {
        return ddl_allgatherv_async(d.context, "allgatherv", d.send, part, &gathered,
                                    d.received_counts.data(), DDL_FLOAT32, &options, handle);
      },
      [&](ddl_handle** handle) {
        return ddl_alltoallv_async(d.context, "alltoallv", d.send, parts.data(), &exchanged, nullptr,
                                   DDL_FLOAT32, &options, handle);
      }};
  Handles handles;
  for (const auto& call : calls) {
    handles.note(call(handles.next()));
    if (!d.one_by_one) continue;
    if (const ddl_status status = handles.wait(); status != DDL_OK) return status;
  }
  if (const ddl_status status = handles.wait(); status != DDL_OK) return status;
  float* to = d.recv + 2 * d.count;
  for (void* const result : {gathered, exchanged}) {
    to = std::copy_n(static_cast<const float*>(result), all, to);
    expect_ok(ddl_free(d.context, result), "free");
  }
  return DDL_OK;
}

bool are_right(const FaultArguments& d) {
  const std::uint64_t part = small_part(d), all = part * static_cast<std::uint64_t>(d.size);
  const auto rank = static_cast<std::uint64_t>(d.rank);
  const auto from = [&](std::uint64_t i) { return static_cast<int>(i / part); };
  using Values = FaultArguments;
  return d.received(0, d.count, [&](std::uint64_t i) { return Values::value(d.root(), i); }) &&
         d.received(d.count, d.count,
                    [&](std::uint64_t i) { return Values::sum(d.size, rank * d.count + i); }) &&
         d.received(2 * d.count, all, [&](std::uint64_t i) { return Values::value(from(i), i % part); }) &&
         d.received(2 * d.count + all, all,
                    [&](std::uint64_t i) { return Values::value(from(i), rank * part + i % part); }) &&
         d.received_counts == std::vector<std::uint64_t>(d.counts.size(), part);
}

}  // namespace

std::vector<FaultRow> named_fault_rows() {
  return {
      {"named tensors", CallKind::kAgree, false, named_tensors,
       [](const FaultArguments& d) {
         return d.received(0, 3 * d.count, [&](std::uint64_t i) { return FaultArguments::sum(d.size, i); });
       }},
      {kOtherNamedTensors, CallKind::kAgree, false, other_named_tensors, are_right},
  };
}

}  // namespace ddl::runtime::test
