#include "python/kernels/named/named_calls.h"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "python/kernels/named/context.h"

namespace ddl::kernels {
namespace {

struct Call {
  Call(Request its_request, Completion its_completion)
      : request(std::move(its_request)), completion(std::move(its_completion)) {
    outcome.gathered.resize(request.parts.size());
  }

  void fail(ddl_status status, const char* sentence) {
    const std::lock_guard lock(mutex);
    if (outcome.status != DDL_OK) return;
    outcome.status = status;
    outcome.sentence = sentence;
  }
  void end();

  const Request request;
  const Completion completion;
  ddl_context* context = nullptr;     ///< in which it was submitted
  std::atomic<std::size_t> open = 1;  ///< parts that are not complete, and one more while they are submitted
  std::mutex mutex;
  Outcome outcome;  ///< the first failure of a part
};

void Call::end() {
  completion(outcome);
  for (const Gathered& one : outcome.gathered)
    if (one.memory != nullptr) (void)ddl_free(context, one.memory);
}

/// The calls in flight, by process set and name; the first of each has been submitted.
class Calls {
 public:
  void start(std::unique_ptr<Call> call) {
    Call* const first = call.get();
    {
      const std::lock_guard lock(mutex_);
      auto& same_name = calls_[{call->request.process_set, call->request.name}];
      same_name.push_back(std::move(call));
      if (same_name.size() > 1) return;
    }
    submit(*first);
  }

 private:
  void submit(Call& call);
  /// A part is complete, or all have been submitted.
  void one_less(Call& call);
  static void completed(void* argument, ddl_status status, const char* message);

  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::string>, std::deque<std::unique_ptr<Call>>> calls_;
};

// Never destroyed, because threads of libddl may run at the end of the process.
Calls& calls() {
  static Calls& kCalls = *new Calls;
  return kCalls;
}

ddl_status submit_part(ddl_context* context, const Request& request, const std::string& name,
                       const Part& part, Gathered& gathered, ddl_async_options& options) {
  const char* const text = name.c_str();
  switch (request.kind) {
    case Kind::kAllreduce:
      return ddl_allreduce_async(context, text, part.send, part.recv, part.count, request.dtype, request.op,
                                 &options, nullptr);
    case Kind::kBroadcast:
      return ddl_broadcast_async(context, text, part.recv, part.count, request.dtype, request.root, &options,
                                 nullptr);
    case Kind::kReduceScatter:
      return ddl_reduce_scatter_async(context, text, part.send, part.recv, part.rank_counts.data(),
                                      request.dtype, request.op, &options, nullptr);
    case Kind::kAllgather:
    case Kind::kAlltoall: break;
  }
  gathered.counts.resize(static_cast<std::size_t>(ddl_process_set_size(context, request.process_set)));
  if (options.dimensions > 0) ++options.shape, --options.dimensions;  // the first may differ
  if (request.kind == Kind::kAllgather)
    return ddl_allgatherv_async(context, text, part.send, part.count, &gathered.memory,
                                gathered.counts.data(), request.dtype, &options, nullptr);
  return ddl_alltoallv_async(context, text, part.send, part.rank_counts.data(), &gathered.memory,
                             gathered.counts.data(), request.dtype, &options, nullptr);
}

void Calls::submit(Call& call) {
  const Request& request = call.request;
  Joined here = joined();
  call.context = here.context;
  if (here.context == nullptr)
    call.fail(DDL_ERROR_ABORTED, kNotJoined);
  else if (ddl_process_set_rank(here.context, request.process_set) < 0)
    call.fail(DDL_ERROR_INVALID_ARGUMENT,
              ("this rank is not in the process set of the call \"" + request.name + "\"").c_str());
  const std::size_t size = call.outcome.status == DDL_OK ? request.parts.size() : 0;
  for (std::size_t i = 0; i < size; ++i) {
    const Part& part = request.parts[i];
    ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
    options.process_set = request.process_set;
    options.prescale = request.prescale;
    options.postscale = request.postscale;
    options.completed = completed;
    options.argument = &call;
    options.shape = part.shape.data();
    options.dimensions = part.shape.size();
    options.zeros_if_joined = 1;
    options.fails_if_joined = request.fails_if_joined ? 1 : 0;
    if (size > 1) {
      options.group = request.name.c_str();
      options.group_size = static_cast<std::uint32_t>(size);
    }
    const std::string name = size == 1 ? request.name : request.name + "." + std::to_string(i);
    ++call.open;
    const ddl_status status =
        submit_part(here.context, request, name, part, call.outcome.gathered[i], options);
    if (status == DDL_OK) continue;
    call.fail(status, ddl_last_error());
    --call.open;
    break;
  }
  here.lock.unlock();  // the completion may start the next call
  one_less(call);
}

void Calls::completed(void* argument, ddl_status status, const char* message) {
  Call& call = *static_cast<Call*>(argument);
  if (status != DDL_OK) call.fail(status, message);
  calls().one_less(call);
}

void Calls::one_less(Call& call) {
  if (--call.open > 0) return;
  Call* next = nullptr;
  std::unique_ptr<Call> done;
  {
    const std::lock_guard lock(mutex_);
    const auto same_name = calls_.find({call.request.process_set, call.request.name});
    done = std::move(same_name->second.front());
    same_name->second.pop_front();
    if (same_name->second.empty())
      calls_.erase(same_name);
    else
      next = same_name->second.front().get();
  }
  done->end();
  if (next != nullptr) submit(*next);
}

}  // namespace

void start(Request request, Completion completion) {
  calls().start(std::make_unique<Call>(std::move(request), std::move(completion)));
}

}  // namespace ddl::kernels
