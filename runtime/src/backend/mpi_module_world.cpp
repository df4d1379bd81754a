// The world and the communicators of the site's MPI, over mpi.h: the entry of the on-demand module libddl_mpi.so.
#include <mpi.h>

#include <array>
#include <cstring>
#include <memory>

#include "runtime/src/backend/mpi_module_process.h"
#include "runtime/src/bootstrap/mpi_world.h"

namespace ddl::runtime::mpi {

// A communicator over mpi.h.

/// comm: the address of an MPI_Comm, since only sources include mpi.h. Takes ownership of the communicator.
std::unique_ptr<Communicator> own_communicator(const void* comm);

namespace {

constexpr int kExchangeTag = 1;

int size_of(std::span<const std::byte> bytes) { return std::ssize(bytes); }

class MpiCommunicator final : public Communicator {
 public:
  /// Owns comm.
  explicit MpiCommunicator(MPI_Comm comm) : comm_(comm) {}
  ~MpiCommunicator() override;

  Status allows_call() const override;
  Status start(MpiMove move) override;
  Status start_min(std::span<const std::uint64_t> own, std::span<std::uint64_t> minimum) override;
  Status start_exchange(int peer, std::span<const std::byte> send, std::span<std::byte> recv) override;
  Result<bool> is_done() override;
  Status progress() override;

 private:
  Status start_move();

