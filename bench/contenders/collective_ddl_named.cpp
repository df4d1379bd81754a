// libddl with named tensors: each is submitted, and all are waited for at the end of what is timed.
#include <cstddef>
#include <string>
#include <vector>

#include "bench/contenders/measured_rank.h"
#include "ddl/ddl.h"

namespace ddl::bench {
namespace {

/// The tensors that are open, named by their number since all were complete.
class OpenTensors {
 public:
  explicit OpenTensors(ddl_context* context) : context_(context) {}

  const float* submit(Collective what, const Buffers& of) {
    if (what != Collective::kAllreduce) return nullptr;
    const std::size_t number = handles_.size();
    if (number == names_.size()) names_.push_back("gradient " + std::to_string(number));
    ddl_handle* handle = nullptr;
    if (ddl_allreduce_async(context_, names_[number].c_str(), of.send, of.recv, of.count, DDL_FLOAT32,
                            DDL_SUM, nullptr, &handle) != DDL_OK)
      return nullptr;
    handles_.push_back(handle);
    return of.recv;
  }
  bool complete() {
    const bool is_good = ddl_wait_all(handles_.data(), handles_.size()) == DDL_OK;
    handles_.clear();
    return is_good;
  }

 private:
  ddl_context* context_;
  std::vector<std::string> names_;
  std::vector<ddl_handle*> handles_;
};

int run_rank(int argc, char** argv) {
  auto job = join_benchmark(argc, argv);
  if (!job) return fail_rank(job.error());
  ddl_context* context = nullptr;
  if (ddl_init(nullptr, &context) != DDL_OK)
    return fail_rank(ddl::Error(ddl::ErrorCode::kSystem, ddl_last_error()));
  ddl::Status status = check_world(*job, ddl_rank(context), ddl_size(context));
  OpenTensors tensors(context);
  if (status) {
    status = measure(
        *job, Expect::kResults, Buckets::kOfLibrary,
        [&](Collective what, const Buffers& buffers) { return tensors.submit(what, buffers); },
        [&] { return tensors.complete(); });
  }
  // A failed rank exits without ddl_finalize(): the others may be waiting for it, and its exit ends the job.
  if (!status) return fail_rank(status.error().during(ddl_last_error()));
  return ddl_finalize(context) == DDL_OK ? 0 : 1;
}

}  // namespace
}  // namespace ddl::bench

int main(int argc, char** argv) { return ddl::bench::run_rank(argc, argv); }
