#include "python/kernels/named_calls.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace ddl::kernels {
namespace {

// Frameworks give kernels no argument of ours, so what they share is here. It is never destroyed, because threads of the
// framework may run at the end of the process.
struct Shared {
  std::shared_mutex mutex;
  ddl_context* context = nullptr;
  std::mutex failure_mutex;
  ddl_status failure = DDL_OK;  ///< of the first call that failed in the context
  std::string sentence;         ///< of that
};
Shared& shared() {
  static Shared& kShared = *new Shared;
  return kShared;
}

/// For Python: frameworks raise errors of their own. What is wrong with an argument says nothing about other ranks.
void note_failure(ddl_status status, const std::string& sentence) {
  const std::lock_guard lock(shared().failure_mutex);
  if (status == DDL_ERROR_INVALID_ARGUMENT || shared().failure != DDL_OK) return;
  shared().failure = status;
  shared().sentence = sentence;
}

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
    if (outcome.context != nullptr) note_failure(status, outcome.sentence);
  }

  const Request request;
  const Completion completion;
  std::atomic<std::size_t> open = 1;  ///< parts that are not complete, and one more while they are submitted
  std::mutex mutex;
  Outcome outcome;  ///< the first failure of a part
};

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

std::size_t size_of(ddl_context* context, const Request& request) {
  return static_cast<std::size_t>(ddl_process_set_size(context, request.process_set));
}

/// The ranks may be others than when the call began. "": nothing is wrong.
std::string problem_with(const Request& request, ddl_context* context) {
  const std::string call = "the call \"" + request.name + "\"";
  if (ddl_process_set_rank(context, request.process_set) < 0)
    return "this rank is not in the process set of " + call;
  for (const Part& part : request.parts)
    if (!part.rank_counts.empty() && part.rank_counts.size() != size_of(context, request))
      return call + " began when there was another number of ranks";
  return "";
}

ddl_status submit_part(ddl_context* context, const Request& request, const std::string& name,
                       const Part& part, Gathered& gathered, ddl_async_options& options) {
  const char* const text = name.c_str();
  switch (request.kind) {
    case Kind::kAllreduce:
      return ddl_allreduce_async(context, text, part.send, part.recv, part.count, part.dtype, request.op,
                                 &options, nullptr);
    case Kind::kBroadcast:
      return ddl_broadcast_async(context, text, part.recv, part.count, part.dtype, request.root, &options,
                                 nullptr);
    case Kind::kReduceScatter:
      return ddl_reduce_scatter_async(context, text, part.send, part.recv, part.rank_counts.data(),
                                      part.dtype, request.op, &options, nullptr);
    case Kind::kAllgather:
    case Kind::kAlltoall: break;
  }
  gathered.counts.resize(size_of(context, request));
  if (options.dimensions > 0) ++options.shape, --options.dimensions;  // the first may differ
  if (request.kind == Kind::kAllgather)
    return ddl_allgatherv_async(context, text, part.send, part.count, &gathered.memory,
                                gathered.counts.data(), part.dtype, &options, nullptr);
  return ddl_alltoallv_async(context, text, part.send, part.rank_counts.data(), &gathered.memory,
                             gathered.counts.data(), part.dtype, &options, nullptr);
}

void Calls::submit(Call& call) {
  const Request& request = call.request;
  Joined here = joined();
  call.outcome.context = here.context;
  if (here.context == nullptr)
    call.fail(DDL_ERROR_ABORTED, kNotJoined);
  else if (const std::string problem = problem_with(request, here.context); !problem.empty())
    call.fail(DDL_ERROR_INVALID_ARGUMENT, problem.c_str());
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
  done->completion(done->outcome);
  if (next != nullptr) submit(*next);
}

}  // namespace

void Outcome::free_gathered() {
  for (const Gathered& one : gathered)
    if (one.memory != nullptr) (void)ddl_free(context, one.memory);
  gathered.clear();
}

Joined joined() {
  std::shared_lock lock(shared().mutex);
  ddl_context* const context = shared().context;
  return {std::move(lock), context};
}

std::vector<std::uint64_t> scattered_rows(std::uint64_t rows, std::size_t ranks) {
  std::vector<std::uint64_t> parts(ranks, rows / ranks);
  for (std::size_t rank = 0; rank < rows % ranks; ++rank) ++parts[rank];
  return parts;
}

void start(Request request, Completion completion) {
  calls().start(std::make_unique<Call>(std::move(request), std::move(completion)));
}

}  // namespace ddl::kernels

/// Python calls this after it has joined, and with null before it leaves; then no kernel is inside libddl any more.
/// Calls in flight go on.
extern "C" DDL_API void ddl_kernels_context(ddl_context* context) {
  ddl::kernels::Shared& shared = ddl::kernels::shared();
  const std::unique_lock lock(shared.mutex);
  shared.context = context;
  if (context == nullptr) return;
  const std::lock_guard failure_lock(shared.failure_mutex);
  shared.failure = DDL_OK;
  shared.sentence.clear();
}

/// With which status the first call has failed since the process has joined, and the sentence, cut to this size.
extern "C" DDL_API ddl_status ddl_kernels_failure(char* sentence, std::size_t size) {
  ddl::kernels::Shared& shared = ddl::kernels::shared();
  const std::lock_guard lock(shared.failure_mutex);
  std::strncpy(sentence, shared.sentence.c_str(), size);
  sentence[size - 1] = '\0';
  return shared.failure;
}
