// How NCCL is loaded, and what the real one says where it is installed and there is no GPU.
#include <string>

#include "runtime/src/backend/nccl/nccl_library.h"
#include "support/catch.h"
#include "support/skip.h"

using ddl::ErrorCode;
using ddl::runtime::NcclLibrary;
namespace nccl = ddl::runtime::nccl;

TEST_CASE("a library that is not NCCL, or is not there, cannot be used, and the reason is told") {
  const auto missing = NcclLibrary::load("libnccl.so.2.of.nobody");
  REQUIRE(!missing);
  CHECK(missing.error().code() == ErrorCode::kUnavailable);
  CHECK(missing.error().message().find("libnccl.so.2.of.nobody") != std::string::npos);
  const auto other = NcclLibrary::load("libm.so.6");
  REQUIRE(!other);
  CHECK(other.error().code() == ErrorCode::kUnavailable);
  CHECK(other.error().message() == "libm.so.6: it has no ncclGetVersion");
}

TEST_CASE("the real NCCL has all functions, and says why it cannot make a communicator without a GPU") {
#ifdef DDL_NCCL_FILE
  const auto library = NcclLibrary::load(DDL_NCCL_FILE);
  INFO((library ? std::string() : library.error().message()));
  REQUIRE(library);
  CHECK((*library)->version() >= nccl::kOldestVersion);
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
  DDL_SKIP("NCCL is not installed, or a sanitizer is there");
#endif
}
