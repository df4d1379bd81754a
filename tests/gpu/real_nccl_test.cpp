// NCCL itself, where it is installed: what it says without a GPU. With one, see scripts/test-gpu.
#include <cstdio>
#include <string>

#include "runtime/src/backend/nccl/nccl_library.h"
#include "support/catch.h"
#include "support/skip.h"

namespace nccl = ddl::runtime::nccl;
using ddl::runtime::NcclLibrary;

TEST_CASE("the real NCCL has all functions, and says why it cannot make a communicator without a GPU") {
#ifdef DDL_NCCL_FILE
  const auto library = NcclLibrary::load(DDL_NCCL_FILE);
  INFO((library ? std::string() : library.error().message()));
  REQUIRE(library);
  CHECK((*library)->version() >= nccl::kOldestVersion);
  std::printf("loaded NCCL %s\n", ddl::runtime::nccl_version_text((*library)->version()).c_str());
  nccl::UniqueId id{};
  nccl::Comm comm = nullptr;
  nccl::Config config;
  const nccl::Functions& functions = (*library)->functions();
  // The id succeeds without a GPU; only making the communicator tells.
  if (functions.ncclGetUniqueId(&id) != nccl::kSuccess) DDL_SKIP("NCCL finds no network here");
  const auto result = functions.ncclCommInitRankConfig(&comm, 1, id, 0, &config);
  if (result == nccl::kSuccess || result == nccl::kInProgress) {
    (void)functions.ncclCommAbort(comm);
    DDL_SKIP("this host has a GPU");
  }
  const auto refused = (*library)->check("ncclCommInitRankConfig", result, nullptr);
  REQUIRE(!refused);
  CHECK(refused.error().message().starts_with("ncclCommInitRankConfig: unhandled cuda error"));
  CHECK(refused.error().message().find("CUDA driver") != std::string::npos);
#else
  DDL_SKIP("NCCL is not installed");
#endif
}
