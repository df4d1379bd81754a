#include "frameworks/run.h"
#include "support/catch.h"

namespace ddl::frameworks {
namespace {

const Program kGather{.environment = "jax",
                      .file = "jax_gather.py",
                      .options = {"-np", "2", "--map-by", "node", "--framework", "jax"}};

TEST_CASE("processes of JAX find each other and gather", "[jax]") { run(Place::kHere, kGather); }
TEST_CASE("processes of JAX gather over two hosts", "[jax_on_hosts]") { run(Place::kTwoHosts, kGather); }
TEST_CASE("processes of JAX gather in a job of Slurm", "[jax_in_slurm]") { run(Place::kSlurm, kGather); }

}  // namespace
}  // namespace ddl::frameworks
