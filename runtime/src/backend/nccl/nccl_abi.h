// The part of NCCL's interface (libnccl.so.2) that libddl uses, declared here so that nothing of NVIDIA's is needed to
// build it. RCCL (librccl.so.1) has the same interface. tests/gpu/nccl_abi_test.cpp compares it with nccl.h where
// that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddl::runtime::nccl {

using Result = int;    ///< ncclResult_t
using DataType = int;  ///< ncclDataType_t
using RedOp = int;     ///< ncclRedOp_t
using Comm = void*;    ///< ncclComm_t

/// Passed by value.
struct UniqueId {
  char internal[128];
};

/// The first members of ncclConfig_t, as of NCCL 2.14: every later library takes them, and sets its own members to their
/// defaults.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
  int unused = 0;
};
static_assert(sizeof(Config) == 24);

// ncclResult_t
inline constexpr Result kSuccess = 0;
inline constexpr Result kInProgress = 7;

// ncclDataType_t
inline constexpr DataType kInt8 = 0;
inline constexpr DataType kUint8 = 1;
inline constexpr DataType kInt32 = 2;
inline constexpr DataType kUint32 = 3;
inline constexpr DataType kInt64 = 4;
inline constexpr DataType kUint64 = 5;
inline constexpr DataType kFloat16 = 6;
inline constexpr DataType kFloat32 = 7;
inline constexpr DataType kFloat64 = 8;
inline constexpr DataType kBfloat16 = 9;
// Since kOldestWithFloat8. On GPUs of AMD whose 8-bit floats are FNUZ, these stand for them.
inline constexpr DataType kFloat8E4m3 = 10;
inline constexpr DataType kFloat8E5m2 = 11;

// ncclRedOp_t
inline constexpr RedOp kSum = 0;
inline constexpr RedOp kProduct = 1;
inline constexpr RedOp kMax = 2;
inline constexpr RedOp kMin = 3;

/// The oldest version with all functions below: non-blocking communicators, which alone can be given up.
inline constexpr int kOldestVersion = 21400;
inline constexpr int kOldestWithFloat8 = 22400;

struct Functions {
  Result (*ncclGetVersion)(int* version);
  Result (*ncclGetUniqueId)(UniqueId* id);
  Result (*ncclCommInitRankConfig)(Comm* comm, int ranks, UniqueId id, int rank, Config* config);
  Result (*ncclCommFinalize)(Comm comm);
  Result (*ncclCommDestroy)(Comm comm);
  Result (*ncclCommAbort)(Comm comm);
  Result (*ncclCommGetAsyncError)(Comm comm, Result* error);
  const char* (*ncclGetErrorString)(Result result);
  const char* (*ncclGetLastError)(Comm comm);
  Result (*ncclAllReduce)(const void* send, void* recv, std::size_t count, DataType type, RedOp op, Comm comm,
                          void* stream);
  Result (*ncclReduce)(const void* send, void* recv, std::size_t count, DataType type, RedOp op, int root,
                       Comm comm, void* stream);
  Result (*ncclBroadcast)(const void* send, void* recv, std::size_t count, DataType type, int root, Comm comm,
                          void* stream);
  Result (*ncclReduceScatter)(const void* send, void* recv, std::size_t count, DataType type, RedOp op,
                              Comm comm, void* stream);
  Result (*ncclAllGather)(const void* send, void* recv, std::size_t count, DataType type, Comm comm,
                          void* stream);
  Result (*ncclSend)(const void* send, std::size_t count, DataType type, int peer, Comm comm, void* stream);
  Result (*ncclRecv)(void* recv, std::size_t count, DataType type, int peer, Comm comm, void* stream);
  Result (*ncclGroupStart)();
  Result (*ncclGroupEnd)();
};

}  // namespace ddl::runtime::nccl
