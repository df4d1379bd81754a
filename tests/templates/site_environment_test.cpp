// The variables of a site's profile, as ranks get them and as a script exports them.
#include "templates/profile/site_environment.h"

#include "base/fd.h"
#include "support/catch.h"
#include "templates/profile/site_catalog.h"

using namespace ddl::templates;

namespace {

using Lines = std::vector<std::string>;

SiteSetup setup_of(const std::string& text) {
  auto site = read_site_profile("name: own\nsetup:\n" + text, "own.yaml");
  INFO((site ? std::string() : site.error().message()));
  REQUIRE(site);
  return site->setup;
}

SiteSetup setup_of_site(const std::string& name) {
  const SiteCatalog catalog({}, [](const std::string& path) { return ddl::read_file(path); });
  auto site = catalog.find(name);
  REQUIRE(site);
  return site->setup;
}

/// The value of a variable; "(unset)" if the ranks do not get it.
std::string value(const SiteSetup& setup, const SiteJob& job, const std::string& name) {
  for (const SiteVariable& one : site_environment(setup, job)) {
    if (one.name == name) return one.value;
  }
  return "(unset)";
}

}  // namespace

TEST_CASE("the number of nodes decides about variables of the network") {
  const SiteSetup frontier = setup_of_site("frontier");
  CHECK(value(frontier, {1, "me", "", ""}, "NCCL_NET") == "Socket");
  CHECK(value(frontier, {2, "me", "", ""}, "NCCL_NET") == "OFI");
  CHECK(value(frontier, {1, "me", "", ""}, "NCCL_NET_PLUGIN") == "(unset)");
  CHECK(value(frontier, {2, "me", "", ""}, "NCCL_NET_PLUGIN") == "librccl-net.so");
  CHECK(value(frontier, {1, "me", "", ""}, "FI_CXI_RDZV_PROTO") == "alt_read");
}

TEST_CASE(
    "a loaded module sets what is needed, and needed variables of all jobs do not depend on the nodes") {
  const SiteSetup olivia = setup_of_site("nris-olivia");
  CHECK(value(olivia, {1, "me", "", ""}, "FI_MR_CACHE_MONITOR") == "userfaultfd");
  CHECK(value(olivia, {1, "me", "", "GCC/13:NCCL/2.26"}, "FI_MR_CACHE_MONITOR") == "(unset)");
  CHECK(value(olivia, {1, "me", "", "MYNCCL/2.26"}, "FI_MR_CACHE_MONITOR") == "userfaultfd");
  // Without or-module no module can set them.
  const SiteSetup alps = setup_of_site("alps-gh200");
  CHECK(value(alps, {2, "me", "", "NCCL/2.26"}, "NCCL_NET") == "AWS Libfabric");
}

TEST_CASE("folders of a node are below /tmp, with the user and the job in their names") {
  for (const char* site : {"lumi-g", "frontier"}) {
    for (const char* name : {"MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR"}) {
      CHECK(value(setup_of_site(site), {2, "me", "4711", ""}, name) == "/tmp/me-miopen-cache-4711");
      CHECK(value(setup_of_site(site), {1, "me", "", ""}, name) == "/tmp/me-miopen-cache");
    }
  }
}

TEST_CASE("of a name that a profile has twice the first value counts, in the order of the schema") {
  const SiteSetup setup = setup_of(
      "  variables: {A: 1}\n  one-node-variables: {A: 2, B: 2}\n  node-folders: {B: three}\n"
      "  needed:\n    variables: {A: 4, C: 4}\n");
  CHECK(site_environment(setup, {1, "me", "", ""}) ==
        std::vector<SiteVariable>{{"A", "1"}, {"B", "2"}, {"C", "4"}});
}

TEST_CASE("a script exports what depends on the job when it runs, but not what the user has given") {
  const SiteSetup setup = setup_of(
      "  one-node-variables: {A: 1, B: x y}\n  between-nodes-variables: {A: 2}\n  node-folders: {C: c}\n");
  CHECK(site_lines(setup, {}) == Lines{"if [ \"${SLURM_JOB_NUM_NODES:-1}\" -gt 1 ]; then export A=2; else "
                                       "export A=1; export B='x y'; fi",
                                       "export C=\"/tmp/$USER-c-$SLURM_JOB_ID\""});
  CHECK(site_lines(setup, {{"A", "0"}, {"C", "0"}}) ==
        Lines{"if [ \"${SLURM_JOB_NUM_NODES:-1}\" -gt 1 ]; then :; else export B='x y'; fi"});
  CHECK(site_lines(setup, {{"A", "0"}, {"B", "0"}, {"C", "0"}}).empty());
  CHECK(site_lines(setup_of("  between-nodes-variables: {A: 2}\n"), {}) ==
        Lines{"if [ \"${SLURM_JOB_NUM_NODES:-1}\" -gt 1 ]; then export A=2; fi"});
}

TEST_CASE("a folder's name is a part of a path") {
  const auto site = read_site_profile("name: own\nsetup:\n  node-folders:\n    A: ../b\n", "own.yaml");
  REQUIRE_FALSE(site);
  CHECK(site.error().message() ==
        "own.yaml:3: node-folders: '../b' has other characters than letters, digits, - and _");
}
