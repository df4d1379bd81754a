// libddl's own declarations of NCCL's functions against nccl.h, and, compiled once more, against RCCL's header. All is
// checked by the compiler. DDL_COLLECTIVES: "NCCL" or "RCCL"; DDL_COLLECTIVES_HEADER: "nccl.h", where it is installed.
#include <cstddef>
#include <cstdio>

#include "gpu/same_call.h"
#include "runtime/src/backend/nccl/nccl_abi.h"
#include "support/catch.h"
#include "support/skip.h"

#ifdef DDL_COLLECTIVES_HEADER
#include DDL_COLLECTIVES_HEADER

namespace nccl = ddl::runtime::nccl;
#if NCCL_VERSION_CODE >= 21400  // nccl::kOldestVersion
#define DDL_IS_COMPARED
DDL_SAME(nccl, ncclGetVersion);
DDL_SAME(nccl, ncclGetUniqueId);
DDL_SAME(nccl, ncclCommInitRankConfig);
DDL_SAME(nccl, ncclCommFinalize);
DDL_SAME(nccl, ncclCommDestroy);
DDL_SAME(nccl, ncclCommAbort);
DDL_SAME(nccl, ncclCommGetAsyncError);
DDL_SAME(nccl, ncclGetErrorString);
DDL_SAME(nccl, ncclGetLastError);
DDL_SAME(nccl, ncclAllReduce);
DDL_SAME(nccl, ncclReduce);
DDL_SAME(nccl, ncclBroadcast);
DDL_SAME(nccl, ncclReduceScatter);
DDL_SAME(nccl, ncclAllGather);
DDL_SAME(nccl, ncclSend);
DDL_SAME(nccl, ncclRecv);
DDL_SAME(nccl, ncclGroupStart);
DDL_SAME(nccl, ncclGroupEnd);
static_assert(sizeof(ncclUniqueId) == sizeof(nccl::UniqueId));
static_assert(offsetof(ncclConfig_t, size) == offsetof(nccl::Config, size) &&
              offsetof(ncclConfig_t, magic) == offsetof(nccl::Config, magic) &&
              offsetof(ncclConfig_t, version) == offsetof(nccl::Config, version) &&
              offsetof(ncclConfig_t, blocking) == offsetof(nccl::Config, blocking));
static_assert(ncclSuccess == nccl::kSuccess && ncclInProgress == nccl::kInProgress);
static_assert(ncclInt8 == nccl::kInt8 && ncclUint8 == nccl::kUint8 && ncclInt32 == nccl::kInt32 &&
              ncclUint32 == nccl::kUint32 && ncclInt64 == nccl::kInt64 && ncclUint64 == nccl::kUint64 &&
              ncclFloat16 == nccl::kFloat16 && ncclFloat32 == nccl::kFloat32 &&
              ncclFloat64 == nccl::kFloat64 && ncclBfloat16 == nccl::kBfloat16);
#if NCCL_VERSION_CODE >= 22400
static_assert(ncclFloat8e4m3 == nccl::kFloat8E4m3 && ncclFloat8e5m2 == nccl::kFloat8E5m2);
#endif
static_assert(ncclSum == nccl::kSum && ncclProd == nccl::kProduct && ncclMax == nccl::kMax &&
              ncclMin == nccl::kMin);
#endif
#endif

TEST_CASE("libddl declares the functions of " DDL_COLLECTIVES " as its header does") {
#if defined DDL_IS_COMPARED
  std::printf("compared with " DDL_COLLECTIVES " %d.%d.%d\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
  SUCCEED();
#elif defined DDL_COLLECTIVES_HEADER
  DDL_SKIP("the header of " DDL_COLLECTIVES " is older than what libddl takes");
#else
  DDL_SKIP("the header of " DDL_COLLECTIVES " is not installed");
#endif
}
