// Which profile a name means.
#include "templates/profile/site_catalog.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "templates/shipped_files.h"

using namespace ddl::templates;

namespace {

struct Folder : ddl::test::TemporaryDirectory {
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name) << text;
    return *this / name;
  }
};

ddl::Result<std::string> file_text(const std::string& path) { return ddl::read_file(path); }

}  // namespace

TEST_CASE("a name means the user's own profile first, then the shipped one; a path means a file") {
  const Folder folder;
  folder.write("lumi-g.yaml", "name: lumi-g\ntitle: mine\n");
  const std::string file = folder.write("other.yaml", "name: other\n");
  const SiteCatalog catalog({folder.path()}, file_text);
  REQUIRE(catalog.find("lumi-g"));
  CHECK(catalog.find("lumi-g")->title == "mine");
  REQUIRE(catalog.find("frontier"));
  CHECK(catalog.find("frontier")->title.find("Frontier") == 0);
  REQUIRE(catalog.find(file));
  CHECK(catalog.find(file)->name == "other");
  CHECK(SiteCatalog({}, file_text).find("lumi-g")->title.find("LUMI-G") == 0);
}

TEST_CASE("the name of a variant is one of its site's profile, unless a profile has that name itself") {
  const Folder folder;
  folder.write("our-site.yaml", "name: our-site\nvariants:\n  gpu-big: {partitions: [big], title: t}\n");
  const SiteCatalog catalog({folder.path()}, file_text);
  REQUIRE(catalog.text_of("our-site-gpu-big"));
  CHECK(catalog.text_of("our-site-gpu-big")->variant == "gpu-big");
  CHECK(catalog.find("our-site-gpu-big")->name == "our-site-gpu-big");
  CHECK(catalog.find("our-site", {"big", "", ""})->name == "our-site-gpu-big");
  CHECK(catalog.find("our-site")->name == "our-site");
  CHECK_FALSE(catalog.find("our-site-cpu"));
  const auto sites = catalog.list();
  CHECK(std::any_of(sites.begin(), sites.end(),
                    [](const SiteName& one) { return one.name == "our-site-gpu-big" && one.title == "t"; }));
  folder.write("our-site-gpu-big.yaml", "name: own\n");
  CHECK(catalog.find("our-site-gpu-big")->name == "own");
}

TEST_CASE("a site without a profile, and a file that cannot be read") {
  const SiteCatalog catalog({}, file_text);
  const auto unknown = catalog.find("lumig");
  REQUIRE_FALSE(unknown);
  CHECK_THAT(unknown.error().message(), Catch::Contains("no profile of a site 'lumig'") &&
                                            Catch::Contains("leonardo, lumi, mahti, marenostrum5"));
  CHECK_THAT(unknown.error().message(), Catch::Contains("did you mean lumi-g?"));
  CHECK(catalog.find("atlantis").error().message().find("did you mean") == std::string::npos);
  const auto missing = catalog.find("./none.yaml");
  REQUIRE_FALSE(missing);
  CHECK_THAT(missing.error().message(), Catch::Contains("./none.yaml"));
  // A name does not lead out of the folder.
  CHECK_FALSE(catalog.find("../sites/lumi-g"));
}

TEST_CASE("the profiles in the program are equal to the files") {
  for (const ddl::EmbeddedFile& file : shipped_files()) {
    INFO(file.path);
    const auto text = ddl::read_file(std::string(DDL_SOURCE_DIR) + "/templates/" + std::string(file.path));
    REQUIRE(text);
    CHECK(*text == file.text);
  }
  const std::vector<std::string> sites = shipped_sites();
  CHECK(sites.size() >= 6);
  CHECK(std::is_sorted(sites.begin(), sites.end()));
}
