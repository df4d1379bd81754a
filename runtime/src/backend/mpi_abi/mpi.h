// What libddl needs of the standard ABI of MPI: the module for libmpi_abi.so.1 is compiled with this header, in place
// of an MPI's, and fits every MPI that has the ABI (MPICH from 5.0, Intel MPI from 2021.18).
//
// MPI 5.0, chapter 20, Application Binary Interface: 20.3.2 (handles) and 20.5 (the tables of handle constants). The
// other values are those of annex A.1.1, Defined Constants, column "ABI value". A test compares all of it with the
// header of an installed MPI (tests/runtime/mpi_abi_header).
#pragma once

// 20.3.2: handles are pointers to structs that nobody defines. Predefined ones have a number in place of an address.
using MPI_Comm = struct MPI_ABI_Comm*;
using MPI_Datatype = struct MPI_ABI_Datatype*;
using MPI_Errhandler = struct MPI_ABI_Errhandler*;
using MPI_File = struct MPI_ABI_File*;
using MPI_Group = struct MPI_ABI_Group*;
using MPI_Op = struct MPI_ABI_Op*;
using MPI_Request = struct MPI_ABI_Request*;

#define MPI_COMM_NULL (reinterpret_cast<MPI_Comm>(0x100))
#define MPI_COMM_WORLD (reinterpret_cast<MPI_Comm>(0x101))
#define MPI_COMM_SELF (reinterpret_cast<MPI_Comm>(0x102))
#define MPI_GROUP_NULL (reinterpret_cast<MPI_Group>(0x108))
#define MPI_FILE_NULL (reinterpret_cast<MPI_File>(0x118))
#define MPI_REQUEST_NULL (reinterpret_cast<MPI_Request>(0x180))
#define MPI_BYTE (reinterpret_cast<MPI_Datatype>(0x247))
#define MPI_UINT64_T (reinterpret_cast<MPI_Datatype>(0x259))
#define MPI_MIN (reinterpret_cast<MPI_Op>(0x22))
#define MPI_IN_PLACE (reinterpret_cast<void*>(1))

struct MPI_Status;  // libddl never looks at one
#define MPI_STATUS_IGNORE (static_cast<MPI_Status*>(nullptr))

enum : int {
  MPI_SUCCESS = 0,
  MPI_ANY_SOURCE = -1,
  MPI_ANY_TAG = -2,
  MPI_THREAD_SINGLE = 0,
  MPI_THREAD_FUNNELED = 1024,
  MPI_THREAD_SERIALIZED = 2048,
  MPI_THREAD_MULTIPLE = 4096,
  MPI_MAX_ERROR_STRING = 512,
  MPI_MAX_LIBRARY_VERSION_STRING = 8192,
};

// Each begins a line: cmake/DdlMpi.cmake reads the names.
extern "C" {
int MPI_Abort(MPI_Comm comm, int code);
int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* created);
int MPI_Comm_free(MPI_Comm* comm);
int MPI_Comm_group(MPI_Comm comm, MPI_Group* group);
int MPI_Comm_rank(MPI_Comm comm, int* rank);
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler);
int MPI_Comm_size(MPI_Comm comm, int* size);
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* created);
int MPI_Error_string(int code, char* text, int* length);
int MPI_File_get_errhandler(MPI_File file, MPI_Errhandler* handler);
int MPI_Finalize();
int MPI_Finalized(int* is_finalized);
int MPI_Get_library_version(char* version, int* length);
int MPI_Group_free(MPI_Group* group);
int MPI_Group_incl(MPI_Group group, int count, const int ranks[], MPI_Group* created);
int MPI_Iallgather(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                   MPI_Datatype recv_type, MPI_Comm comm, MPI_Request* request);
int MPI_Iallgatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                    const int recv_counts[], const int offsets[], MPI_Datatype recv_type, MPI_Comm comm,
                    MPI_Request* request);
int MPI_Iallreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request);
int MPI_Ialltoall(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                  MPI_Datatype recv_type, MPI_Comm comm, MPI_Request* request);
int MPI_Ialltoallv(const void* send, const int send_counts[], const int send_offsets[],
                   MPI_Datatype send_type, void* recv, const int recv_counts[], const int recv_offsets[],
                   MPI_Datatype recv_type, MPI_Comm comm, MPI_Request* request);
int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request);
int MPI_Igather(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request* request);
int MPI_Igatherv(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                 const int recv_counts[], const int offsets[], MPI_Datatype recv_type, int root,
                 MPI_Comm comm, MPI_Request* request);
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided);
int MPI_Initialized(int* is_initialized);
int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* is_there, MPI_Status* status);
int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request* request);
int MPI_Is_thread_main(int* is_main);
int MPI_Iscatter(const void* send, int send_count, MPI_Datatype send_type, void* recv, int recv_count,
                 MPI_Datatype recv_type, int root, MPI_Comm comm, MPI_Request* request);
int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
              MPI_Request* request);
int MPI_Query_thread(int* provided);
int MPI_Test(MPI_Request* request, int* is_done, MPI_Status* status);
}

/// After MPI_Init_thread(). MPI_ERRORS_RETURN has the number 0x143, and MPI_ERRORS_ABORT 0x142, but Intel MPI 2021.18
/// has exchanged them: there 0x143 would end the process. So MPI is asked for the handler that files have until a
/// program changes it (14.7). One of our own is no way out: when such a handler has returned, a call of MPICH 5.0
/// succeeds.
inline MPI_Errhandler errors_return() {
  const auto exchanged = reinterpret_cast<MPI_Errhandler>(0x142);
  MPI_Errhandler of_files{};
  if (MPI_File_get_errhandler(MPI_FILE_NULL, &of_files) == MPI_SUCCESS && of_files == exchanged)
    return exchanged;
  return reinterpret_cast<MPI_Errhandler>(0x143);
}
#define MPI_ERRORS_RETURN errors_return()
