#include "runtime/src/context/process_set.h"

#include "runtime/src/collective/connection_plan.h"

namespace ddl::runtime {

Result<std::unique_ptr<ProcessSet>> ProcessSet::join(JobResources& job, std::unique_ptr<Bootstrap> bootstrap,
                                                     std::vector<int> job_ranks, FaultInjector fault,
                                                     Connections::OnAbort on_abort, const ConnectLimit& limit,
                                                     std::uint32_t first_sequence) {
  const bool is_world = job.heap == nullptr;
  // Other sets have the world's backend. An error is reported after the fence in connect(), which every rank must
  // reach.
  const Status put = is_world ? put_operations(*bootstrap, job.settings) : Status();
  auto connections =
      Connections::connect(job, *bootstrap, std::move(job_ranks),
                           plan_connections(job.settings, bootstrap->membership(), is_world, first_sequence),
                           std::move(fault), std::move(on_abort), limit);
  if (!connections) return fail(std::move(connections.error()));
  DDL_TRY(put);
  auto backend = make_backend(job, *bootstrap, **connections);
  if (!backend) return fail(std::move(backend.error()));
  DDL_TRY((*connections)->watch());
  auto executor = std::make_unique<Executor>(**connections, *std::move(backend));
  return std::unique_ptr<ProcessSet>(
      new ProcessSet(job, std::move(bootstrap), *std::move(connections), std::move(executor)));
}

ProcessSet::ProcessSet(JobResources& job, std::unique_ptr<Bootstrap> bootstrap,
                       std::unique_ptr<Connections> connections, std::unique_ptr<Executor> executor)
    : job_(job),
      bootstrap_(std::move(bootstrap)),
      connections_(std::move(connections)),
      executor_(std::move(executor)) {}

ProcessSet::~ProcessSet() { (void)leave(); }

Outcome ProcessSet::leave() {
  return executor_->close([this]() -> Outcome {
    connections_->leave();
    // The backend uses the links.
    executor_->destroy_backend();
    connections_->close();
    if (auto left = bootstrap_->leave(); !left) return tl::unexpected(to_failure(left.error()));
    return {};
  });
}

}  // namespace ddl::runtime
