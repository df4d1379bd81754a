// Gloo's collectives on floats, over TCP.
#include <unistd.h>

#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "bench/contenders/measured_rank.h"

namespace {

using namespace ddl::bench;

constexpr std::chrono::minutes kTimeout{5};

// Ranks of one host connect over loopback; ranks of several hosts use the address of their host's name.
std::string own_address(const RankJob& job) {
  char name[256] = "localhost";
  if (job.hosts > 1) ::gethostname(name, sizeof name - 1);
  return name;
}

std::shared_ptr<gloo::Context> join_gloo(const RankJob& job) {
  const gloo::transport::tcp::attr address(own_address(job).c_str());
  auto device = gloo::transport::tcp::CreateDevice(address);
  gloo::rendezvous::FileStore store(job.folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(job.rank, job.ranks);
  context->setTimeout(kTimeout);
  context->connectFullMesh(store, device);
  return context;
}

// Options are made for each call, as in programs that use Gloo.
class GlooCalls {
 public:
  explicit GlooCalls(std::shared_ptr<gloo::Context> context) : context_(std::move(context)) {}

  const float* call(Collective what, const Buffers& of) {
    switch (what) {
      case Collective::kAllreduce: {
        gloo::AllreduceOptions options(context_);
        options.setOutput(of.recv, of.count);
        options.setReduceFunction([](void* out, const void* a, const void* b, std::size_t count) {
          gloo::sum<float>(out, a, b, count);
        });
        gloo::allreduce(options);
        return of.recv;
      }
      case Collective::kAllgather: {
        gloo::AllgatherOptions options(context_);
        options.setInput(of.send, of.part);
        options.setOutput(of.recv, of.count);
        gloo::allgather(options);
        return of.recv;
      }
      case Collective::kAlltoall: {
        gloo::AlltoallOptions options(context_);
        options.setInput(of.send, of.count);
        options.setOutput(of.recv, of.count);
        gloo::alltoall(options);
        return of.recv;
      }
      case Collective::kBroadcast: {
        gloo::BroadcastOptions options(context_);
        options.setOutput(of.recv, of.count);
        options.setRoot(0);
        gloo::broadcast(options);
        return of.recv;
      }
      case Collective::kReduceScatter: return reduce_scatter(of);
    }
    return nullptr;
  }

 private:
  using ReduceScatter = gloo::ReduceScatterHalvingDoubling<float>;

  // Gloo has a reduce-scatter only in its older API: an object for each buffer and size, which works in place and
  // leaves the result at the start of its input. The warm-up calls make it, so that it costs the measured calls
  // nothing.
  const float* reduce_scatter(const Buffers& of) {
    std::unique_ptr<ReduceScatter>& algorithm = reduce_scatters_[of.count];
    if (!algorithm) {
      const std::vector<int> parts(context_->size, static_cast<int>(of.part));
      algorithm = std::make_unique<ReduceScatter>(context_, std::vector<float*>{of.send}, of.count, parts);
    }
    algorithm->run();
    return of.send;
  }

  std::shared_ptr<gloo::Context> context_;
  std::map<std::size_t, std::unique_ptr<ReduceScatter>> reduce_scatters_;  // by the number of elements
};

}  // namespace

int main(int argc, char** argv) {
  auto job = join_benchmark(argc, argv, /*has_threads=*/true);
  if (!job) return fail_rank(job.error());
  try {
    const auto context = join_gloo(*job);
    ddl::Status status = check_world(*job, context->rank, context->size);
    if (status) {
      GlooCalls calls(context);
      status = measure(*job, Expect::kResults, [&calls](Collective what, const Buffers& buffers) {
        return calls.call(what, buffers);
      });
    }
    if (!status) return fail_rank(status.error());
    // Gloo takes a rank that exits early for a failed one, even if it has done its part of the last call.
    job->scoreboard.barrier(job->rank, job->wait());
    return 0;
  } catch (const std::exception& error) {
    return fail_rank(ddl::Error(ddl::ErrorCode::kSystem, error.what()));
  }
}
