#include "runtime/src/backend/collective_backend.h"

#include "contract/environment.h"
#include "runtime/src/backend/cpu_backend.h"
#include "runtime/src/backend/device_backend.h"
#include "runtime/src/backend/mpi_backend.h"
#include "runtime/src/bootstrap/module_loader.h"

namespace ddl::runtime {
namespace {

constexpr char kKey[] = "ddl.operations";

/// Only MPI needs equal staging on all ranks: libddl's own backend takes the value of its host's first rank.
std::string text_of(const Settings& settings) {
  std::string text = contract::cpu_operations_name(settings.cpu_operations);
  if (settings.cpu_operations == contract::CpuOperations::kMpi && settings.staging_bytes)
    text +=
        std::string(" with ") + contract::env::kStagingBytes + "=" + std::to_string(*settings.staging_bytes);
  return text;
}

}  // namespace

Status put_operations(Bootstrap& bootstrap, const Settings& settings) {
  return bootstrap.put(kKey, text_of(settings));
}

Status check_same_operations(Bootstrap& bootstrap, const Settings& settings) {
  const std::string mine = text_of(settings);
  const Deadline deadline = settings.start_deadline();
  for (int rank = 0; rank < bootstrap.membership().size; ++rank) {
    DDL_ASSIGN(theirs, bootstrap.get(rank, kKey, deadline));
    if (theirs == mine) continue;
    return fail(ErrorCode::kInvalidArgument, std::string(contract::env::kCpuOperations) + " is " + mine +
                                                 " here and " + theirs + " on rank " + std::to_string(rank) +
                                                 "; it must be the same on all ranks");
  }
  return {};
}

Result<std::unique_ptr<CollectiveBackend>> make_backend(JobResources& job, Bootstrap& bootstrap,
                                                        Connections& connections) {
  const Settings& settings = job.settings;
  const auto for_any_memory = [&](std::unique_ptr<CollectiveBackend> host) {
    return std::make_unique<DeviceBackend>(job, connections, std::move(host));
  };
  if (settings.cpu_operations == contract::CpuOperations::kDdl)
    return for_any_memory(std::make_unique<CpuBackend>(connections, settings.algorithms));
  const Membership& membership = connections.membership();
  if (!job.mpi) {
    DDL_TRY(check_same_operations(bootstrap, settings));
    auto world = join_mpi(settings, MpiIdentity{membership.rank, membership.size});
    if (!world) return fail(std::move(world.error().during("collectives by MPI")));
    job.mpi = *std::move(world);
    if (!settings.finalizes_mpi) job.mpi->abandon();
  }
  MpiSet mpi;
  mpi.world = job.mpi;
  for (auto* const made : {&mpi.communicator, &mpi.for_duplicate}) {
    auto communicator = job.mpi->communicator(connections.job_ranks(), membership.generation);
    if (!communicator) return fail(std::move(communicator.error().during("collectives by MPI")));
    *made = *std::move(communicator);
  }
  return for_any_memory(
      std::make_unique<MpiBackend>(connections, MpiLimits::of(settings.staging_bytes), std::move(mpi)));
}

}  // namespace ddl::runtime
