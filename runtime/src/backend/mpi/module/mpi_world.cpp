// What libddl_mpi.so shows to libddl: the process's MPI as a world of the job's ranks.
#include <mpi.h>

#include <cstring>

#include "runtime/src/backend/mpi/module/mpi_communicator.h"
#include "runtime/src/backend/mpi/module/mpi_process.h"
#include "runtime/src/backend/mpi/module_interface.h"

namespace ddl::runtime::mpi {
namespace {

/// MPI takes tags up to here at least.
constexpr std::uint32_t kLargestTag = 0x7FFF;

class World final : public MpiWorld {
 public:
  /// Owns comm, whose ranks are the job's.
  World(MPI_Comm comm, MpiRankPlace place) : comm_(comm), place_(place) {
    MpiProcess::instance().begin_world();
  }
  ~World() override {
    MpiProcess::instance().end_world();
    if (!MpiProcess::is_running()) return;
    const auto lock = MpiProcess::instance().lock();
    (void)MPI_Comm_free(&comm_);
  }

  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }

  Result<std::unique_ptr<Communicator>> communicator(const std::vector<int>& job_ranks,
                                                     std::uint32_t generation) override {
    DDL_TRY(MpiProcess::instance().allows_call());
    const auto lock = MpiProcess::instance().lock_to_wait();
    MPI_Group all = MPI_GROUP_NULL, chosen = MPI_GROUP_NULL;
    DDL_TRY(check(MPI_Comm_group(comm_, &all), "MPI_Comm_group"));
    const int included = MPI_Group_incl(all, static_cast<int>(job_ranks.size()), job_ranks.data(), &chosen);
    (void)MPI_Group_free(&all);
    DDL_TRY(check(included, "MPI_Group_incl"));
    MPI_Comm comm = MPI_COMM_NULL;
    const int created =
        MPI_Comm_create_group(comm_, chosen, static_cast<int>(generation & kLargestTag), &comm);
    (void)MPI_Group_free(&chosen);
    DDL_TRY(check(created, "MPI_Comm_create_group"));
    auto owned = own_communicator(&comm);
    DDL_TRY(check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
    return owned;
  }

  bool takes_threads() const override { return MpiProcess::instance().takes_threads(); }
  const std::string& library() const override { return MpiProcess::instance().library(); }
  void abandon() override { MpiProcess::instance().abandon(); }

 private:
  MPI_Comm comm_;
  MpiRankPlace place_;
};

Result<std::unique_ptr<MpiWorld>> create(const MpiRankPlace* wanted) {
  MpiProcess& process = MpiProcess::instance();
  DDL_TRY(process.enter());
  DDL_TRY(process.allows_call());
  const auto lock = process.lock_to_wait();
  MpiRankPlace place;
  DDL_TRY(check(MPI_Comm_size(MPI_COMM_WORLD, &place.size), "MPI_Comm_size"));
  DDL_TRY(check(MPI_Comm_rank(MPI_COMM_WORLD, &place.rank), "MPI_Comm_rank"));
  if (wanted != nullptr && place.size != wanted->size) {
    return fail(ErrorCode::kInvalidArgument,
                "MPI has " + std::to_string(place.size) + (place.size == 1 ? " rank" : " ranks") +
                    ", this job " + std::to_string(wanted->size) + ": " + process.library() +
                    " does not understand the launcher that started it; start the program by this MPI's "
                    "mpirun or by ddlrun, or name another MPI in DDL_MPI");
  }
  // In the job's order, whatever MPI's is.
  if (wanted != nullptr) place = *wanted;
  MPI_Comm comm = MPI_COMM_NULL;
  DDL_TRY(check(MPI_Comm_split(MPI_COMM_WORLD, 0, place.rank, &comm), "MPI_Comm_split"));
  DDL_TRY(check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
  return std::make_unique<World>(comm, place);
}

}  // namespace
}  // namespace ddl::runtime::mpi

extern "C" __attribute__((visibility("default"))) int ddl_mpi_world_create(
    std::uint32_t interface, const char* version, const ddl::runtime::MpiRankPlace* place,
    ddl::Result<std::unique_ptr<ddl::runtime::MpiWorld>>* result) {
  if (interface != ddl::runtime::kMpiInterface || std::strcmp(version, ddl::contract::kVersion) != 0)
    return 0;
  *result = ddl::runtime::mpi::create(place);
  return 1;
}
