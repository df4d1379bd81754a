#include "frameworks/run.h"
#include "support/catch.h"

namespace ddl::frameworks {
namespace {

Program dist_sync(const std::string& servers) {
  return {.environment = "mxnet",
          .file = "mxnet_sync.py",
          .options = {"-np", "2", "--map-by", "node", "--framework", "mxnet", "--mxnet-servers", servers}};
}

}  // namespace

TEST_CASE("workers of MXNet train by a server", "[mxnet]") { run(Place::kHere, dist_sync("1")); }
TEST_CASE("workers of MXNet train by two servers on two hosts", "[mxnet_on_hosts]") {
  run(Place::kTwoHosts, dist_sync("2"));
}

}  // namespace ddl::frameworks