  MPI_Comm comm_;
  MpiMove move_;  ///< MPI reads its lists until the operation has completed
  std::array<MPI_Request, 2> requests_{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

MpiCommunicator::~MpiCommunicator() {
  if (!MpiProcess::is_running()) return;
  const auto lock = MpiProcess::instance().lock();
  (void)MPI_Comm_free(&comm_);
}

Status MpiCommunicator::allows_call() const { return MpiProcess::instance().allows_call(); }

Status MpiCommunicator::start(MpiMove move) {
  const auto lock = MpiProcess::instance().lock();
  move_ = std::move(move);
  return start_move();
}

Status MpiCommunicator::start_move() {
  const MpiMove& m = move_;
  const MpiMove::Blocks &out = m.sends, &in = m.receives;
  const void* const send = m.is_in_place ? MPI_IN_PLACE : m.send;
  MPI_Request* const request = requests_.data();
  // All ranks pass the same kind, root and is_even; MPI ignores the arguments that a rank does not need.
  switch (m.kind) {
    case MpiMove::Kind::kBroadcast:
      return check(MPI_Ibcast(m.recv, in.bytes[0], MPI_BYTE, m.root, comm_, request), "MPI_Ibcast");
    case MpiMove::Kind::kAllgather:
      if (m.is_even) {
        return check(
            MPI_Iallgather(send, out.bytes[0], MPI_BYTE, m.recv, in.bytes[0], MPI_BYTE, comm_, request),
            "MPI_Iallgather");
      }
      return check(MPI_Iallgatherv(send, out.bytes[0], MPI_BYTE, m.recv, in.bytes.data(), in.offsets.data(),
                                   MPI_BYTE, comm_, request),
                   "MPI_Iallgatherv");
    case MpiMove::Kind::kGather:
      if (m.is_even) {
        return check(
            MPI_Igather(send, out.bytes[0], MPI_BYTE, m.recv, in.bytes[0], MPI_BYTE, m.root, comm_, request),
            "MPI_Igather");
      }
      return check(MPI_Igatherv(send, out.bytes[0], MPI_BYTE, m.recv, in.bytes.data(), in.offsets.data(),
                                MPI_BYTE, m.root, comm_, request),
                   "MPI_Igatherv");
    case MpiMove::Kind::kScatter: {
      void* const recv = m.is_in_place ? MPI_IN_PLACE : m.recv;
      return check(
          MPI_Iscatter(m.send, out.bytes[0], MPI_BYTE, recv, in.bytes[0], MPI_BYTE, m.root, comm_, request),
          "MPI_Iscatter");
    }
    case MpiMove::Kind::kAlltoall:
      if (m.is_even) {
        return check(
            MPI_Ialltoall(m.send, out.bytes[0], MPI_BYTE, m.recv, in.bytes[0], MPI_BYTE, comm_, request),
            "MPI_Ialltoall");
      }
      return check(MPI_Ialltoallv(m.send, out.bytes.data(), out.offsets.data(), MPI_BYTE, m.recv,
                                  in.bytes.data(), in.offsets.data(), MPI_BYTE, comm_, request),
                   "MPI_Ialltoallv");
  }
  return fail(ErrorCode::kInternal, "a move of no kind");
}

Status MpiCommunicator::start_min(std::span<const std::uint64_t> own, std::span<std::uint64_t> minimum) {
  const auto lock = MpiProcess::instance().lock();
  return check(MPI_Iallreduce(own.data(), minimum.data(), std::ssize(own), MPI_UINT64_T, MPI_MIN, comm_,
                              requests_.data()),
               "MPI_Iallreduce");
}

Status MpiCommunicator::start_exchange(int peer, std::span<const std::byte> send, std::span<std::byte> recv) {
  const auto lock = MpiProcess::instance().lock();
  if (!recv.empty()) {
    DDL_TRY(check(MPI_Irecv(recv.data(), size_of(recv), MPI_BYTE, peer, kExchangeTag, comm_, &requests_[0]),
                  "MPI_Irecv"));
  }
  if (send.empty()) return {};
  return check(MPI_Isend(send.data(), size_of(send), MPI_BYTE, peer, kExchangeTag, comm_, &requests_[1]),
               "MPI_Isend");
}

Result<bool> MpiCommunicator::is_done() {
  const auto lock = MpiProcess::instance().lock_if_free();
  if (!lock) return false;
  bool all_done = true;
  for (MPI_Request& request : requests_) {
    if (request == MPI_REQUEST_NULL) continue;
    int is_done = 0;
    DDL_TRY(check(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test"));
    if (is_done == 0) all_done = false;
  }
  return all_done;
}

Status MpiCommunicator::progress() {
  const auto lock = MpiProcess::instance().lock_if_free();
  if (!lock) return {};
  int is_there = 0;
  return check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &is_there, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

}  // namespace

std::unique_ptr<Communicator> own_communicator(const void* comm) {
  return std::make_unique<MpiCommunicator>(*static_cast<const MPI_Comm*>(comm));
}

// What libddl_mpi.so offers to libddl: the process's MPI as a world of the job's ranks.
namespace {

/// Every MPI allows tags up to this value (MPI_TAG_UB).
constexpr std::uint32_t kMaxTag = 0x7FFF;

class World final : public MpiWorld {
 public:
  /// Owns comm, whose ranks are the job's.
  World(MPI_Comm comm, MpiIdentity identity) : comm_(comm), identity_(identity) {
    MpiProcess::instance().begin_world();
  }
  ~World() override {
    MpiProcess::instance().end_world();
    if (!MpiProcess::is_running()) return;
    const auto lock = MpiProcess::instance().lock();
    (void)MPI_Comm_free(&comm_);
  }

  int rank() const override { return identity_.rank; }
  int size() const override { return identity_.size; }

  Result<std::unique_ptr<Communicator>> communicator(const std::vector<int>& job_ranks,
                                                     std::uint32_t generation) override {
    DDL_TRY(MpiProcess::instance().allows_call());
    const auto lock = MpiProcess::instance().lock_to_wait();
    MPI_Group all = MPI_GROUP_NULL, chosen = MPI_GROUP_NULL;
    DDL_TRY(check(MPI_Comm_group(comm_, &all), "MPI_Comm_group"));
    const int included = MPI_Group_incl(all, std::ssize(job_ranks), job_ranks.data(), &chosen);
    (void)MPI_Group_free(&all);
    DDL_TRY(check(included, "MPI_Group_incl"));
    MPI_Comm comm = MPI_COMM_NULL;
    const int created = MPI_Comm_create_group(comm_, chosen, static_cast<int>(generation & kMaxTag), &comm);
    (void)MPI_Group_free(&chosen);
    DDL_TRY(check(created, "MPI_Comm_create_group"));
    auto owned = own_communicator(&comm);
    DDL_TRY(check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
    return owned;
  }

  bool takes_threads() const override { return MpiProcess::instance().takes_threads(); }
  const std::string& library() const override { return MpiProcess::instance().library(); }
  void abort_job(int code) override {
    if (MpiProcess::is_running()) (void)MPI_Abort(MPI_COMM_WORLD, code);
  }
  void abandon() override { MpiProcess::instance().abandon(); }

 private:
  MPI_Comm comm_;
  MpiIdentity identity_;
};

Result<std::unique_ptr<MpiWorld>> create(const MpiIdentity* wanted) {
  MpiProcess& process = MpiProcess::instance();
  DDL_TRY(process.enter());
  DDL_TRY(process.allows_call());
  const auto lock = process.lock_to_wait();
  MpiIdentity identity;
  DDL_TRY(check(MPI_Comm_size(MPI_COMM_WORLD, &identity.size), "MPI_Comm_size"));
  DDL_TRY(check(MPI_Comm_rank(MPI_COMM_WORLD, &identity.rank), "MPI_Comm_rank"));
  if (wanted != nullptr && identity.size != wanted->size) {
    return fail(ErrorCode::kInvalidArgument,
                "MPI has " + std::to_string(identity.size) + (identity.size == 1 ? " rank" : " ranks") +
                    ", this job " + std::to_string(wanted->size) + ": " + process.library() +
                    " does not understand the launcher that started it; start the program by this MPI's "
                    "mpirun or by ddlrun, or name another MPI in DDL_MPI");
  }
  // The job's rank order, which may differ from MPI's.
  if (wanted != nullptr) identity = *wanted;
  MPI_Comm comm = MPI_COMM_NULL;
  DDL_TRY(check(MPI_Comm_split(MPI_COMM_WORLD, 0, identity.rank, &comm), "MPI_Comm_split"));
  DDL_TRY(check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
  return std::make_unique<World>(comm, identity);
}

}  // namespace
}  // namespace ddl::runtime::mpi

namespace {
bool is_same_build(std::uint32_t interface, const char* version) {
  return interface == ddl::runtime::kMpiInterface && std::strcmp(version, ddl::contract::kVersion) == 0;
}
}  // namespace

extern "C" __attribute__((visibility("default"))) int ddl_mpi_enter_first(std::uint32_t interface,
                                                                          const char* version,
                                                                          ddl::Status* result) {
  if (!is_same_build(interface, version)) return 0;
  if (ddl::runtime::mpi::MpiProcess::must_precede_pmix())
    *result = ddl::runtime::mpi::MpiProcess::instance().enter();
  return 1;
}

extern "C" __attribute__((visibility("default"))) int ddl_mpi_world_create(
    std::uint32_t interface, const char* version, const ddl::runtime::MpiIdentity* identity,
    ddl::Result<std::unique_ptr<ddl::runtime::MpiWorld>>* result) {
  if (!is_same_build(interface, version)) return 0;
  *result = ddl::runtime::mpi::create(identity);
  return 1;
}
