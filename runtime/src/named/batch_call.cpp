#include "runtime/src/named/batch_call.h"

#include <algorithm>
#include <numeric>

namespace ddl::runtime {
namespace {

/// A hash of what a batch executes (names, terms, who has data), which the ranks compare. Never 0.
std::uint64_t digest_of_batch(const Batch& batch) {
  std::vector<std::uint64_t> numbers(batch.has_data.begin(), batch.has_data.end());
  numbers.insert(numbers.end(), {batch.first, batch.count});
  for (const AgreedTensorPtr& tensor : batch.tensors) {
    const TensorTerms& terms = tensor->terms;
    numbers.push_back(digest_of(tensor->name));
    numbers.push_back(static_cast<std::uint64_t>(terms.call.kind));
    numbers.push_back(static_cast<std::uint64_t>(terms.call.memory));
    numbers.push_back(terms.call.count);
    numbers.insert(numbers.end(), terms.counts.begin(), terms.counts.end());
    numbers.insert(numbers.end(), terms.shape.begin(), terms.shape.end());
  }
  return digest_of(numbers) | 1;
}

class BatchCall {
 public:
  BatchCall(CollectiveBackend& backend, JobResources& job, const Membership& members, const Batch& batch,
            const std::vector<SubmissionPtr>& submissions)
      : backend_(backend),
        job_(job),
        members_(members),
        batch_(batch),
        submissions_(submissions),
        terms_(batch.tensors.front()->terms),
        element_(known_element_size(terms_.call.dtype)),
        digest_(digest_of_batch(batch)) {
    for (const SubmissionPtr& submission : submissions) {
      if (submission->device != nullptr && submission->ready.get() != nullptr)
        ready_.push_back(submission->ready.get());
    }
  }

  Outcome run() {
    switch (terms_.call.kind) {
      case CallKind::kAllreduce: return allreduce();
      case CallKind::kReduceScatter: return reduce_scatter();
      case CallKind::kBroadcast: return broadcast();
      case CallKind::kAllgather: return allgather();
      case CallKind::kAllgatherv: return allgatherv();
      case CallKind::kAlltoallv: return alltoallv();
      default: break;
    }
    DDL_CHECK(false, terms_.describe());
    return {};
  }

 private:
  bool has_joined() const { return submissions_.empty(); }
  const Submission* own() const { return has_joined() ? nullptr : submissions_.front().get(); }
  /// It has joined, and the others' tensors take zeros from it.
  bool sends_zeros() const { return has_joined() && terms_.takes_zeros(); }
  Outcome call(const Request& request) const {
    return backend_.run(request, CallDeadline::after(job_.settings.timeout_seconds));
  }

  /// Of numbers that the ranks exchange before the data.
  Request numbers(CallKind kind) const {
    Request request;
    request.call = make_call(kind, 1, DDL_UINT64);
    request.call.counts = digest_;
    request.element_size = sizeof(std::uint64_t);
    return request;
  }
  /// Of the tensors' data.
  Request request_of(std::uint64_t count) const {
    Request request;
    request.call = terms_.call;
    request.call.count = count;
    request.call.counts = digest_;
    request.element_size = element_;
    if (has_op(terms_.call.kind) && !terms_.takes_zeros()) request.contributes = batch_.has_data;
    request.some_contribute_none = !batch_.has_data.empty();
    request.has_events = true;
    request.after = ready_;
    if (own() != nullptr) {
      request.device = own()->device;
      request.send = own()->send;
      request.recv = own()->recv;
    }
    return request;
  }

  Outcome allreduce() const {
    std::uint64_t count = batch_.count;
    for (const AgreedTensorPtr& tensor : batch_.tensors)
      count += batch_.count == 0 ? tensor->terms.call.count : 0;
    Request request = request_of(count);
    if (batch_.first > 0 && own() != nullptr) {
      request.send += batch_.first * element_;
      request.recv += batch_.first * element_;
    }
    std::vector<Part> parts;
    std::vector<std::byte> zeros;
    if (sends_zeros()) {
      zeros.resize(count * element_);
      request.send = request.recv = zeros.data();
      std::byte* at = zeros.data();
      for (std::size_t i = 0; batch_.tensors.size() > 1 && i < batch_.tensors.size(); ++i) {
        const std::uint64_t part = batch_.tensors[i]->terms.call.count;
        parts.push_back({at, at, part});
        at += part * element_;
      }
    }
    if (submissions_.size() > 1) {
      for (const SubmissionPtr& part : submissions_)
        parts.push_back({part->send, part->recv, part->terms().call.count});
    }
    if (parts.size() > 1) {
      request.send = nullptr;
      request.recv = nullptr;
      request.parts = parts;
    }
    return call(request);
  }

