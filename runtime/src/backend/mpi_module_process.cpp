#include "runtime/src/backend/mpi_module_process.h"

#include <mpi.h>
#include <stdlib.h>

#include <algorithm>
#include <array>

namespace ddl::runtime::mpi {
namespace {

const char* level_name(int level) {
  return level == MPI_THREAD_SINGLE       ? "MPI_THREAD_SINGLE"
         : level == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
         : level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
                                          : "MPI_THREAD_MULTIPLE";
}

/// "Open MPI v4.1.4" from "Open MPI v4.1.4, package: Debian OpenMPI, ident: ..."; MPICH's text has several lines.
std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "an MPI";
  std::string version(text.data());
  version.resize(std::min(version.find_first_of(",\n"), version.size()));
  for (char& letter : version) {
    if (letter == '\t') letter = ' ';
  }
  return version;
}

}  // namespace

Status check(int code, const char* function) {
  if (code == MPI_SUCCESS) return {};
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  return fail(ErrorCode::kClosed,
              std::string(function) + ": " +
                  (length == 0 ? "error " + std::to_string(code)
                               : std::string(text.data(), static_cast<std::size_t>(length))));
}

MpiProcess& MpiProcess::instance() {
  // Never destroyed: it is used when the process exits.
  static auto* const process = new MpiProcess;
  return *process;
}

bool MpiProcess::is_running() {
  int is_finalized = 1;
  return MPI_Finalized(&is_finalized) == MPI_SUCCESS && is_finalized == 0;
}

bool MpiProcess::must_precede_pmix() {
  // Tried with Open MPI 5.0.7: if PMIx is initialised, it omits PMIx_Init() and so does not know its own name. The
  // version is asked at run time, because 4 and 5 have the same SONAME.
  const std::string library = library_version();
  return library.starts_with("Open MPI") && !library.starts_with("Open MPI v4");
}

Status MpiProcess::enter() {
  const std::lock_guard guard(entering_);
  int is_finalized = 0, is_initialized = 0;
  DDL_TRY(check(MPI_Finalized(&is_finalized), "MPI_Finalized"));
  if (is_finalized != 0) {
    return fail(ErrorCode::kInvalidArgument,
                "MPI has been finalised in this process; call ddl_init() before MPI_Finalize()");
  }
  DDL_TRY(check(MPI_Initialized(&is_initialized), "MPI_Initialized"));
  if (is_initialized == 0) {
    DDL_TRY(check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level_), "MPI_Init_thread"));
    // Calls return their errors, and libddl reports them. If the program has initialised MPI, it chooses the
    // handlers.
    DDL_TRY(check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
    DDL_TRY(check(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
    if (::on_exit(on_exit, nullptr) != 0) return fail(ErrorCode::kSystem, "on_exit: no memory");
  }
  DDL_TRY(check(MPI_Query_thread(&level_), "MPI_Query_thread"));
  if (!is_entered_) library_ = library_version();
  is_entered_ = true;
  return {};
}

void MpiProcess::begin_world() {
  const std::lock_guard guard(entering_);
  ++worlds_;
}

void MpiProcess::end_world() {
  const std::lock_guard guard(entering_);
  --worlds_;
}

void MpiProcess::abandon() {
  const std::lock_guard guard(entering_);
  is_abandoned_ = true;
}

bool MpiProcess::takes_threads() const { return level_ == MPI_THREAD_MULTIPLE; }

Status MpiProcess::allows_call() const {
  if (level_ == MPI_THREAD_MULTIPLE || level_ == MPI_THREAD_SERIALIZED) return {};
  int is_main = 0;
  DDL_TRY(check(MPI_Is_thread_main(&is_main), "MPI_Is_thread_main"));
  if (is_main != 0) return {};
  return fail(ErrorCode::kUnavailable,
              std::string("this program has initialised MPI with ") + level_name(level_) +
                  ", so that only its main thread may make collectives by MPI; ask MPI_Init_thread() for "
                  "MPI_THREAD_MULTIPLE");
}

void MpiProcess::on_exit(int status, void*) {
  MpiProcess& self = instance();
  {
    const std::lock_guard guard(self.entering_);
    // MPI_Finalize waits for all ranks. A process that fails, or has not left the job in order, must not wait: its
    // launcher has to see the exit.
    if (status != 0 || self.worlds_ > 0 || self.is_abandoned_) return;
  }
  if (is_running()) (void)MPI_Finalize();
}

}  // namespace ddl::runtime::mpi