  Outcome reduce_scatter() const {
    const std::uint64_t count = std::accumulate(terms_.counts.begin(), terms_.counts.end(), std::uint64_t{0});
    Request request = request_of(count);
    request.counts = terms_.counts;
    std::vector<std::byte> zeros, unused;
    if (sends_zeros()) {
      zeros.resize(count * element_);
      unused.resize(terms_.counts[members_.rank] * element_);
      request.send = zeros.data();
      request.recv = unused.data();
    }
    return call(request);
  }

  Outcome broadcast() const {
    Request request = request_of(terms_.call.count);
    request.waits_for_all = true;
    std::vector<std::byte> unused;
    if (has_joined()) {
      unused.resize(terms_.call.count * element_);
      request.send = request.recv = unused.data();
    }
    return call(request);
  }

  Outcome allgather() const {
    Request request = request_of(terms_.call.count);
    std::vector<std::byte> zeros, unused;
    if (has_joined()) {
      zeros.resize(terms_.call.count * element_);
      unused.resize(zeros.size() * static_cast<std::size_t>(members_.size));
      request.send = zeros.data();
      request.recv = unused.data();
    }
    return call(request);
  }

  Outcome allocate(std::uint64_t count, void*& memory) const {
    const std::uint64_t bytes = std::max<std::uint64_t>(count * element_, 1);
    Device* const device = own()->device;
    if (device == nullptr) return job_.heap->allocate(bytes, memory);
    DDL_ASSIGN(done, job_.device_memory.allocate(*device, bytes).map_error(to_failure));
    memory = done;
    return {};
  }
  /// Calls for a result of this many elements, which has these numbers of each rank; allocates and stores it.
  Outcome call_for_result(Request& request, std::uint64_t count,
                          const std::vector<std::uint64_t>& counts) const {
    std::vector<std::byte> unused;
    void* memory = nullptr;
    const Outcome allocated = has_joined() ? Outcome() : allocate(count, memory);
    // A rank without memory takes part, so that the others have their results.
    if (memory == nullptr) {
      unused.resize(count * element_);
      memory = unused.data();
    }
    request.recv = static_cast<std::byte*>(memory);
    request.recv_is_on_cpu = !allocated;
    if (auto called = call(request); !called || !allocated) return called ? allocated : called;
    if (has_joined()) return {};
    *own()->result = memory;
    if (own()->recv_counts != nullptr) std::copy(counts.begin(), counts.end(), own()->recv_counts);
    return {};
  }

  Outcome allgatherv() const {
    std::vector<std::uint64_t> counts(static_cast<std::size_t>(members_.size));
    const std::uint64_t own_count = own() == nullptr ? 0 : own()->own_count;
    Request exchange = numbers(CallKind::kAllgather);
    exchange.send = reinterpret_cast<const std::byte*>(&own_count);
    exchange.recv = reinterpret_cast<std::byte*>(counts.data());
    if (auto gathered = call(exchange); !gathered) return gathered;

    const std::uint64_t count = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    Request data = request_of(count);
    data.call.counts = digest_of(counts) | 1;
    data.counts = counts;
    return call_for_result(data, count, counts);
  }

  Outcome alltoallv() const {
    std::vector<std::uint64_t> receives(static_cast<std::size_t>(members_.size)), sends(receives.size(), 0);
    if (own() != nullptr) sends = own()->announcement.send_counts;
    Request exchange = numbers(CallKind::kAlltoall);
    exchange.send = reinterpret_cast<const std::byte*>(sends.data());
    exchange.recv = reinterpret_cast<std::byte*>(receives.data());
    if (auto exchanged = call(exchange); !exchanged) return exchanged;

    Request data = request_of(0);
    data.call.counts = 0;
    data.counts = sends;
    data.recv_capacity = std::accumulate(receives.begin(), receives.end(), std::uint64_t{0});
    data.recv_counts = receives.data();
    return call_for_result(data, data.recv_capacity, receives);
  }

  CollectiveBackend& backend_;
  JobResources& job_;
  const Membership& members_;
  const Batch& batch_;
  const std::vector<SubmissionPtr>& submissions_;
  const TensorTerms& terms_;
  std::size_t element_;
  std::uint64_t digest_;
  std::vector<EventHandle> ready_;
};

}  // namespace

Outcome execute(CollectiveBackend& backend, JobResources& job, const Membership& members, const Batch& batch,
                const std::vector<SubmissionPtr>& submissions) {
  return BatchCall(backend, job, members, batch, submissions).run();
}

}  // namespace ddl::runtime
